// SPDX-License-Identifier: Apache-2.0
// Choosing the segment: how many elements of each block one plan handles, so that its messages fit the channel's slots
// and its scratch fits the generation's.
#pragma once

#include "impl/schedule/bind.h"
#include "impl/schedule/unit_table.h"

namespace tutti {

/// Whether the call's shared input is so short that it is staged. The same on all ranks.
[[nodiscard]] bool is_copied(const Schedule& schedule, const BindRequest& request);
/// Whether exposed user buffers are copied to scratch first. Private ones are, and shared inputs that are short.
/// So are buffers of a schedule that asks for it in place. With premul_sum this rank's factor gets in by the copy.
[[nodiscard]] bool is_staged(const Schedule& schedule, const BindRequest& request);

/// Where a plan's scratch lies: the schedule's own units, then the mirrors of staged buffers.
struct ScratchLayout {
  std::int64_t unit_stride = 0;
  std::int64_t input_mirror = 0;  ///< offset; meaningful where the shape exposes the input and buffers are staged
  std::int64_t output_mirror = 0;
  std::int64_t bytes = 0;
  bool is_in_line = false;  ///< the schedule's units lie in the flag line
};
[[nodiscard]] ScratchLayout scratch_layout(const Schedule& schedule, const BindRequest& request,
                                           const UnitTable& table);

/// Slices of the longest message of any rank; 0 without channels.
[[nodiscard]] int slices_of(const Schedule& schedule, const BindRequest& request, const UnitTable& table);

/// Whether the channels carry a v form, which is one segment whatever its lengths.
/// Errors: resource with the numbers, also where a plan would have more than 2^26 slices.
[[nodiscard]] Status check_slots(const Schedule& schedule, const BindRequest& request);

/// Elements per block and segment: all of them if they fit, else as many lines per unit as fit. Where one line per unit
/// does not fit, as many lines as do: the first units get one each and the others are empty.
/// Errors: resource with the numbers when not even one line fits, or when a segment that was asked for
/// (BindRequest::segment) does not.
[[nodiscard]] Result<Count> choose_segment(const Schedule& schedule, const BindRequest& request);

}  // namespace tutti

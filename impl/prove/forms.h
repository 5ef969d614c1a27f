// SPDX-License-Identifier: Apache-2.0
// The forms in which a schedule's plans are proved: what binding may make of the same steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/schedule/bind.h"

namespace tutti {

inline constexpr std::int64_t kFormSlotBytes = 64;  ///< the smallest, so that units, slices and lines coincide
inline constexpr int kMostSlicesOfForms = 4;        ///< of a unit

struct Form {
  int slices;  ///< slots per unit; 0: one element per block
  bool is_in_place;
  Buffers buffers;
  Op op = Op::avg;            ///< where the collective reduces and has it, else sum
  int slots_per_need = 1;     ///< of each channel, for each one that the schedule needs
  bool copies_short = false;  ///< shared inputs are staged where they may be (BindRequest::most_copied)
  bool has_lengths = false;   ///< of a v form, with uneven_blocks
};

/// `all_reduce ring on 3 ranks, root 0`
[[nodiscard]] std::string describe(const Schedule& schedule);
/// The same, and `, in place, shared buffers, 4 slices per unit`.
[[nodiscard]] std::string describe(const Schedule& schedule, const Form& form);

/// Of any rank. Requires: no step has a flaw, for binding does not look for one.
[[nodiscard]] BindRequest request_of(const Schedule& schedule, const Form& form);

/// All forms that the schedule has: each in and out of place, with both kinds of buffers where that differs.
[[nodiscard]] std::vector<Form> forms_of(const Schedule& schedule);

/// One rank's blocks of a v form: from the last to the first, a gap before each, another one on each rank. Some are
/// empty, others have several slices.
[[nodiscard]] Result<BlockTable> uneven_blocks(const Problem& problem, int rank);

}  // namespace tutti

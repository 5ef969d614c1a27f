// SPDX-License-Identifier: Apache-2.0
// The faults that put the verifier on trial: what a broken collective may do, one table row each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::harness::faults {

enum class Fault : std::uint8_t {
  flipped_bit,
  dropped_message,
  doubled_contribution,
  swapped_blocks,
  previous_data,
  missing_rank,
  wrong_root,
  off_by_one_count,
  write_past_end,
  write_before_start,
  overwritten_input,
  one_rank_differs,
  narrow_type,
  late_write,
};

[[nodiscard]] std::span<const Fault> all_faults();
[[nodiscard]] std::string_view to_string(Fault fault);
/// What is broken, and where, in one line.
[[nodiscard]] std::string_view summary_of(Fault fault);
/// Names between commas, or `all`. Errors: invalid_argument naming the value and the nearest right name.
[[nodiscard]] Result<std::vector<Fault>> parse_faults(std::string_view text);

/// Whether anybody's output is made of more than one rank's input: not of an exscan on two ranks.
[[nodiscard]] bool combines(const Problem& problem);
/// Why the fault has no meaning for a case of this collective, op and dtype; empty: it has one.
[[nodiscard]] std::string why_not_applicable(Fault fault, const Cell& cell);
/// Why it cannot be put into ranks whose data lie on a GPU; empty: it can.
[[nodiscard]] std::string why_not_on_gpu(Fault fault);

/// Whether the fault is the same in a case whose input and output are one buffer. An input is overwritten there only
/// where the output does not cover it; what lies after an output that the input goes beyond is no end of a buffer.
[[nodiscard]] bool fits_in_place(Fault fault, Collective collective);
/// Whether it leaves the buffers of the case to the call: some give it private ones of their own. Parts of an output
/// that peers write too cannot be swapped by one rank.
[[nodiscard]] bool fits_shared(Fault fault, Collective collective, bool peers_write_output);

/// Whether a diagnosis names the fault, or what cannot be told from it: a lost message of a reduction looks like a rank
/// that has contributed nothing.
[[nodiscard]] bool names_cause(Fault fault, std::string_view diagnosis);

/// Dtypes that are added alike.
enum class DtypeClass : std::uint8_t { integer, wide_float, half_float, byte_float };
[[nodiscard]] std::span<const DtypeClass> all_dtype_classes();
[[nodiscard]] std::string_view to_string(DtypeClass which);
[[nodiscard]] DtypeClass class_of(Dtype dtype);

}  // namespace tutti::harness::faults

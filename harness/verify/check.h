// SPDX-License-Identifier: Apache-2.0
// The checks that stand behind a verdict. Is an output, bit for bit or within its bound, what the oracle says? Is an
// input as it was filled? Did a barrier hold? A failed check says how much is wrong, the first bad element with
// expected and actual, and, where the data tell it, the likely cause.
//
// Convention of a refill: salt k fills inputs with fill_input and outputs with fill_poison, both of salt k; the refill
// before it had salt k-1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/verify/oracle.h"

namespace tutti::harness::verify {

struct CheckResult {
  Count checked = 0;     ///< elements compared (barrier: 1); 0 proves nothing
  Count wrong = 0;       ///< of them
  Count first_bad = -1;  ///< index in the whole buffer (barrier: 0)
  Count last_bad = -1;
  std::string expected;  ///< at first_bad: value and bits
  std::string actual;
  std::string diagnosis;     ///< the likely cause; empty: unknown
  bool tells_cause = false;  ///< the diagnosis says more than that something was not written

  [[nodiscard]] bool is_ok() const { return wrong == 0; }
  /// "3 of 64 elements are wrong, the first at 12 of block 0: expected 5 (0x40a00000), actual ...; <diagnosis>"
  [[nodiscard]] std::string text() const;
};

/// A rank's whole buffer: the user's output, or input.
struct RankBuffer {
  int rank = 0;
  std::span<const std::byte> bytes;
};

/// What no block of the output of `rank` holds, up to the end of the last one.
[[nodiscard]] std::vector<Place> gaps_of(const Operation& operation, int rank);

/// Compares every element of the output of `output.rank` with the oracle, or where results are rounded with the exact
/// ones, within their bound (rounding.h). Where the collective leaves the output alone
/// (no output blocks), it must still hold the poison of the operation's salt.
/// Requires: as many elements as the operation's output has, or any number where there are no output blocks.
[[nodiscard]] CheckResult verify_output(Oracle& oracle, const RankBuffer& output);

/// Compares what lies between the blocks of a v form's output with what was there before. That is the poison, or the
/// rank's input where that is one with the output.
[[nodiscard]] CheckResult verify_gaps(const Operation& operation, const RankBuffer& output, bool hold_input);

/// Compares the input of `input.rank` with what fill_input wrote; for operations out of place.
[[nodiscard]] CheckResult verify_input_unchanged(const Operation& operation, const RankBuffer& input);

/// Whether all ranks get the same result.
[[nodiscard]] bool has_one_result(Collective collective);

/// Of all ranks of one barrier, on the common clock.
struct BarrierTimes {
  std::int64_t first_leave_ns = 0;
  std::int64_t last_enter_ns = 0;
};
/// The barrier's rule: no rank leaves before the last one has entered. The diagnosis is a clause: "a rank left ...".
[[nodiscard]] CheckResult check_barrier(const BarrierTimes& times);

}  // namespace tutti::harness::verify

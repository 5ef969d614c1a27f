// SPDX-License-Identifier: Apache-2.0
// The verifier on trial. For one collective, dtype, op and fault: draw a case, put the fault in, see whether the
// verifier says so, and show that the case is right without it.
//
// That a fault changes anything is shown without the verifier. The memory of all ranks, guards included, is compared
// with what the right operation leaves there on the same data. Of a barrier, early_leave.h sees whether a rank leaves
// while one stays away, and that it does not without the fault. A fault that has changed nothing is drawn again, with
// another seed, and never counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/faults/injector.h"
#include "harness/measure/check.h"
#include "harness/measure/runner.h"

namespace tutti::harness::faults {

enum class TrialOutcome : std::uint8_t {
  caught,
  missed,          ///< the fault changed something, and the verifier found nothing
  not_applicable,  ///< it has no meaning here
  not_injected,    ///< no draw had a place for it where it changed anything
  wrong_without,   ///< the case is wrong without the fault
};
[[nodiscard]] std::string_view to_string(TrialOutcome outcome);

struct TrialResult {
  Fault fault = Fault::flipped_bit;
  TrialOutcome outcome = TrialOutcome::not_applicable;
  std::string case_id;  ///< of the last draw
  int draws = 0;
  std::string text;          ///< the diagnosis; why not; why it was not injected
  bool names_cause = false;  ///< the diagnosis does
};
[[nodiscard]] std::string to_json(const TrialResult& result);
[[nodiscard]] Result<TrialResult> trial_from_json(std::string_view text);

struct TrialPlace {
  Runner& runner;
  OwnBackend& own;
  Injector& injector;
  Sight sight = {};             ///< of the verifier
  MemorySource memory;          ///< of the ranks' buffers
  bool is_on_gpu = false;       ///< where these lie
  bool takes_elements = false;  ///< see misalignment_of
};

/// The longest shared buffers that are drawn for `what`.
[[nodiscard]] Case longest_draw(const Case& what);

/// `what` says the collective, dtype, op, ranks and kind of ranks. Algorithm, count, lengths of blocks and root are
/// drawn, and where the fault allows it, placement and kind of buffers. The same result on all runners. Errors: those
/// of operations and of the runner; the job is then over.
[[nodiscard]] Result<TrialResult> try_fault(const TrialPlace& place, const Case& what, Fault fault, std::uint64_t seed);

}  // namespace tutti::harness::faults

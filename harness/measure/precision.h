// SPDX-License-Identifier: Apache-2.0
// Precision: how exact a reduction of floats is, and whether it can be reproduced. These are figures beside the times
// of a row.
//
// The data that verdicts rest on have no error in any order. So these figures come from a few operations more, on
// random values (inputs.h), outside the timed part. They are the error of the results in ulp of the exact ones, and
// whether their bits are the same on all ranks and in every repetition. All systems of a cell have the same data. What
// is not within the bound of any order of additions (rounding.h) is wrong, as in every check.
//
// Where values cancel, an ulp of what remains is small beside what was added. A large error_ulp of a single element is
// then the data's doing, and the same for all systems; the mean tells systems apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/measure/runner.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// Elements of each block whose error is looked at, spread evenly over it: the reference reads all ranks' inputs.
inline constexpr Count kMostJudged = Count{1} << 16U;
inline constexpr int kRepeats = 3;

struct Precision {
  std::optional<Accuracy> accuracy = {};      ///< of all ranks; empty: not measured
  std::optional<bool> is_same_on_ranks = {};  ///< empty where each result is on one rank only
  bool is_same_on_repeats = false;
  Damage damage = {};
};

/// Whether the case adds or multiplies floats.
[[nodiscard]] bool has_precision(const Cell& cell);
/// Runs the case kRepeats times on one set of random values. The same on every runner. Leaves the variant's kind of
/// values as it was. Of groups side by side it is that of runner 0's group, with the damage of all.
/// Errors: those of the variant's operations and of the runner.
[[nodiscard]] Result<Precision> measure_precision(Runner& runner, Variant& variant);

}  // namespace tutti::harness::measure

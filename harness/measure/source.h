// SPDX-License-Identifier: Apache-2.0
// What the blocks of a cell draw from, and the calls that are verified after all that were measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "harness/cases/conditions.h"
#include "harness/measure/runner.h"
#include "harness/measure/series.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// The same on all runners, which draw alike.
struct Source {
  std::mt19937_64 random;
  std::uint64_t salt = 0;  ///< of the last refill

  /// Up to a quarter less than `most`, at least 1: a system that counts calls must not know which one is verified.
  /// One draw, whatever `most` is.
  int samples(int most) { return std::max(1, most - below((most + 3) / 4 + 1)); }
  /// At least 0, and below `bound`. One draw.
  int below(int bound) { return static_cast<int>(random() % static_cast<std::uint64_t>(bound)); }
};

/// Calls that are verified and are no samples, on data of consecutive salts. There are some if one call does not have
/// every rank in every element: then as many as it takes, whatever the time. Errors: those of run_block.
Status check_afterwards(Runner& runner, Variant& variant, Series& series, Source& source, Checking checking);

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
// A machine's costs from the times of a run. The costs that the rows decide are changed until the logarithms of
// predicted and measured times are nearest (Gauss and Newton, damped). What rows do not decide stays near the example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "harness/record/record.h"
#include "harness/simulate/model.h"
#include "impl/algorithms/algorithm.h"
#include "impl/types/status.h"

namespace tutti::harness::simulate {

/// A time that a run measured: the median of its launches.
struct MeasuredTime {
  const Algorithm* algorithm = nullptr;
  Problem problem;
  std::int64_t bytes = 0;
  double block_bytes = 0;
  double us = 0;
};

/// The rows of a run that a fit can use, all of one arrangement of ranks.
struct MeasuredRun {
  std::vector<MeasuredTime> times;
  int ranks_per_node = 1;
  std::size_t disturbed = 0;  ///< rows that were left out, for they were disturbed
  std::size_t others = 0;     ///< rows that were left out for another reason: a reference's, a stream's, ...
};

/// Errors: unavailable if no row is left, with the reason; invalid_argument if rows differ in how many ranks share a
/// node, or have more than kMostFitted ranks.
[[nodiscard]] Result<MeasuredRun> measured_run(const std::vector<Row>& rows);

inline constexpr int kMostFitted = 256;      ///< ranks
inline constexpr std::size_t kFewSizes = 4;  ///< that a fit needs: half of them are predicted

struct FittedTime {
  MeasuredTime time;
  double us = 0;             ///< predicted from the sizes that were fitted
  bool is_held_out = false;  ///< its size was not among them

  [[nodiscard]] double error() const { return us / time.us - 1; }
};

struct Fit {
  Machine machine;                ///< fitted on all sizes
  std::vector<FittedTime> times;  ///< of the machine that is fitted on every other size
  std::vector<std::string> kept;  ///< costs that the rows say nothing about: as in the example
};

/// Errors: unavailable with fewer than kFewSizes sizes.
[[nodiscard]] Result<Fit> fit(const MeasuredRun& run, const std::string& name);
/// The median of |error| of those that were held out, or of the others; 0 of none.
[[nodiscard]] double median_error(const Fit& fit, bool held_out);

}  // namespace tutti::harness::simulate

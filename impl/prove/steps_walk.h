// SPDX-License-Identifier: Apache-2.0
// The steps of all ranks executed once, in units: for schedules of which no rank stands for all. A value is the sum of
// its contributions, which are random numbers, so that equal sums are equal contributions. Whoever waits is named where
// what it waits for comes, so that no rank is looked at in vain. Memory goes with the values: the outputs, the scratch
// and the messages in flight.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/prove/prove.h"
#include "impl/prove/steps.h"

namespace tutti {

/// What was derived of all ranks.
struct AllRanks {
  std::vector<Finding> findings;
  std::vector<Cost> costs;        ///< by rank; `depth` is the problem's
  bool has_heard_of_all = false;  ///< each rank, by messages and signals, when it ends; where that was asked for
  bool is_stuck = false;          ///< some rank cannot go on
  steps::ValueLabels labels;
};

struct WalkRequest {
  steps::Form form;
  bool counts_news = false;  ///< asks for has_heard_of_all
};

/// Bytes of the values and accesses that are kept of the buffers of all ranks during the walk.
[[nodiscard]] std::int64_t bytes_of_values(const Schedule& schedule);

/// Proves all obligations of prove.h in units.
[[nodiscard]] AllRanks walk_steps(const Schedule& schedule, const WalkRequest& request);

}  // namespace tutti

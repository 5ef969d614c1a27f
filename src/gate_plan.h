// SPDX-License-Identifier: Apache-2.0
// What `tutti gate` is asked to do: the other side, the cells, and how long it may take.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/expand.h"
#include "harness/gate/baseline.h"
#include "harness/gate/contest.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

/// The options of `tutti gate`, as they were typed.
struct GateRequest {
  Settings places;  ///< the machines that the ranks are on, and how they are reached
  std::string baseline, against, suite, ranks;
  std::string blocks = "8", cell_time = "200ms", timeout = "60s", seed = "1", bind;
  std::string junit, summary, csv, json, html;
  bool requires_times = false;
  bool only_lists = false;
};

/// What they mean.
struct GatePlan {
  std::vector<harness::Case> cases;
  harness::Conditions conditions;
  Reach reach;
  std::vector<harness::LeftOut> left_out;  ///< what the suite asks for and does not exist
  std::optional<harness::Baseline> baseline;
  std::string program;  ///< of the other build
  std::string backend;  ///< the other one
  harness::ContestOptions contest;
  std::chrono::nanoseconds cell_time{};
  std::chrono::nanoseconds timeout{};
  bool requires_times = false;
};

/// Errors: invalid_argument naming the option, or the suite's line; unavailable where the backend is missing.
[[nodiscard]] Result<GatePlan> plan_of(const GateRequest& request);

}  // namespace tutti::program

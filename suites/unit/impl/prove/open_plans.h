// SPDX-License-Identifier: Apache-2.0
// Plans of all ranks, open to changes: faults that only a plan can have.
#pragma once

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "impl/prove/prove.h"

namespace tutti {

/// Every rank's only segment.
inline std::vector<Plan> bind_all(const Schedule& schedule, BindRequest request) {
  std::vector<Plan> plans;
  for (request.rank = 0; request.rank < schedule.problem.ranks; ++request.rank) {
    Result<BoundCall> call = bind(schedule, request);
    EXPECT_TRUE(call.is_ok()) << call.status().message();
    if (!call.is_ok()) return {};
    EXPECT_EQ(call.value().segments(), 1);
    plans.push_back(call.value().plan(0));
  }
  return plans;
}

/// The plan with its ops, operands, exposures and header open to changes.
struct OpenPlan {
  explicit OpenPlan(const Plan& plan)
      : header(plan.header()),
        ops(plan.ops().begin(), plan.ops().end()),
        operands(plan.operands().begin(), plan.operands().end()),
        exposures(plan.exposures().begin(), plan.exposures().end()) {}
  [[nodiscard]] Plan closed() const { return {header, ops, operands, exposures}; }

  PlanHeader header;
  std::vector<PlanOp> ops;
  std::vector<PlanOperand> operands;
  std::vector<PlanExposure> exposures;
};

inline PlanSet set_of(const Schedule& schedule, std::span<const Plan> plans, const BindRequest& request, int slots) {
  const std::int64_t block = request.count * static_cast<std::int64_t>(size_of(request.dtype));
  return {.schedule = &schedule,
          .plans = plans,
          .slots = slots,
          .slot_bytes = request.resources.slot_bytes,
          .block_bytes = block,
          .block_stride = block};
}

}  // namespace tutti

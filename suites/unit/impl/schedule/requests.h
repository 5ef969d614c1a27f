// SPDX-License-Identifier: Apache-2.0
// Small calls and what they are bound to, for tests that say a plan literally.
#pragma once

#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/schedule/bind.h"

namespace tutti::small {

inline Schedule schedule_for(Collective collective, std::string_view name, int ranks, int root = 0) {
  return schedule_of(*find_algorithm(collective, name).value(),
                     {.collective = collective, .ranks = ranks, .root = root});
}

/// Floats, one cache line (16 of them) per slot, four slots.
inline BindRequest request_for(int rank, Count count, Buffers buffers = Buffers::shared) {
  return {.rank = rank,
          .count = count,
          .op = Op::sum,
          .buffers = buffers,
          .resources = {.slots = 4, .slot_bytes = 64, .scratch_bytes = 4096}};
}

inline BoundCall bound(const Schedule& schedule, const BindRequest& request) {
  auto call = bind(schedule, request);
  EXPECT_TRUE(call.is_ok()) << call.status().message();
  return call.is_ok() ? std::move(call).value() : BoundCall{};
}
/// The plan of a call that is one segment.
inline Plan plan_of(const Schedule& schedule, const BindRequest& request) {
  const BoundCall call = bound(schedule, request);
  EXPECT_EQ(call.segments(), 1);
  return call.plan(0);
}

}  // namespace tutti::small

// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

/// Bytes of scratch that the plan of a call on float has.
std::int64_t scratch_of(Collective collective, const char* algorithm, Op op, Buffers buffers, std::int64_t bytes,
                        int ranks = 2) {
  const auto domain = local::open_domain(local::shape_for(ranks)).value();
  const CommunicatorOptions options;
  const AfterBind after_bind;
  Binder binder({.domain = *domain, .rank = 1}, options, after_bind);
  const Schedule schedule = schedule_of(*find_algorithm(collective, algorithm).value(), {collective, ranks});
  const Call call{.collective = collective,
                  .op = op,
                  .count = bytes / static_cast<std::int64_t>(sizeof(float)),
                  .buffers = buffers,
                  .schedule = &schedule};
  return binder.bind(call, PlanCache::key_of(call)).value()->call.plan(0).header().scratch_bytes;
}

TEST(Binder, CopiesShortInputsOfSharedBuffersAndShowsLongOnes) {
  for (const Collective collective : {Collective::all_gather, Collective::broadcast}) {
    EXPECT_GT(scratch_of(collective, "direct", Op::none, Buffers::shared, 512), 0) << to_string(collective);
    EXPECT_EQ(scratch_of(collective, "direct", Op::none, Buffers::shared, 516), 0) << to_string(collective);
    EXPECT_GT(scratch_of(collective, "direct", Op::none, Buffers::private_, 516), 0) << to_string(collective);
  }
}

TEST(Binder, DoesNotCopyShortBlocksThatAreMany) {
  EXPECT_GT(scratch_of(Collective::all_to_all, "direct", Op::none, Buffers::shared, 512, 4), 0);
  EXPECT_EQ(scratch_of(Collective::all_to_all, "direct", Op::none, Buffers::shared, 512, 5), 0);
  EXPECT_EQ(scratch_of(Collective::bandwidth, "direct", Op::none, Buffers::shared, 8), 0);
}

TEST(Binder, DoesNotCopyWherePeersWriteTheOutput) {
  EXPECT_EQ(scratch_of(Collective::all_reduce, "two_shot", Op::sum, Buffers::shared, 512), 0);
  EXPECT_GT(scratch_of(Collective::all_reduce, "two_shot", Op::sum, Buffers::private_, 512), 0);
}

}  // namespace
}  // namespace tutti

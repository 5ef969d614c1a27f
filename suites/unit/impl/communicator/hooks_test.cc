// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/hooks.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/communicator/plan_cache.h"
#include "impl/execute/pace.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

std::unique_ptr<Communicator> hooked(Domain& domain, Hooks hooks) {
  return create_with_hooks(domain, 0, {.waiting = Waiting::yield, .prove_plans = false}, std::move(hooks)).value();
}

Work post_barrier(Communicator& communicator) { return communicator.post({.collective = Collective::barrier}).value(); }

TEST(Hooks, AfterBindGetsEveryNewCallOfTheWorldAndOfItsGroups) {
  const auto domain = local::open_domain(local::shape_for(1)).value();
  std::vector<std::string> bound;
  const auto world = hooked(*domain, {.after_bind = [&](int rank, const Call& call, BoundEntry& entry) {
    bound.push_back(std::to_string(rank) + " " + std::string(to_string(call.collective)) + " " + entry.schedule.name);
  }});
  float value = 1;
  for (int again = 0; again < 3; ++again) {
    ASSERT_TRUE(world->all_reduce(&value, &value, 1, Dtype::f32, Op::sum).is_ok());
  }
  EXPECT_THAT(bound, testing::ElementsAre("0 all_reduce one_shot"));
  const auto group = world->split(0, 0).value();
  bound.clear();
  ASSERT_TRUE(group->barrier().is_ok());
  EXPECT_THAT(bound, testing::ElementsAre("0 barrier dissemination"));
}

/// Holds a rank back as often as it is told to.
class Stubborn final : public Pace {
 public:
  [[nodiscard]] bool holds_back() override { return left > 0 && left-- > 0; }
  void went_on() override { ++moves; }

  int left = 0;
  int moves = 0;
};

TEST(Hooks, APaceHoldsBackTheWorldAndItsGroups) {
  const auto domain = local::open_domain(local::shape_for(1)).value();
  Stubborn pace;
  const auto world = hooked(*domain, {.pace = &pace});
  const auto group = world->split(0, 0).value();
  for (Communicator* const communicator : {world.get(), group.get()}) {
    pace.left = 2;
    pace.moves = 0;
    Work work = post_barrier(*communicator);
    EXPECT_FALSE(work.test().value());
    EXPECT_TRUE(work.test().value());
    EXPECT_GT(pace.moves, 0);
  }
}

}  // namespace
}  // namespace tutti

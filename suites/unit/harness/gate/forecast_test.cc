// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/forecast.h"

#include <gtest/gtest.h>

#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using namespace std::chrono_literals;

TEST(Forecast, ByThePlanALaunchHasItsCellsTimesAndAStart) {
  const Forecast forecast({.cell_time = 200ms, .launches = 4});
  std::vector<Case> cases{all_reduce_of(8), all_reduce_of(16)};
  EXPECT_EQ(forecast.blocks(cases, 1), 4 * (2 * 200ms + 350ms)) << "one group: the sizes of a collective";
  cases.push_back(all_reduce_of(8, "ring"));
  EXPECT_EQ(forecast.blocks(cases, 1), 4 * (3 * 200ms + 2 * 350ms)) << "two groups, each with launches of its own";
  EXPECT_EQ(forecast.blocks(cases, 8), 8 * forecast.blocks(cases, 1));
  cases[0].ranks_as = cases[1].ranks_as = cases[2].ranks_as = RanksAs::threads;
  EXPECT_EQ(forecast.blocks(cases, 1), 4 * (3 * 200ms + 2 * 150ms)) << "no processes to start";
}

TEST(Forecast, BlocksThatWereMeasuredScaleThePlan) {
  Forecast forecast({.cell_time = 100ms, .launches = 1});
  const std::vector<Case> both{all_reduce_of(8), all_reduce_of(8, "ring")};
  const std::vector<Case> one{all_reduce_of(8)};
  EXPECT_EQ(forecast.blocks(both, 1), 900ms);
  forecast.add(both, 450ms);
  EXPECT_EQ(forecast.blocks(both, 2), 900ms);
  EXPECT_EQ(forecast.blocks(one, 4), 900ms);
  forecast.add(both, 1350ms);  // on the whole as planned
  EXPECT_EQ(forecast.blocks(one, 1), 450ms);
}

}  // namespace
}  // namespace tutti::harness::gate

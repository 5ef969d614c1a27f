// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/budget.h"

#include <gmock/gmock.h>

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

constexpr double kBudgetMi = 1 << 20;
constexpr std::int64_t kBudgetEnd = 2'000;

TEST(Budget, LetsAllBeginWhereThereIsNoBudget) { EXPECT_TRUE(Budget(0).may_begin(Cell(), 1e12, kBudgetEnd).is_ok()); }

TEST(Budget, SkipsWhatIsLeftWhenTheBudgetIsOver) {
  const Budget budget(kBudgetEnd);
  EXPECT_TRUE(budget.may_begin(Cell(), 1024 * kBudgetMi, kBudgetEnd - 1).is_ok());
  EXPECT_THAT(budget.may_begin(Cell(), 1024 * kBudgetMi, kBudgetEnd).message(), HasSubstr("--budget: it was over"));
  EXPECT_TRUE(budget.may_begin(Cell(), kBudgetMi, kBudgetEnd + Budget::kLaterNs - 1).is_ok()) << "a short one, later";
  EXPECT_FALSE(budget.may_begin(Cell(), kBudgetMi, kBudgetEnd + Budget::kLaterNs).is_ok());
}

TEST(Budget, SkipsWhatTakesLongerThanIsLeft) {
  Budget budget(kBudgetEnd);
  budget.begin(Cell(), 1024 * kBudgetMi, 100, 1'000);
  budget.end(1'500);  // 400 beyond its share
  EXPECT_TRUE(budget.may_begin(Cell(), 1280 * kBudgetMi, 1'500).is_ok());
  EXPECT_THAT(budget.may_begin(Cell(), 1290 * kBudgetMi, 1'500).message(), HasSubstr("--budget: less is left"));
  Cell other;
  other.collective = Collective::broadcast;
  EXPECT_TRUE(budget.may_begin(other, 4096 * kBudgetMi, 1'500).is_ok()) << "nothing is known of its kind";
}

TEST(Budget, ForeseesNothingFromACellThatKeptToItsShare) {
  Budget budget(kBudgetEnd);
  budget.begin(Cell(), 1024 * kBudgetMi, 500, 1'000);
  budget.end(1'500);
  EXPECT_TRUE(budget.may_begin(Cell(), 1024 * kBudgetMi, 1'999).is_ok());
  budget.end(1'900);
  EXPECT_TRUE(budget.may_begin(Cell(), 1024 * kBudgetMi, 1'999).is_ok()) << "it has ended once";
}

}  // namespace
}  // namespace tutti::harness::measure

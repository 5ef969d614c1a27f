// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/pace.h"

#include <gmock/gmock.h>

namespace tutti::harness {
namespace {

using testing::HasSubstr;

constexpr double kPaceMi = 1 << 20;
constexpr std::int64_t kPaceEnd = 2'000;

TEST(Pace, LetsAllBeginWhereThereIsNoBudget) { EXPECT_TRUE(Pace(0).may_begin(Cell(), 1e12, kPaceEnd).is_ok()); }

TEST(Pace, SkipsWhatIsLeftWhenTheBudgetIsOver) {
  const Pace pace(kPaceEnd);
  EXPECT_TRUE(pace.may_begin(Cell(), 64 * kPaceMi, kPaceEnd - 1).is_ok());
  EXPECT_THAT(pace.may_begin(Cell(), 64 * kPaceMi, kPaceEnd).message(), HasSubstr("--budget: it was over"));
  EXPECT_TRUE(pace.may_begin(Cell(), kPaceMi, kPaceEnd).is_ok()) << "short ones always begin";
}

TEST(Pace, SkipsWhatTakesLongerThanIsLeft) {
  Pace pace(kPaceEnd);
  pace.begin(Cell(), 64 * kPaceMi, 100, 1'000);
  pace.end(1'500);  // 400 beyond its share
  EXPECT_TRUE(pace.may_begin(Cell(), 80 * kPaceMi, 1'500).is_ok());
  EXPECT_THAT(pace.may_begin(Cell(), 81 * kPaceMi, 1'500).message(), HasSubstr("--budget: less is left"));
  Cell other;
  other.collective = Collective::broadcast;
  EXPECT_TRUE(pace.may_begin(other, 1024 * kPaceMi, 1'500).is_ok()) << "nothing is known of its kind";
}

TEST(Pace, ForeseesNothingFromACellThatKeptToItsShare) {
  Pace pace(kPaceEnd);
  pace.begin(Cell(), 64 * kPaceMi, 500, 1'000);
  pace.end(1'500);
  EXPECT_TRUE(pace.may_begin(Cell(), 1024 * kPaceMi, 1'999).is_ok());
  pace.end(1'900);
  EXPECT_TRUE(pace.may_begin(Cell(), 1024 * kPaceMi, 1'999).is_ok()) << "it has ended once";
}

}  // namespace
}  // namespace tutti::harness

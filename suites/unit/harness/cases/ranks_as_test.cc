// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/ranks_as.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/case.h"

namespace tutti::harness::cases {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr RankKind kThrees{.name = "threes", .ranks_of_runner = 3};

TEST(RankKinds, EveryRankIsOneRunnersOwn) {
  std::vector<RankKind> kinds{kThrees};
  for (const RanksAs kind : rank_kinds()) kinds.push_back(*kind.operator->());
  for (const RankKind& kind : kinds) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      std::vector<int> all;
      for (int runner = 0; runner < kind.runners(ranks); ++runner) {
        const std::vector<int> own = kind.ranks_of(runner, ranks);
        EXPECT_THAT(own, testing::Not(IsEmpty())) << kind.name;
        all.insert(all.end(), own.begin(), own.end());
      }
      std::vector<int> rising(static_cast<std::size_t>(ranks));
      std::iota(rising.begin(), rising.end(), 0);
      EXPECT_EQ(all, rising) << kind.name << ", " << ranks;
    }
  }
}

TEST(RankKinds, TheLastRunnerMayHaveFewer) {
  EXPECT_EQ(kThrees.runners(7), 3);
  EXPECT_THAT(kThrees.ranks_of(2, 7), ElementsAre(6));
  EXPECT_THAT(RanksAs::threads->ranks_of(4, 7), ElementsAre(4));
  EXPECT_THAT(RanksAs::tasks->ranks_of(0, 3), ElementsAre(0, 1, 2));
}

TEST(RankKinds, AreKnownByName) {
  for (const RanksAs kind : rank_kinds()) EXPECT_EQ(parse_ranks_as(to_string(kind)).value(), kind);
  EXPECT_NE(RanksAs::threads, RanksAs(kThrees));
  EXPECT_THAT(parse_ranks_as("threes").status().message(), testing::HasSubstr("did you mean 'threads'?"));
}

TEST(RankKinds, OnlyTasksHaveOneThreadForAllSteps) {
  EXPECT_TRUE(RanksAs::tasks->is_one_thread());
  EXPECT_FALSE(RanksAs::blocks->is_one_thread()) << "a device has many";
  EXPECT_FALSE(kThrees.is_one_thread());
}

}  // namespace
}  // namespace tutti::harness::cases

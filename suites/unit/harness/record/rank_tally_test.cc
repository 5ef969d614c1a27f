// SPDX-License-Identifier: Apache-2.0
#include "harness/record/rank_tally.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::record {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

/// `count` samples of two ranks; rank 1 comes and ends later than rank 0.
std::vector<Sample> samples_of(int count, double came_us, double ended_us, int operations = 1) {
  const Sample one{.global_us = ended_us / operations,
                   .operations = operations,
                   .rank_us = {10.0 / operations, (ended_us - came_us) / operations},
                   .rank_arrived_us = {0, came_us}};
  return std::vector<Sample>(static_cast<std::size_t>(count), one);
}

TEST(RankTally, CountsArrivalsEndsAndOwnTimes) {
  RankTally tally;
  tally.add(samples_of(3, 2, 16), 1, true);
  tally.add(samples_of(2, 2, 16, 4), 1, true);  // durations of loops are divided, arrivals are not
  EXPECT_EQ(tally.came.operations, 5);
  EXPECT_DOUBLE_EQ(tally.came.time, 80);
  EXPECT_EQ(tally.came.ranks[1].last, 5);
  EXPECT_DOUBLE_EQ(tally.came.ranks[1].waited, 10);
  EXPECT_EQ(tally.ended.ranks[1].last, 5);
  EXPECT_DOUBLE_EQ(tally.ended.ranks[1].waited, 30);
  EXPECT_THAT(tally.own_us, ElementsAre(50, 70));
  EXPECT_DOUBLE_EQ(tally.middle_us, 60);
}

TEST(RankTally, RanksOfARootedCollectiveHaveNoOwnTime) {
  RankTally tally;
  tally.add(samples_of(3, 2, 16), 1, false);
  EXPECT_EQ(tally.came.ranks[1].last, 3);
  EXPECT_EQ(tally.ended.operations, 0);
  EXPECT_EQ(rank_results(tally, {}).front().own_ratio, 0);
}

TEST(RankTally, SamplesOfAnotherStateAndOfOlderFilesDoNotCount) {
  std::vector<Sample> samples = samples_of(3, 2, 16);
  samples[0].is_of_state = false;
  samples[1].rank_arrived_us.clear();
  samples[2].is_valid = false;  // late: that is what is looked for
  RankTally tally;
  tally.add(samples, 1, true);
  EXPECT_EQ(tally.came.operations, 1);
}

TEST(RankTally, AStreamsRankComesWhenItsLastOperationHasEnded) {
  RankTally tally;
  // Rank 1 needs 2 us more for each, and nobody waits for it until the last.
  tally.add_stream(std::vector<std::vector<double>>{{10, 10, 14}, {12, 12, 12}}, 1, true);
  EXPECT_EQ(tally.came.operations, 3);
  EXPECT_DOUBLE_EQ(tally.came.time, 12 + 12 + 12);
  EXPECT_EQ(tally.came.ranks[1].last, 2);  // they begin the first together
  EXPECT_DOUBLE_EQ(tally.came.ranks[1].waited, 2 + 4);
  EXPECT_EQ(tally.ended.ranks[1].last, 3);
  EXPECT_DOUBLE_EQ(tally.ended.ranks[1].waited, 2 + 4 + 2);
  EXPECT_THAT(tally.own_us, ElementsAre(34, 36));
}

TEST(RankTally, IsReadAgain) {
  RankTally tally;
  tally.add(samples_of(3, 2, 16), 1, true);
  const auto back = RankTally::from_json(tally.json());
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value().json(), tally.json());
}

TEST(RankTally, DamageIsRefused) {
  const auto said = [](const std::string& text) { return RankTally::from_json(text).status().message(); };
  EXPECT_THAT(said("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(said("{}"), HasSubstr("came"));
  const std::string none = R"({"operations":0,"time":0,"last":[],"waited":[]})";
  const std::string two = R"({"operations":1,"time":1,"last":[0,1],"waited":[0,1]})";
  const auto text = [](const std::string& came, const std::string& ended, const std::string& own,
                       const std::string& waits = "[[],[]]") {
    return R"({"came":)" + came + R"(,"waits":)" + waits + R"(,"ended":)" + ended + R"(,"own_us":)" + own +
           R"(,"middle_us":0})";
  };
  EXPECT_EQ(said(text(two, none, "[]")), "");
  EXPECT_THAT(said(text(two, none, "[1]")), HasSubstr("different numbers of ranks"));
  EXPECT_THAT(said(text(two, none, "[]", "[[]]")), HasSubstr("different numbers of ranks"));
  EXPECT_THAT(said(text(two, none, "[]", "[[],[[7,-1]]]")), HasSubstr("a count of -1 is not from 1 to "));
  EXPECT_THAT(said(text(two, none, "[]", "[[],[[7]]]")), HasSubstr("what ranks came to"));
  EXPECT_THAT(said(text(R"({"operations":1,"time":1,"last":[0],"waited":[0,1]})", none, "[]")),
              HasSubstr("1 ranks came last, and 2 were waited for"));
}

TEST(RankTally, OfSeveralCasesAddUpForAsManyRanks) {
  RankTally all, two, three;
  two.add(samples_of(3, 2, 16), 1, true);
  three.came.add(std::vector<double>{0, 1, 2}, 5);
  ASSERT_TRUE(all.add(two).is_ok());
  ASSERT_TRUE(all.add(two).is_ok());
  EXPECT_EQ(all.came.operations, 6);
  EXPECT_THAT(all.own_us, ElementsAre(60, 84));
  EXPECT_EQ(all.add(three).code(), Code::invalid_argument);
}

TEST(RankResults, HaveTheMedianAndTheLongWaitsForARank) {
  RankTally one, tally;
  one.add(samples_of(18, 2, 16), 1, true);
  ASSERT_TRUE(tally.add(one).is_ok());
  one = {};
  one.add(samples_of(2, 80, 100), 1, true);
  ASSERT_TRUE(tally.add(one).is_ok());
  const auto results = rank_results(tally, {});
  EXPECT_EQ(results[0].rank, 1);
  EXPECT_NEAR(results[0].median_us, 2, 0.03);
  EXPECT_NEAR(results[0].p95_us, 80, 1);
  EXPECT_EQ(results[1].median_us, 0);
  EXPECT_EQ(results[1].p95_us, 0);
  const auto back = RankTally::from_json(tally.json());
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(rank_results(back.value(), {})[0].p95_us, results[0].p95_us);
}

TEST(RankResults, NameTheStragglerFirstWithItsHost) {
  RankTally tally;
  tally.add(samples_of(40, 5, 16), 1, true);
  const std::vector<std::string> hosts{"a", "b"};
  const auto results = rank_results(tally, hosts);
  EXPECT_THAT(results, ElementsAre(Field(&RankResult::rank, 1), Field(&RankResult::rank, 0)));
  EXPECT_EQ(results[0].host, "b");
  EXPECT_TRUE(results[0].is_late);
  EXPECT_FALSE(results[0].is_slow);  // it ends last, 6 us of 16 after the other: an algorithm can have that shape
  EXPECT_DOUBLE_EQ(results[0].waited_share, 5.0 / 16);
  EXPECT_FALSE(results[1].is_late);
}

TEST(RankResults, ARankIsSlowOnceTheOthersHaveEndedBeforeHalfOfTheTime) {
  RankTally tally;
  tally.add(samples_of(40, 0, 19), 1, true);
  EXPECT_FALSE(rank_results(tally, {}).front().is_slow);
  tally.add(samples_of(40, 0, 23), 1, true);
  const auto results = rank_results(tally, {});
  EXPECT_EQ(results.front().rank, 1);
  EXPECT_TRUE(results.front().is_slow);
  EXPECT_FALSE(results.front().is_late);
}

TEST(RankResults, OfHealthyRanksNoneIsNamed) {
  RankTally tally;
  tally.add(samples_of(100, 0.5, 10.5), 1, true);
  for (const RankResult& one : rank_results(tally, {})) EXPECT_FALSE(one.is_late || one.is_slow) << one.rank;
}

}  // namespace
}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/story.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/draw/names.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::draw {
namespace {

Story story_for(Collective collective, const char* name, int ranks, int ranks_per_host = 0) {
  const Problem problem{.collective = collective, .ranks = ranks, .ranks_per_host = ranks_per_host};
  return story_of(schedule_of(*find_algorithm(collective, name).value(), problem)).value();
}

TEST(Story, EndsWithWhatTheCollectiveMeansForEveryAlgorithm) {
  int checked = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (int ranks = has_window(algorithm->collective) ? 2 : 1; ranks <= kMostDrawn; ++ranks) {
      for (const int root : {0, ranks - 1}) {
        for (const int hosts : {1, 2, 4}) {
          if (ranks % hosts != 0 || (hosts > 1 && !algorithm->is_by_hosts)) continue;
          const Problem problem{.collective = algorithm->collective,
                                .ranks = ranks,
                                .root = is_rooted(algorithm->collective) ? root : 0,
                                .ranks_per_host = hosts > 1 ? ranks / hosts : 0};
          const auto story = story_of(schedule_of(*algorithm, problem));
          ASSERT_TRUE(story.is_ok()) << story.status().message();
          for (int rank = 0; rank < ranks; ++rank) {
            const Parts& output = story.value().held_by(rank, story.value().rounds);
            for (std::size_t unit = 0; unit < output.size(); ++unit, ++checked) {
              ASSERT_TRUE(is_done(story.value(), rank, static_cast<int>(unit), output[unit]))
                  << to_string(algorithm->collective) << " " << algorithm->name << " P=" << ranks << " root " << root
                  << " hosts " << hosts << ": rank " << rank << " unit " << unit << " holds "
                  << name_of(story.value(), output[unit], Script::plain);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 10'000);
}

TEST(Story, OfARingSendsOneMessageToTheNextRankInEveryRound) {
  const Story story = story_for(Collective::all_reduce, "ring", 5);
  EXPECT_EQ(story.rounds, 8);
  ASSERT_EQ(story.transfers.size(), 40U);
  for (const Transfer& one : story.transfers) {
    EXPECT_EQ(one.to, (one.from + 1) % 5);
    EXPECT_EQ(one.received, one.sent + 1);
    EXPECT_EQ(one.kind, TransferKind::message);
  }
  EXPECT_EQ(name_of(story, story.transfers.front().parts.front(), Script::plain), "a:0");
}

TEST(Story, OfTwoShotReadsMeetsAndStores) {
  const Story story = story_for(Collective::all_reduce, "two_shot", 4);
  EXPECT_EQ(story.rounds, 2);
  for (const Transfer& one : story.transfers)
    EXPECT_EQ(one.kind, one.sent == 0 ? TransferKind::read : TransferKind::store);
  EXPECT_EQ(story.mutual_waits, (std::vector<MutualWait>{{0, 0, 3}, {2, 0, 3}}));
  EXPECT_EQ(story.in_hand.size(), 4U);
}

TEST(Story, OfTwoHostsWaitsWithinEachHost) {
  const Story story = story_for(Collective::all_reduce, "two_level", 6, 3);
  EXPECT_EQ(story.mutual_waits.front(), (MutualWait{0, 0, 2}));
  EXPECT_EQ(story.mutual_waits[1], (MutualWait{0, 3, 5}));
}

TEST(Story, OfARankThatNeverGetsOnIsRefuted) {
  Schedule schedule = schedule_of(*find_algorithm(Collective::all_reduce, "ring").value(),
                                  {.collective = Collective::all_reduce, .ranks = 3});
  const auto step = schedule.step;
  schedule.step = [step](int rank, int index) {
    return rank == 0 && index == 2 ? wait(only(1), 1) : step(rank, index);
  };
  const auto story = story_of(schedule);
  ASSERT_FALSE(story.is_ok());
  EXPECT_NE(story.status().message().find("rank 0 never gets past step 2"), std::string::npos)
      << story.status().message();
}

TEST(Names, SayTheUnitAndTheRanks) {
  const Story sums = story_for(Collective::all_reduce, "ring", 5);
  EXPECT_EQ(name_of(sums, {.unit = 1, .ranks = 0b00011}, Script::picture), "b 0+1");
  EXPECT_EQ(name_of(sums, {.unit = 1, .ranks = 0b10111}, Script::picture), "b 0-2,4");
  EXPECT_EQ(name_of(sums, {.unit = 1, .ranks = 0b11111}, Script::picture), "\u03a3b");
  EXPECT_EQ(name_of(sums, {.unit = 1, .ranks = 0b11111}, Script::plain), "b*");
  EXPECT_EQ(name_of(sums, {}, Script::plain), "");
  EXPECT_EQ(name_of(story_for(Collective::all_gather, "ring", 3), {.unit = 0, .ranks = 0b100}, Script::plain), "c");
  EXPECT_EQ(name_of(story_for(Collective::all_to_all, "linear", 3), {.unit = 2, .ranks = 0b010}, Script::plain), "b2");
  EXPECT_EQ(width_of("\u03a3b"), 2U);
}

}  // namespace
}  // namespace tutti::harness::draw

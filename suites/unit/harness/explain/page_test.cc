// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/page.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explain/words.h"
#include "harness/text/text.h"

namespace tutti::harness::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Story {
  const Algorithm* algorithm;
  Schedule schedule;
  Example example;
  Replay told;
};

Story story_of(Collective collective, std::string_view name, int ranks, int root = 0) {
  const Algorithm* algorithm = find_algorithm(collective, name).value();
  const Problem problem{collective, ranks, root};
  Schedule schedule = schedule_of(*algorithm, {base_of(collective), ranks, root});
  Example example{.problem = problem};
  const Op op = is_reducing(collective) ? Op::sum : Op::none;
  if (has_data(collective)) example = example_of(*algorithm, problem, Dtype::f32, op).value();
  Replay told = replay(schedule, example).value();
  return {algorithm, std::move(schedule), std::move(example), std::move(told)};
}

std::vector<std::string> sentences_of(const Story& story, int rank) {
  const Words words(story.schedule, story.example);
  std::vector<std::string> list;
  std::vector<Told> before;
  for (const Told& told : story.told.steps[static_cast<std::size_t>(rank)]) {
    list.push_back(words.sentence(told, before));
    if (const std::string sum = words.arithmetic(told); !sum.empty()) list.back() += ": " + sum;
    before.push_back(told);
  }
  return list;
}

std::vector<std::pair<const Algorithm*, int>> each_on(std::span<const Algorithm* const> algorithms,
                                                      std::initializer_list<int> ranks) {
  std::vector<std::pair<const Algorithm*, int>> list;
  for (const Algorithm* algorithm : algorithms) {
    for (const int number : ranks) list.emplace_back(algorithm, number);
  }
  return list;
}

TEST(Words, TellARingInWholeSentences) {
  EXPECT_THAT(sentences_of(story_of(Collective::all_reduce, "ring", 3), 0),
              ElementsAre("sends unit a of its input to rank 1",
                          "receives unit c from rank 2, adds unit c of its input and sends the result to rank 1: 9 + 3 "
                          "= 12",
                          "receives unit b from rank 2, adds unit b of its input, stores the result as unit b of its "
                          "output and sends it to rank 1: 13 + 2 = 15",
                          "receives unit a from rank 2, stores it as unit a of its output and sends it to rank 1",
                          "receives unit c from rank 2 and stores it as unit c of its output"));
}

TEST(Words, TellWhoMayTouchWhatAndUntilWhen) {
  EXPECT_THAT(
      sentences_of(story_of(Collective::all_reduce, "two_shot", 3), 1),
      ElementsAre("tells ranks 0 and 2: \"you may read your unit of my input and write your unit of my output\"",
                  "waits for ranks 0 and 2 to say \"you may read unit b of my input and write unit b of my "
                  "output\"",
                  "adds unit b of every rank's input and stores the result as unit b of every rank's output: 2 "
                  "+ 5 + 8 = 15",
                  "tells ranks 0 and 2: \"I am done\"",
                  "waits for ranks 0 and 2 to say \"I am done\": its output is complete, and no rank reads its "
                  "input any more"));
}

TEST(Words, TellAListThatIsNotDividedAsAWhole) {
  EXPECT_THAT(sentences_of(story_of(Collective::broadcast, "knomial", 3, 1), 2),
              ElementsAre("receives the list from rank 1 and stores it as its output"));
  EXPECT_THAT(sentences_of(story_of(Collective::broadcast, "direct", 2, 1), 0),
              ElementsAre("waits for rank 1 to say \"you may read my input\"",
                          "reads rank 1's input and stores it as its output", "tells rank 1: \"I am done\""));
}

TEST(Words, TellSeveralSendersAtOnce) {
  EXPECT_THAT(
      sentences_of(story_of(Collective::reduce, "knomial", 4), 0),
      ElementsAre("receives the list from each of ranks 1, 2 and 3, adds them and its input, and stores the result "
                  "as its output: 1 + 1 + 1 + 1 = 4"));
}

TEST(Words, NameWhatTravelsThroughScratch) {
  const Story story = story_of(Collective::all_to_all, "bruck", 4);
  EXPECT_THAT(sentences_of(story, 0),
              testing::Contains("receives blocks a and c from rank 3, and stores them as units a "
                                "and c of its scratch"));
  const Words words(story.schedule, story.example);
  for (const Told& told : story.told.steps[0])
    EXPECT_EQ(told.round != 0, words.cell(told).size() > 2) << words.cell(told);
}

TEST(Words, TellABarrierByItsRounds) {
  EXPECT_THAT(sentences_of(story_of(Collective::barrier, "dissemination", 4), 0),
              ElementsAre("tells rank 1: \"I am here (round 1)\"", "waits for rank 3 to say \"I am here (round 1)\"",
                          "tells rank 2: \"I am here (round 2)\"", "waits for rank 2 to say \"I am here (round 2)\""));
}

TEST(Words, NameRanksInRuns) {
  EXPECT_EQ(rank_list({5}), "rank 5");
  EXPECT_EQ(rank_list({2, 0}), "ranks 0 and 2");
  EXPECT_EQ(rank_list({1, 2, 3}), "ranks 1, 2 and 3");
  EXPECT_EQ(rank_list({4, 1, 2, 3}), "ranks 1 to 4");
  EXPECT_EQ(rank_list({0, 1, 2, 4}), "ranks 0, 1, 2 and 4");
}

TEST(Page, ShowsWhatTravelsRoundByRound) {
  const Story story = story_of(Collective::all_reduce, "ring", 3);
  const std::string page = steps_page(*story.algorithm, story.schedule, story.example, story.told);
  EXPECT_THAT(page, HasSubstr("  round   rank 0   rank 1   rank 2\n"
                              "      1   2>+c>1   0>+a>2   1>+b>0\n"
                              "      2   2>+b>1   0>+c>2   1>+a>0\n"
                              "      3   2>a>1    0>b>2    1>c>0\n"
                              "      4   2>c      0>a      1>b\n"));
  EXPECT_THAT(page, HasSubstr("`2>a>1` takes a from rank 2 and gives it to rank 1; `2>+c>1` takes c from rank 2,\n  "
                              "combines it with its own and gives it to rank 1.\n"));
  EXPECT_THAT(page, HasSubstr("  ranks 1 and 2 do the same, each in its own place.\n"));
  EXPECT_THAT(page, Not(HasSubstr("\n  rank 1\n")));
}

TEST(Page, ShowsBothBuffersOfEveryRankBeforeAndAfter) {
  const Story story = story_of(Collective::all_gather, "direct", 2);
  const auto run = run_example(story.example, story.schedule);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_THAT(introduction(story.example, run.value()), HasSubstr("             input     output\n"
                                                                  "                       a    b\n"
                                                                  "  rank 0     1 2       . .  . .\n"
                                                                  "  rank 1     3 4       . .  . .\n"));
  EXPECT_THAT(result_page(story.example, run.value()), HasSubstr("  rank 0     1 2       1 2  3 4\n"
                                                                 "  rank 1     3 4       1 2  3 4\n"));
}

TEST(Page, OfAVFormShowsABlockWithoutNumbersAndAGap) {
  const Story story = story_of(Collective::all_gather_v, "ring", 4);
  const auto run = run_example(story.example, story.schedule);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  const std::string before = introduction(story.example, run.value());
  EXPECT_THAT(before, HasSubstr("             input     output\n"
                                "                       a    b    c      d\n"
                                "  rank 0     1 2       . .  -  _ . . .  .\n"
                                "  rank 1     -         . .  -  _ . . .  .\n"
                                "  rank 2     3 4 5     . .  -  _ . . .  .\n"
                                "  rank 3     6         . .  -  _ . . .  .\n"));
  EXPECT_THAT(before, HasSubstr("`-` is a block without numbers,\n  `_` a gap between blocks"));
  EXPECT_THAT(before, HasSubstr("The blocks have 2, 0, 3, 1 numbers."));
  EXPECT_THAT(result_page(story.example, run.value()), HasSubstr("  rank 1     -         1 2  -  _ 3 4 5  6\n"));
}

TEST(Page, OfAllToAllVKeepsBlocksBelowEachOtherThoughEachRankHasOtherLengths) {
  const Story story = story_of(Collective::all_to_all_v, "linear", 3);
  const auto run = run_example(story.example, story.schedule);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_THAT(result_page(story.example, run.value()),
              HasSubstr("  rank 0      1  2      -         _  3  4  5     1  2      -         _ 11 12 13\n"));
}

TEST(Words, SayWhichBlockIsEmptyAndWhichStepsTakeTurns) {
  const std::vector<std::string> sentences = sentences_of(story_of(Collective::all_to_all_v, "pairwise", 3), 0);
  EXPECT_THAT(sentences, testing::Contains(HasSubstr(", slice by slice in turn with step ")));
  EXPECT_THAT(sentences, testing::Contains(HasSubstr("block b of its input to rank 1 (it is empty)")));
}

TEST(Page, OfABarrierDrawsWhoSleepsAndWhoWaits) {
  EXPECT_EQ(barrier_page({.enters_ns = {0, 50'000'000}, .leaves_ns = {100'000'000, 100'000'000}}),
            "\n                  enters        leaves\n"
            "  rank 0        0.000 ms    100.000 ms   ============================================================|\n"
            "  rank 1       50.000 ms    100.000 ms   ..............................==============================|\n"
            "\n  `.` is asleep, `=` waits in the barrier, `|` leaves it.\n");
}

TEST(Page, OfABarrierDrawsNobodyAsleepWhereARankIsAlone) {
  EXPECT_THAT(barrier_page({.enters_ns = {400}, .leaves_ns = {480}}), HasSubstr("0.000 ms      0.000 ms   =|\n"));
}

TEST(Page, SaysWhereTheHalvesDiffer) {
  RealRun run;
  run.before = run.after = {{.input = {1}, .output = {1}}};
  EXPECT_THAT(halves_page({run, run, true}), HasSubstr("Equal, bit for bit"));
  EXPECT_THAT(halves_page({run, run, false}), HasSubstr("NOT equal"));
}

TEST(Page, FitsItsWidthForEveryAlgorithm) {
  for (const Collective collective : every_collective()) {
    for (const auto& [algorithm, ranks] : each_on(algorithms_of(collective), {1, 2, 3, 4, kMostExplained})) {
      const Story story = story_of(collective, algorithm->name, ranks);
      std::istringstream page(steps_page(*story.algorithm, story.schedule, story.example, story.told));
      for (std::string line; std::getline(page, line);) {
        EXPECT_LE(line.size(), 120U) << algorithm->name << " on " << ranks << "\n" << line;
      }
    }
  }
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 2, 8), "one two\n  three\n");
  EXPECT_EQ(wrapped("short", 4), "short\n");
  EXPECT_EQ(wrapped("unbreakable", 2, 4), "unbreakable\n");
}

}  // namespace
}  // namespace tutti::harness::explain

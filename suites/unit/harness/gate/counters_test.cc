// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/topology.h"
#include "impl/algorithms/algorithm.h"
#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::HasSubstr;

Topology topology_for(const Case& one, const char* hosts = "") {
  Conditions conditions;
  if (*hosts != '\0') conditions.topology.hosts = parse_hosts(hosts).value();
  return topology_of(topology_spec_of(one, conditions), one.ranks, {}).value();
}

Counters ring_of_four() {
  Case one = all_reduce_of(4096, "ring");
  one.ranks = 4;
  const auto counters = counters_of(one, topology_for(one));
  EXPECT_TRUE(counters.is_ok()) << counters.status().message();
  return counters.value();
}

// 2(P-1) messages and 2(P-1)/P of the bytes on each of the ranks.
TEST(Counters, AreThoseOfTheTextbook) {
  const Counters ring = ring_of_four();
  EXPECT_EQ(ring.algorithm, "ring");
  EXPECT_EQ(ring.messages, 4 * 2 * 3);
  EXPECT_EQ(ring.bytes, 4 * (2 * 3 * 4096 / 4));
}

TEST(Counters, StepsThatAreNotWhatTheirFormulasSayAreRefuted) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring").value();
  Schedule schedule = schedule_of(*ring, {.collective = Collective::all_reduce, .ranks = 4, .root = 0});
  EXPECT_EQ(counted_cost(schedule).value().messages, 4 * 2 * 3);
  const auto stated = schedule.cost;
  schedule.cost = [&](int rank) {
    Cost less = stated(rank);
    less.messages -= rank == 2 ? 1 : 0;
    return less;
  };
  const auto refuted = counted_cost(schedule);
  EXPECT_EQ(refuted.status().code(), Code::refuted);
  EXPECT_THAT(refuted.status().message(), HasSubstr("rank 2: its formulas say 5 messages"));
}

TEST(Counters, AutoIsWhatIsChosenForTheHosts) {
  Case one = all_reduce_of(64);
  one.ranks_as = RanksAs::processes;
  one.transport = "tcp";
  const Topology on_two = topology_for(one, "a:1,b:1");
  const auto counters = counters_of(one, on_two);
  ASSERT_TRUE(counters.is_ok()) << counters.status().message();
  EXPECT_EQ(counters.value().algorithm, chosen_algorithm(one, on_two, 2));
  EXPECT_NE(counters_of(one, topology_for(one, "a:2")).value().algorithm, counters.value().algorithm);
}

TEST(Counters, OfTwoLevelsAreThoseOfTheHostsThatThereAre) {
  Case one = all_reduce_of(4096, "two_level");
  one.ranks = 4;
  one.ranks_as = RanksAs::processes;
  one.transport = "tcp";
  const auto counters = counters_of(one, topology_for(one, "a:2,b:2"));
  ASSERT_TRUE(counters.is_ok()) << counters.status().message();
  EXPECT_EQ(counters.value().messages, 4 * 2 * (2 - 1)) << "a ring over two hosts, by each rank";
}

TEST(Counters, AutoIsWhatIsChosen) {
  const Topology topology = topology_for(all_reduce_of(8));
  const auto chosen = counters_of(all_reduce_of(8), topology);
  ASSERT_TRUE(chosen.is_ok());
  EXPECT_NE(chosen.value().algorithm, "auto");
  EXPECT_EQ(counters_of(all_reduce_of(8, "rnig"), topology).status().code(), Code::invalid_argument);
}

TEST(Counters, SurviveTheirText) {
  const CountersByCell all{{"a", ring_of_four()},
                           {"b", {.algorithm = "direct", .messages = 0, .bytes = 7, .rounds = 3}}};
  EXPECT_EQ(counters_from_json(to_json(all)), all);
  EXPECT_TRUE(counters_from_json("tutti: unknown option").empty());
  EXPECT_TRUE(counters_from_json(R"({"costs": [{"cell": "a", "algorithm": "ring"}]})").empty());
}

TEST(Counters, WhyThereAreNoneSurvivesItsTextToo) {
  const ReasonsByCell reasons{{"a", "no such algorithm"}, {"b", "may not trace"}};
  const std::string text = to_json({{"b", ring_of_four()}}, reasons);
  EXPECT_EQ(reasons_from_json(text), reasons);
  EXPECT_EQ(counters_from_json(text), (CountersByCell{{"b", ring_of_four()}}));
  EXPECT_TRUE(reasons_from_json(to_json({{"b", ring_of_four()}})).empty());
  EXPECT_TRUE(reasons_from_json("[]").empty());
}

TEST(Counters, ThatNobodyElseHasCountedAreHeldToNothing) {
  Counters mine = ring_of_four();
  Evidence evidence = evidence_around(1, 0);
  require_no_footprint(evidence, mine, true);
  mine.footprint = {.allocations = 0, .system_calls = 0};
  require_no_footprint(evidence, mine, true);
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::same);
  mine.footprint->system_calls = 16;
  require_no_footprint(evidence, mine, false);
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::same) << "those of the clock";
  mine.footprint->allocations = 2;
  require_no_footprint(evidence, mine, true);
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::slower);
  EXPECT_EQ(
      judge_finally(evidence).reason,
      "counted, not timed: 2 allocations in 16 operations, which need none, 16 system calls in 16 operations, which "
      "need none");
}

TEST(Counters, MoreOfTheSameAlgorithmIsSlower) {
  const SideNames names{.other = "base"};
  const Counters before = ring_of_four();
  Counters now = before;
  Evidence evidence = evidence_around(1, 0);
  EXPECT_TRUE(compare_counters(evidence, now, before, names));
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::same);
  now.messages += 1;
  now.rounds += 2;
  compare_counters(evidence, now, before, names);
  const Judgement judgement = judge_finally(evidence);
  EXPECT_EQ(judgement.opinion, Opinion::slower);
  EXPECT_EQ(judgement.reason, fmt::format("counted, not timed: messages 25, of base 24, rounds {}, of base {}",
                                          now.rounds, before.rounds));
}

TEST(Counters, LessIsNoMistakeAndAnotherAlgorithmIsTold) {
  const SideNames names{.other = "base"};
  const Counters before = ring_of_four();
  Counters now = before;
  now.bytes -= 1;
  Evidence evidence = evidence_around(1, 0);
  compare_counters(evidence, now, before, names);
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::same);
  now.algorithm = "halving";
  now.bytes += 1000;
  EXPECT_FALSE(compare_counters(evidence, now, before, names));
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::same);
  EXPECT_EQ(judge_finally(evidence).reason, "algorithm halving, of base ring");
}

}  // namespace
}  // namespace tutti::harness::gate

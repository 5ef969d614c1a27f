// SPDX-License-Identifier: Apache-2.0
// The labels of a schedule in units are those of its plans.
#include <map>

#include <gtest/gtest.h>

#include "impl/prove/prove_steps.h"
#include "impl/prove/steps_walk.h"
#include "suites/unit/impl/prove/mutants.h"

namespace tutti {
namespace {

Labels labels_of_plans(const Schedule& schedule) {
  const auto proof = prove(schedule, narrow_request_for(schedule, false));
  EXPECT_TRUE(proof.is_ok() && proof.value().holds());
  return proof.value().labels;
}

std::vector<Problem> problems_of(const Algorithm& algorithm, int ranks) {
  std::vector<Problem> problems{
      {.collective = algorithm.collective, .ranks = ranks, .root = is_rooted(algorithm.collective) ? ranks / 2 : 0}};
  for (const int per_host : {2, 3}) {
    if (!algorithm.is_by_hosts || ranks % per_host != 0 || per_host == ranks) continue;
    problems.push_back(problems.front());
    problems.back().ranks_per_host = per_host;
  }
  return problems;
}

TEST(UnitLabels, AreThoseOfThePlans) {
  std::map<std::string, int> seen;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17}) {
      for (const Problem& problem : problems_of(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        const std::string name = std::string(to_string(problem.collective)) + " " + std::string(algorithm->name) +
                                 " on " + std::to_string(ranks) + " ranks, " + std::to_string(problem.ranks_per_host) +
                                 " per host";
        const Labels labels = labels_of_plans(schedule);
        const auto proof = prove_steps(schedule);
        ASSERT_TRUE(proof.is_ok()) << name << proof.status().message();
        const StepsProof& units = proof.value();
        ++seen[units.keeps_order ? (*units.keeps_order ? "order" : "no order") : "order unknown"];
        ++seen[units.same_bits ? (*units.same_bits ? "same bits" : "other bits") : "bits unknown"];
        ++seen[units.sends_are_stable ? "stable" : "not stable"];
        EXPECT_EQ(units.keeps_order.value_or(labels.keeps_order), labels.keeps_order) << name;
        EXPECT_EQ(units.same_bits.value_or(labels.same_bits), labels.same_bits) << name;
        EXPECT_EQ(units.sends_are_stable, labels.sends_are_stable) << name;
        // All ranks executed say the same of values.
        const bool has_channels = schedule.shape.largest_message > 0;
        const AllRanks all =
            walk_steps(schedule, {.form = {.slots = has_channels ? std::max(1, schedule.least_slots(1)) : 1}});
        EXPECT_EQ(all.labels.keeps_order, labels.keeps_order) << name;
        EXPECT_EQ(all.labels.same_bits, labels.same_bits) << name;
      }
    }
  }
  for (const auto& [what, count] : seen) std::printf("%s: %d\n", what.c_str(), count);
  EXPECT_GT(seen["no order"], 50);
  EXPECT_GT(seen["not stable"], 5);
  EXPECT_EQ(seen["order unknown"], 0);
  EXPECT_EQ(seen["bits unknown"], 0);
}

/// Ranks that add up in another order get other bits, and whoever begins elsewhere does not keep the order.
TEST(UnitLabels, AreLostWithTheOrder) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 5);
  const Schedule whole = one_shot.schedule();
  const auto labels_of = [](const Schedule& schedule) { return walk_steps(schedule, {}).labels; };
  EXPECT_TRUE(*labels_of(whole).keeps_order && *labels_of(whole).same_bits);
  for (Step& step : one_shot[3]) {
    if (step.verb == Verb::move && step.is_final) std::swap(step.sources.items[0], step.sources.items[1]);
  }
  const Schedule swapped = one_shot.schedule();
  EXPECT_FALSE(*labels_of(swapped).keeps_order);
  EXPECT_FALSE(*labels_of(swapped).same_bits);
  const Labels of_plans = labels_of_plans(swapped);
  EXPECT_FALSE(of_plans.keeps_order || of_plans.same_bits);
}

}  // namespace
}  // namespace tutti

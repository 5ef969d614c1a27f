// SPDX-License-Identifier: Apache-2.0
// Mutants of every algorithm, on more ranks and with more faults than the unit tests have (suites/unit/impl/prove): the
// steps in units, by one rank or by all, get the verdict of the plans. A plan with a fault that all ranks' plans refute
// does not refine its steps. Some minutes.
#include "suites/unit/impl/prove/mutants.h"

#include <map>

#include <gtest/gtest.h>

#include "impl/prove/quotient.h"
#include "impl/prove/steps_walk.h"
#include "suites/unit/impl/prove/plan_mutants.h"

namespace tutti {
namespace {

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_string(finding) + "\n";
  return text;
}

std::string verdict_of_steps(const Schedule& schedule, steps::Form form) {
  const AllRanks all = walk_steps(schedule, {.form = form, .counts_news = true});
  const bool must_synchronise = schedule.synchronises || schedule.problem.collective == Collective::barrier;
  if (all.findings.empty() && must_synchronise && !all.has_heard_of_all) return "can end before a rank has started\n";
  return text_of(all.findings);
}

std::string verdict_of_one(const Schedule& schedule, const Symmetry& symmetry, steps::Form form) {
  Program program;
  for (int i = 0; i < schedule.step_count(0); ++i) program.push_back(schedule.step(0, i));
  return text_of(prove_one_rank(schedule, symmetry, program, form).findings);
}

std::vector<Problem> problems_of(const Algorithm& algorithm, int ranks) {
  std::vector<Problem> problems{
      {.collective = algorithm.collective, .ranks = ranks, .root = is_rooted(algorithm.collective) ? ranks - 2 : 0}};
  if (has_window(algorithm.collective)) problems.back().pairing.window = 3;
  if (algorithm.is_by_hosts && ranks % 3 == 0) {
    problems.push_back(problems.back());
    problems.back().ranks_per_host = 3;
  }
  if (algorithm.is_by_caches) {
    problems.push_back(problems.back());
    problems.back().ranks_per_cache = 2;
  }
  return problems;
}

std::vector<Fault> all_faults() {
  std::vector<Fault> faults(kFaults.begin(), kFaults.end());
  faults.insert(faults.end(), kMoreFaults.begin(), kMoreFaults.end());
  return faults;
}

struct Counts {
  int proved = 0;
  int refuted = 0;
  int by_one = 0;
};

void judge(const Schedule& schedule, const std::string& name, Counts& counts) {
  if (!find_flaws(schedule).empty()) return;
  const auto symmetry = has_data(schedule.problem.collective) ? find_symmetry(schedule) : std::nullopt;
  for (const bool is_in_place : {false, true}) {
    if (is_in_place && schedule.stages_in_place) continue;
    const BindRequest request = narrow_request_for(schedule, is_in_place);
    const steps::Form form{.slots = request.resources.slots, .is_in_place = is_in_place};
    const std::string of_plans = findings_of(schedule, request);
    const std::string of_steps = verdict_of_steps(schedule, form);
    ++(of_plans.empty() ? counts.proved : counts.refuted);
    EXPECT_EQ(of_plans.empty(), of_steps.empty()) << name << "\nplans: " << of_plans << "\nsteps: " << of_steps;
    if (!symmetry) continue;
    ++counts.by_one;
    const std::string of_one = verdict_of_one(schedule, *symmetry, form);
    EXPECT_EQ(of_plans.empty(), of_one.empty()) << name << "\nplans: " << of_plans << "\none: " << of_one;
  }
}

/// `broken`: the rank with the fault; -1: all ranks.
void judge_mutants(const Algorithm& algorithm, const Problem& problem, int broken, Counts& counts) {
  const Schedule base = schedule_of(algorithm, problem);
  const Programs whole = programs_of(base);
  const int model = std::max(0, broken);
  for (const Fault fault : all_faults()) {
    for (int index = 0; index < static_cast<int>(whole.ranks[static_cast<std::size_t>(model)].size()); ++index) {
      Programs mutant = whole;
      bool is_broken = true;
      for (int rank = 0; rank < problem.ranks; ++rank) {
        if (broken >= 0 && rank != broken) continue;
        is_broken &= index < static_cast<int>(mutant[rank].size()) && break_step(base, mutant[rank], index, fault);
      }
      if (!is_broken) continue;
      judge(mutant.schedule(),
            std::string(to_string(problem.collective)) + " " + std::string(algorithm.name) + " on " +
                std::to_string(problem.ranks) + " ranks, rank " + std::to_string(broken) + " step " +
                std::to_string(index) + " " + to_string(fault),
            counts);
    }
  }
}

TEST(Mutants, GetTheVerdictOfTheirPlans) {
  Counts counts;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {6, 7, 8}) {
      for (const Problem& problem : problems_of(*algorithm, ranks)) {
        for (const int broken : {-1, 0, 2, ranks - 1}) judge_mutants(*algorithm, problem, broken, counts);
      }
    }
  }
  std::printf("mutants: %d proved, %d refuted; one rank stood for all in %d\n", counts.proved, counts.refuted,
              counts.by_one);
  EXPECT_GT(counts.proved + counts.refuted, 7000);
  EXPECT_GT(counts.refuted, 3000);
  EXPECT_GT(counts.by_one, 3000);
}

TEST(PlanMutants, AreRefusedOfOneRankIfAllRanksRefuteThem) {
  Verdicts verdicts;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {4, 5, 6}) {
      for (const Problem& problem : problems_of(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        for (const Form& form : forms_of(schedule)) {
          const BoundForm bound(schedule, form);
          for (int rank = 0; rank < ranks; ++rank) judge_faults(bound, rank, verdicts);
        }
      }
    }
  }
  std::printf("plans with a fault: %d refused by both, %d by refines alone, %d by neither, %d by the proof alone\n",
              verdicts.by_both, verdicts.by_refines_alone, verdicts.by_neither, verdicts.by_proof_alone);
  EXPECT_EQ(verdicts.by_proof_alone, 0) << verdicts.example;
  EXPECT_GT(verdicts.by_both, 1'000'000);
}

}  // namespace
}  // namespace tutti

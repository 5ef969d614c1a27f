// SPDX-License-Identifier: Apache-2.0
// The steps of all ranks in units: the same verdicts as those of the plans, and what refutes a schedule is named.
#include "impl/prove/steps_walk.h"

#include <map>

#include <gmock/gmock.h>

#include "impl/prove/copies.h"
#include "impl/prove/prove_steps.h"
#include "suites/unit/impl/prove/mutants.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::string verdict_of_all(const Schedule& schedule, steps::Form form) {
  const AllRanks all = walk_steps(schedule, {.form = form, .counts_news = true});
  std::string text;
  for (const Finding& finding : all.findings) text += to_string(finding) + "\n";
  const bool must_synchronise = schedule.synchronises || schedule.problem.collective == Collective::barrier;
  if (text.empty() && must_synchronise && !all.has_heard_of_all) text = "can end before a rank has started\n";
  return text;
}

std::vector<Problem> cases_of(const Algorithm& algorithm, int ranks) {
  std::vector<Problem> problems;
  for (const int root : {0, ranks - 1}) {
    if (root > 0 && !is_rooted(algorithm.collective)) continue;
    problems.push_back({.collective = algorithm.collective, .ranks = ranks, .root = root});
    if (has_window(algorithm.collective)) problems.back().pairing.window = 3;
    if (!algorithm.is_by_hosts || ranks % 2 != 0) continue;
    problems.push_back(problems.back());
    problems.back().ranks_per_host = 2;
  }
  return problems;
}

TEST(StepsWalk, ProvesWhatThePlansProve) {
  int proved = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      for (const Problem& problem : cases_of(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        const auto proof = prove_steps(schedule);
        EXPECT_TRUE(proof.is_ok()) << proof.status().message();
        ++proved;
        const bool has_channels = schedule.shape.largest_message > 0;
        for (const bool is_in_place : {false, true}) {
          if (is_in_place && schedule.stages_in_place) continue;
          EXPECT_EQ(verdict_of_all(schedule, {.slots = has_channels ? std::max(1, schedule.least_slots(1)) : 1,
                                              .is_in_place = is_in_place}),
                    "")
              << to_string(problem.collective) << algorithm->name << ranks;
        }
      }
    }
  }
  EXPECT_GT(proved, 1000);
}

/// A fault on one rank, or the same on all.
TEST(StepsWalk, RefutesTheMutantsThatThePlansRefute) {
  std::map<std::string, int> verdicts;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {4, 5}) {
      const Schedule base = schedule_of(*algorithm, cases_of(*algorithm, ranks).back());
      const Programs whole = programs_of(base);
      for (const Fault fault : kFaults) {
        for (int broken = -1; broken < ranks; ++broken) {
          const auto& model = whole.ranks[static_cast<std::size_t>(std::max(0, broken))];
          for (int index = 0; index < static_cast<int>(model.size()); ++index) {
            Programs mutant = whole;
            bool is_broken = true;
            for (int rank = 0; rank < ranks; ++rank) {
              if (broken >= 0 && rank != broken) continue;
              is_broken &=
                  index < static_cast<int>(mutant[rank].size()) && break_step(base, mutant[rank], index, fault);
            }
            if (!is_broken) continue;
            const Schedule schedule = mutant.schedule();
            for (const bool is_in_place : {false, true}) {
              if (is_in_place && base.stages_in_place) continue;
              const BindRequest request = narrow_request_for(schedule, is_in_place);
              const std::string of_plans = findings_of(schedule, request);
              const std::string of_steps =
                  verdict_of_all(schedule, {.slots = request.resources.slots, .is_in_place = is_in_place});
              ++verdicts[of_plans.empty() ? "proved" : "refuted"];
              EXPECT_EQ(of_plans.empty(), of_steps.empty())
                  << to_string(base.problem.collective) << " " << algorithm->name << " on " << ranks << " ranks, "
                  << (is_in_place ? "in" : "out of") << " place, rank " << broken << " step " << index << " "
                  << to_string(fault) << "\nplans: " << of_plans << "\nsteps: " << of_steps;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(verdicts["proved"], 5000);
  EXPECT_GT(verdicts["refuted"], 10000);
}

TEST(StepsWalk, NamesTheRankTheStepAndTheUnit) {
  const auto text_of = [](const Programs& programs, bool is_in_place = false) {
    return verdict_of_all(programs.schedule(), {.slots = 2, .is_in_place = is_in_place});
  };
  Programs ring = programs_of(Collective::all_reduce, "ring", 4);
  drop(ring[0], 6);
  EXPECT_THAT(text_of(ring), HasSubstr("rank 3 step 5: sends a message to rank 0 that is never received"));
  EXPECT_THAT(text_of(ring), HasSubstr("rank 0: output unit 2 is never written"));

  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 4);
  drop(one_shot[2], 0);
  EXPECT_THAT(text_of(one_shot), HasSubstr("reads scratch unit 0 of rank 2, which nobody has written"));

  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  swap_steps(two_shot[1], 1, 2);
  EXPECT_THAT(text_of(two_shot),
              HasSubstr("rank 1 step 1: reads input unit 1 of rank 0, exposed in a phase that it has not waited for"));

  Programs direct = programs_of(Collective::broadcast, "direct", 3);
  swap_steps(direct[2], 1, 2);
  EXPECT_THAT(text_of(direct), HasSubstr("rank 2 step 2: reads input unit 0 of rank 0, though it has already "
                                         "signalled a later phase: the exposure may be closed"));

  Programs scratch = programs_of(Collective::all_reduce, "one_shot", 3);
  double_step(scratch[1], 0);
  swap_steps(scratch[1], 1, 2);
  EXPECT_THAT(text_of(scratch),
              HasSubstr("rank 1 step 2: race: writes scratch unit 0 of rank 1 while rank 0 may read it in its step 3"));

  Programs open = programs_of(Collective::broadcast, "direct", 3);
  for (int rank = 0; rank < 3; ++rank) drop(open[rank], 2);
  EXPECT_THAT(text_of(open),
              HasSubstr("rank 0 step 0: the exposure of input units to rank 1 is still open at the end"));

  Programs barrier = programs_of(Collective::barrier, "dissemination", 4);
  at(barrier[1], 0).ranks = only(3);
  EXPECT_THAT(text_of(barrier),
              HasSubstr("rank 2 step 1: WAIT for phase 1 of rank 1, which never signals it to rank 2"));
}

TEST(StepsWalk, ACopyOntoItselfThatDividesIsNotDropped) {
  Programs halving = programs_of(Collective::all_reduce, "halving", 7);
  for (Program& program : halving.ranks) at(program, 0).is_final = true;
  const Schedule schedule = halving.schedule();
  const BindRequest request = narrow_request_for(schedule, true);
  EXPECT_THAT(findings_of(schedule, request), HasSubstr("reduces a value that is final already"));
  const steps::Form form{.slots = request.resources.slots, .is_in_place = true};
  EXPECT_THAT(verdict_of_all(schedule, form), HasSubstr("rank 0 step 4: reduces a value that is final already"));
}

TEST(StepsWalk, WhatOnlyCopiesIsMatched) {
  for (int ranks = 3; ranks <= 17; ++ranks) {
    const Schedule schedule = schedule_for(Collective::all_to_all, "pairwise", ranks);
    const auto proof = prove_steps(schedule);
    ASSERT_TRUE(proof.is_ok()) << proof.status().message();
    EXPECT_TRUE(proof.value().is_matched) << ranks;
    EXPECT_EQ(proof.value().forms, 2);
  }
  EXPECT_FALSE(match_copies(schedule_for(Collective::all_to_all, "bruck", 4), 2, false));
  EXPECT_FALSE(match_copies(schedule_for(Collective::all_reduce, "ring", 4), 2, false));
}

/// What is matched holds; what holds may be judged by others.
TEST(StepsWalk, NoMutantIsMatchedThatThePlansRefute) {
  int matched = 0;
  for (const char* name : {"pairwise", "linear"}) {
    const Programs whole = programs_of(Collective::all_to_all, name, 5);
    for (const Fault fault : kFaults) {
      for (int rank = 0; rank < 5; ++rank) {
        for (int index = 0; index < static_cast<int>(whole.ranks[0].size()); ++index) {
          Programs mutant = whole;
          if (!break_step(mutant.original, mutant[rank], index, fault)) continue;
          const Schedule schedule = mutant.schedule();
          for (const bool is_in_place : {false, true}) {
            if (is_in_place && schedule.stages_in_place) continue;
            if (!match_copies(schedule, schedule.least_slots(1), is_in_place)) continue;
            ++matched;
            EXPECT_EQ(findings_of(schedule, narrow_request_for(schedule, is_in_place)), "")
                << name << ": rank " << rank << " step " << index << " " << to_string(fault);
          }
        }
      }
    }
  }
  EXPECT_GT(matched, 50);
}

/// As many pairs are signalled as are waited for, but not the same ones: of sets that are looked at as wholes.
TEST(StepsWalk, AWaitForManyFindsTheOneThatSignalsToOthers) {
  Programs barrier = programs_of(Collective::reduce, "direct", 9);
  for (Program& program : barrier.ranks) at(program, 3).ranks.first = (at(program, 3).ranks.first + 1) % 9;
  const std::string text = verdict_of_all(barrier.schedule(), {});
  EXPECT_THAT(text, HasSubstr("rank 0 step 4: WAIT for phase 2 of rank 8, which never signals it to rank 0"));
  EXPECT_NE(findings_of(barrier), "");
}

/// Reads of many ranks at once, of which one does not show what is read; and one that stores there meanwhile.
TEST(StepsWalk, AReadOfManyFindsTheOneThatIsNotShown) {
  Programs hidden = programs_of(Collective::reduce, "direct", 9);
  at(hidden[6], 0).read = {};
  EXPECT_THAT(verdict_of_all(hidden.schedule(), {}), HasSubstr("of rank 6, which is not exposed to it"));
  Programs racing = programs_of(Collective::scan, "one_shot", 9);
  racing[4].push_back(move({scratch(4, unit(0))}, {input(4, unit(0))}));
  EXPECT_THAT(verdict_of_all(racing.schedule(), {}),
              HasSubstr("rank 4 step 4: race: writes scratch unit 0 of rank 4 while rank 5 may read it in its step"));
}

TEST(StepsWalk, AFaultDoesNotHideAWrongFormula) {
  Programs racing = programs_of(Collective::scan, "one_shot", 9);
  racing[4].push_back(move({scratch(4, unit(0))}, {input(4, unit(0))}));
  const std::string said = prove_steps(racing.schedule()).status().message();
  EXPECT_THAT(said, HasSubstr("in units:\n  rank 4 step 4: race: writes scratch unit 0 of rank 4"));
  EXPECT_THAT(said, HasSubstr("\nscan one_shot on 9 ranks, root 0: rank 4: the cost formula says "));
}

TEST(StepsWalk, AFaultIsShownOnTheFewestRanksThatHaveIt) {
  // On more than five ranks, step 3 reduces the wrong unit.
  const auto make = [](int ranks) -> std::optional<Schedule> {
    Programs ring = programs_of(Collective::all_reduce, "ring", ranks);
    for (int rank = 0; ranks > 5 && rank < ranks; ++rank) {
      break_step(ring.original, ring[rank], 3, Fault::source_shifted);
    }
    return ring.schedule();
  };
  const auto proof = prove_steps(*make(100));
  ASSERT_FALSE(proof.is_ok());
  const std::string said(proof.status().message());
  EXPECT_THAT(said,
              HasSubstr("in units:\n  rank 0: output unit 0 does not hold what it should: it lacks input unit 0"));
  const auto smaller = find_smaller_fault(said, 100, make);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->ranks, 6);
  EXPECT_THAT(smaller->message, HasSubstr("all_reduce ring on 6 ranks, root 0, out of place, in units:\n  rank 0"));
  EXPECT_FALSE(find_smaller_fault(said, 6, make));
}

TEST(StepsWalk, AFaultOfManyRanksAloneIsShownOnTheFewestOfThose) {
  int made = 0;
  const auto make = [&made](int ranks) -> std::optional<Schedule> {
    ++made;
    Programs barrier = programs_of(Collective::barrier, "dissemination", ranks);
    for (int rank = 0; ranks > 700 && rank < ranks; ++rank) drop(barrier[rank], 1);
    return barrier.schedule();
  };
  const auto proof = prove_steps(*make(1000));
  ASSERT_FALSE(proof.is_ok());
  const auto smaller = find_smaller_fault(std::string(proof.status().message()), 1000, make);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->ranks, 701);
  EXPECT_LT(made, 280);  // 256 one by one, and then by halves
}

}  // namespace
}  // namespace tutti

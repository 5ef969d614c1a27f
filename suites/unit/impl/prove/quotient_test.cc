// SPDX-License-Identifier: Apache-2.0
// One rank's program proved for all: what commutes with a group, and the same verdicts as those of all ranks' plans.
#include "impl/prove/quotient.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>

#include "impl/prove/prove_steps.h"
#include "suites/unit/impl/prove/mutants.h"

namespace tutti {
namespace {

std::string group_of(const Schedule& schedule) {
  const auto symmetry = find_symmetry(schedule);
  return symmetry ? std::string(symmetry->name()) : "none";
}

std::string verdict_of_one(const Schedule& schedule, const Symmetry& symmetry, steps::Form form) {
  Program program;
  for (int i = 0; i < schedule.step_count(0); ++i) program.push_back(schedule.step(0, i));
  std::string text;
  for (const Finding& finding : prove_one_rank(schedule, symmetry, program, form).findings) {
    text += to_string(finding) + "\n";
  }
  return text;
}

std::vector<Problem> problems_of(const Algorithm& algorithm, int ranks) {
  std::vector<Problem> problems{{.collective = algorithm.collective, .ranks = ranks}};
  for (int per_host = 2; algorithm.is_by_hosts && per_host < ranks; ++per_host) {
    if (ranks % per_host != 0) continue;
    problems.push_back({.collective = algorithm.collective, .ranks = ranks, .ranks_per_host = per_host});
  }
  return problems;
}

TEST(Symmetry, IsFoundWhereEveryRankDoesTheSameFromItsPlace) {
  const auto of = [](Collective collective, const char* name, int ranks) {
    return group_of(schedule_for(collective, name, ranks));
  };
  EXPECT_EQ(of(Collective::all_reduce, "ring", 7), "rotation");
  EXPECT_EQ(of(Collective::all_reduce, "one_shot", 7), "rotation");  // though all reduce in the order of ranks
  EXPECT_EQ(of(Collective::all_to_all, "bruck", 12), "rotation");
  EXPECT_EQ(of(Collective::barrier, "dissemination", 5), "rotation");
  EXPECT_EQ(of(Collective::all_reduce, "recursive_doubling", 8), "exclusive or");
  EXPECT_EQ(of(Collective::all_gather, "recursive_doubling", 8), "exclusive or");
  EXPECT_EQ(of(Collective::all_reduce, "recursive_doubling", 7), "none");  // pairs are folded
  EXPECT_EQ(of(Collective::broadcast, "knomial", 8), "none");
  EXPECT_EQ(of(Collective::scan, "one_shot", 8), "none");
  for (const auto& [hosts, per_host] : {std::pair{3, 4}, {4, 3}, {2, 2}}) {
    const Algorithm& two_level = *find_algorithm(Collective::all_reduce, "two_level").value();
    const Problem problem{.collective = Collective::all_reduce, .ranks = hosts * per_host, .ranks_per_host = per_host};
    EXPECT_EQ(group_of(schedule_of(two_level, problem)), "hosts x local");
  }
}

TEST(Symmetry, IsLostWhereOneRankDoesAnother) {
  for (const char* name : {"ring", "halving", "two_shot"}) {
    const Programs whole = programs_of(Collective::all_reduce, name, 6);
    for (const Fault fault : kFaults) {
      Programs one = whole;
      if (!break_step(one.original, one[4], 2, fault)) continue;
      EXPECT_EQ(group_of(one.schedule()), fault == Fault::none ? "rotation" : "none") << name << to_string(fault);
    }
  }
}

/// The rule by which units go with ranks, against what the collective says of every rank and block.
TEST(Symmetry, LeavesTheMeaningAsItIs) {
  int found = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {2, 3, 4, 6, 8, 9}) {
      for (const Problem& problem : problems_of(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        const auto symmetry = find_symmetry(schedule);
        if (!symmetry) continue;
        ++found;
        const int per_block = schedule.shape.units_per_block;
        for (int g = 0; g < ranks; ++g) {
          for (int unit = 0; unit < symmetry->units(Space::output); ++unit) {
            const Origin here = origin_of(problem, 0, unit / per_block);
            const int there_unit = symmetry->unit(Space::output, g, unit);
            const Origin there = origin_of(problem, g, there_unit / per_block);
            EXPECT_EQ(here.ranks(), there.ranks());
            EXPECT_TRUE(here.ranks() > 1 || symmetry->rank(g, here.first) == there.first);
            EXPECT_EQ(symmetry->unit(Space::input, g, here.block * per_block + unit % per_block),
                      there.block * per_block + there_unit % per_block)
                << to_string(problem.collective) << " " << algorithm->name << " on " << ranks;
          }
        }
      }
    }
  }
  EXPECT_GT(found, 100);
}

TEST(Symmetry, ActsAsAGroup) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring").value();
  const Schedule schedule = schedule_of(ring, {.collective = Collective::all_reduce, .ranks = 16, .ranks_per_host = 4});
  for (const auto group : {Symmetry::Group::rotation, Symmetry::Group::exclusive_or, Symmetry::Group::hosts_by_local}) {
    for (const auto units : {Symmetry::Units::fixed, Symmetry::Units::with_ranks, Symmetry::Units::with_local_first}) {
      if (units == Symmetry::Units::with_local_first && group != Symmetry::Group::hosts_by_local) continue;
      const auto symmetry = Symmetry::of(schedule, group, units, units);
      ASSERT_TRUE(symmetry);
      for (int a = 0; a < 16; ++a) {
        EXPECT_EQ(symmetry->rank(a, 0), a);
        EXPECT_EQ(symmetry->rank(a, symmetry->inverse(a)), 0);
        for (int b = 0; b < 16; ++b) {
          const int ab = symmetry->rank(a, b);
          for (int x = 0; x < 16; ++x) {
            EXPECT_EQ(symmetry->rank(ab, x), symmetry->rank(a, symmetry->rank(b, x)));
            EXPECT_EQ(symmetry->unit(Space::input, ab, x),
                      symmetry->unit(Space::input, a, symmetry->unit(Space::input, b, x)));
          }
        }
      }
    }
  }
}

TEST(Quotient, ProvesWhatThePlansProve) {
  int proved = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (int ranks = 2; ranks <= 16; ++ranks) {
      for (const Problem& problem : problems_of(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        if (group_of(schedule) == "none") continue;
        const auto proof = prove_steps(schedule);
        EXPECT_TRUE(proof.is_ok()) << proof.status().message();
        ++proved;
      }
    }
  }
  EXPECT_GT(proved, 400);
}

/// The same fault on every rank: the verdict on one rank is that on the plans of all.
TEST(Quotient, RefutesTheMutantsThatThePlansRefute) {
  std::map<std::string, int> verdicts;
  for (const Algorithm* const algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective)) continue;
    for (const int ranks : {4, 5, 6}) {
      const Problem problem = problems_of(*algorithm, ranks).back();
      const Schedule base = schedule_of(*algorithm, problem);
      if (group_of(base) == "none") continue;
      const Programs whole = programs_of(base);
      for (const Fault fault : kFaults) {
        for (int index = 0; index < base.step_count(0); ++index) {
          Programs mutant = whole;
          bool is_broken = true;
          for (int rank = 0; rank < ranks; ++rank) is_broken &= break_step(base, mutant[rank], index, fault);
          if (!is_broken) continue;
          const Schedule schedule = mutant.schedule();
          const auto symmetry = find_symmetry(schedule);
          if (!symmetry || !find_flaws(schedule).empty()) continue;
          for (const bool is_in_place : {false, true}) {
            if (is_in_place && base.stages_in_place) continue;
            const BindRequest request = narrow_request_for(schedule, is_in_place);
            const std::string of_plans = findings_of(schedule, request);
            const std::string of_one =
                verdict_of_one(schedule, *symmetry, {.slots = request.resources.slots, .is_in_place = is_in_place});
            ++verdicts[of_plans.empty() ? "proved" : "refuted"];
            EXPECT_EQ(of_plans.empty(), of_one.empty())
                << to_string(problem.collective) << " " << algorithm->name << " on " << ranks << " ranks, "
                << (is_in_place ? "in" : "out of") << " place, step " << index << " " << to_string(fault)
                << "\nplans: " << of_plans << "\none: " << of_one;
          }
        }
      }
    }
  }
  EXPECT_GT(verdicts["proved"], 500);
  EXPECT_GT(verdicts["refuted"], 1000);
}

}  // namespace
}  // namespace tutti

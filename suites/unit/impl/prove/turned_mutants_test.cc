// SPDX-License-Identifier: Apache-2.0
// Schedules whose steps the library turns, with a fault in rank 0's: nothing is proved that the plans refute.
#include <map>

#include <gtest/gtest.h>

#include "impl/prove/columns.h"
#include "impl/prove/quotient.h"
#include "impl/prove/symmetry.h"
#include "impl/schedule/turning.h"
#include "suites/unit/impl/prove/mutants.h"

namespace tutti {
namespace {

/// `whole` with rank 0's steps turned to the other ranks; by columns SIGNALs are each rank's own.
Schedule turned(const Programs& whole, Turning turning) {
  Schedule schedule = whole.schedule();
  schedule.turning = turning;
  const Turner turner(schedule.problem, schedule.shape, turning);
  schedule.step_count = [ranks = whole.ranks](int /*rank*/) { return static_cast<int>(ranks[0].size()); };
  schedule.step = [ranks = whole.ranks, turner, turning](int rank, int index) {
    const auto at = static_cast<std::size_t>(index);
    const bool is_own = turning == Turning::columns && ranks[0][at].verb == Verb::signal;
    return is_own ? ranks[static_cast<std::size_t>(rank)][at] : turner.turned(ranks[0][at], rank);
  };
  return schedule;
}

/// The first finding of the plans of all ranks in units, out of place or in place.
std::string verdict_of_plans(const Schedule& schedule) {
  std::string findings = findings_of(schedule, narrow_request_for(schedule, false));
  if (findings.empty() && !schedule.stages_in_place)
    findings = findings_of(schedule, narrow_request_for(schedule, true));
  return findings;
}

std::string verdict_of_one(const Schedule& schedule, const Symmetry& symmetry) {
  Program program;
  for (int i = 0; i < schedule.step_count(0); ++i) program.push_back(schedule.step(0, i));
  std::string text;
  for (const bool is_in_place : {false, true}) {
    if (is_in_place && schedule.stages_in_place) continue;
    const steps::Form form{.slots = narrow_request_for(schedule, is_in_place).resources.slots,
                           .is_in_place = is_in_place};
    for (const Finding& finding : prove_one_rank(schedule, symmetry, program, form).findings) {
      text += to_string(finding) + "\n";
    }
  }
  return text;
}

template <class F>
void for_mutants(Turning turning, F f) {
  for (const Algorithm* const algorithm : all_algorithms()) {
    if (algorithm->turning != turning) continue;
    for (const int ranks : {4, 5, 6}) {
      const Schedule base = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = ranks});
      const Programs whole = programs_of(base);
      for (const auto fault :
           {Fault::none, Fault::dropped, Fault::doubled, Fault::swapped, Fault::source_shifted,
            Fault::destination_shifted, Fault::other_peer, Fault::other_receiver, Fault::final_changed,
            Fault::phase_raised, Fault::set_cut, Fault::set_moved, Fault::exposure_closed, Fault::exposure_shifted}) {
        for (int index = 0; index < base.step_count(0); ++index) {
          Programs mutant = whole;
          bool is_broken = true;
          for (int rank = 0; rank < ranks; ++rank) is_broken &= break_step(base, mutant[rank], index, fault);
          if (!is_broken) continue;
          const Schedule schedule = turned(mutant, turning);
          if (!find_flaws(schedule).empty()) continue;
          f(schedule, fault,
            std::string(to_string(algorithm->collective)) + " " + std::string(algorithm->name) + " on " +
                std::to_string(ranks) + " ranks, step " + std::to_string(index) + " " + to_string(fault));
        }
      }
    }
  }
}

TEST(Columns, ProveNothingThatThePlansRefute) {
  std::map<std::string, int> verdicts;
  for_mutants(Turning::columns, [&](const Schedule& schedule, Fault fault, const std::string& name) {
    const auto columns = prove_columns(schedule, !schedule.stages_in_place);
    const std::string of_plans = verdict_of_plans(schedule);
    EXPECT_TRUE(!columns || of_plans.empty()) << name << ": " << of_plans;
    EXPECT_TRUE(columns || fault != Fault::none) << name;
    ++verdicts[columns ? "proved" : of_plans.empty() ? "left to others" : "refuted"];
  });
  EXPECT_GE(verdicts["proved"], 6);
  EXPECT_GT(verdicts["refuted"], 150);
}

/// Without the last SIGNAL and WAIT the flags match, but what was exposed stays so.
TEST(Columns, AreRefusedWhereAnExposureStaysOpen) {
  Programs whole = programs_of(Collective::scan, "direct", 5);
  EXPECT_TRUE(prove_columns(turned(whole, Turning::columns), true));
  for (Program& program : whole.ranks) program.resize(program.size() - 2);
  const Schedule open = turned(whole, Turning::columns);
  EXPECT_NE(verdict_of_plans(open), "");
  EXPECT_FALSE(prove_columns(open, true));
}

TEST(Columns, AreOnlyOfSchedulesThatAreTurnedSo) {
  Schedule schedule = schedule_for(Collective::scan, "direct", 6);
  EXPECT_TRUE(prove_columns(schedule, true));
  schedule.turning = Turning::none;
  EXPECT_FALSE(prove_columns(schedule, true));
  // Other steps under the same name are noticed.
  Programs one = programs_of(Collective::scan, "direct", 6);
  std::swap(one[4][2], one[4][3]);
  Schedule other = one.schedule();
  other.turning = Turning::columns;
  EXPECT_FALSE(prove_columns(other, true));
}

TEST(Turning, IsProvedWhereThePlansAre) {
  std::map<std::string, int> verdicts;
  for_mutants(Turning::around, [&](const Schedule& schedule, Fault /*fault*/, const std::string& name) {
    const auto symmetry = find_symmetry(schedule);
    ASSERT_TRUE(symmetry) << name;
    EXPECT_EQ(symmetry->name(), "rotation");
    const std::string of_plans = verdict_of_plans(schedule);
    const std::string of_one = verdict_of_one(schedule, *symmetry);
    EXPECT_EQ(of_one.empty(), of_plans.empty()) << name << ": " << of_one << "\nplans: " << of_plans;
    ++verdicts[of_plans.empty() ? "proved" : "refuted"];
  });
  EXPECT_GT(verdicts["proved"], 50);
  EXPECT_GT(verdicts["refuted"], 300);
}

TEST(Turning, IsLostWhereOneRankDoesAnother) {
  Programs one = programs_of(Collective::all_reduce, "ring", 6);
  std::swap(one[3][2], one[3][3]);
  Schedule other = one.schedule();
  other.turning = Turning::around;
  EXPECT_FALSE(find_symmetry(other));
}

}  // namespace
}  // namespace tutti

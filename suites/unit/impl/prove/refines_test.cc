// SPDX-License-Identifier: Apache-2.0
// Every plan that binding makes refines its steps, in all forms; what the proof of all ranks' plans refutes does not.
#include "impl/prove/refines.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "impl/prove/refine_plans.h"
#include "suites/unit/impl/prove/plan_mutants.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::vector<Problem> problems_to_bind(const Algorithm& algorithm, int ranks) {
  std::vector<Problem> problems;
  for (const int root : is_rooted(algorithm.collective) ? std::vector{0, ranks - 1} : std::vector{0}) {
    problems.push_back({.collective = algorithm.collective, .ranks = ranks, .root = root});
  }
  if (has_window(algorithm.collective)) problems.back().pairing.window = 3;
  if (has_pairs(algorithm.collective) && ranks > 2) {
    problems.push_back(problems.back());
    problems.back().pairing.first = 0;
    problems.back().pairing.second = ranks - 1;
  }
  for (const int per_host : {2, 3, 4}) {
    if (!algorithm.is_by_hosts || ranks % per_host != 0) continue;
    problems.push_back(problems.front());
    problems.back().ranks_per_host = per_host;
  }
  return problems;
}

TEST(Refines, EveryPlanInEveryForm) {
  int plans = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
      for (const Problem& problem : problems_to_bind(*algorithm, ranks)) {
        const Schedule schedule = schedule_of(*algorithm, problem);
        for (const Form& form : forms_of(schedule)) {
          const BoundForm bound(schedule, form);
          for (int rank = 0; rank < ranks; ++rank, ++plans) {
            ASSERT_EQ(bound.departure(rank, bound.plans[static_cast<std::size_t>(rank)]), "")
                << describe(schedule, form);
          }
        }
      }
    }
  }
  std::printf("plans: %d refine their steps\n", plans);
  EXPECT_GT(plans, 40'000);
}

/// Departures of the full and the tail segment of every rank.
std::string departures_of(const Schedule& schedule, BindRequest request, Count& segments) {
  for (request.rank = 0; request.rank < schedule.problem.ranks; ++request.rank) {
    const Result<BoundCall> bound = bind(schedule, request);
    if (!bound.is_ok()) return bound.status().message();
    const BoundCall& call = bound.value();
    const Count segment = call.segment_bytes / static_cast<Count>(size_of(request.dtype));
    segments = std::max(segments, call.segments());
    for (const bool is_tail : {false, true}) {
      if (is_tail ? !call.has_tail : call.full_segments == 0) continue;
      const BoundPlan plan{.plan = is_tail ? call.tail : call.full,
                           .request = request,
                           .segment = is_tail ? request.count % segment : segment};
      const auto departures = find_departures(schedule, plan);
      if (!departures.empty()) return (is_tail ? "tail: " : "full: ") + to_string(departures.front());
    }
  }
  return {};
}

// Slots of several lines, many slots, little scratch, lanes, short inputs, stores past the caches, odd lengths and
// dtypes.
TEST(Refines, PlansOfSegmentsLanesAndDeepSlots) {
  Count most_segments = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {2, 3, 6}) {
      const Schedule schedule = schedule_of(*algorithm, problems_to_bind(*algorithm, ranks).back());
      for (const Count count : {Count{1}, Count{7}, Count{100}, Count{1023}, Count{5000}}) {
        for (int variant = 0; variant < 16; ++variant) {
          if (!has_data(algorithm->collective)) continue;
          BindRequest request = request_for(schedule, (variant & 1) != 0 ? Buffers::shared : Buffers::private_);
          request.count = count;
          request.is_in_place = (variant & 2) != 0;
          request.lanes = (variant & 4) != 0 ? 3 : 1;
          request.most_copied = (variant & 8) != 0 ? 4096 : 0;
          request.dtype = (variant & 4) != 0 ? Dtype::f64 : Dtype::f32;
          request.resources = {.slots = (variant & 8) != 0 ? 64 : 32,
                               .slot_bytes = (variant & 2) != 0 ? 1024 : 128,
                               .scratch_bytes = 1 << 16,
                               .cache_bytes = (variant & 8) != 0 ? 4096 : 0};
          request.keep_exposures = (variant & 2) != 0;
          ASSERT_EQ(departures_of(schedule, request, most_segments), "")
              << algorithm->name << " on " << ranks << " ranks, " << count << " elements, variant " << variant;
        }
      }
    }
  }
  EXPECT_GT(most_segments, 3);
}

// A sample; the night has more (suites/nightly/mutants_test.cc).
TEST(Refines, NothingThatTheProofOfAllPlansRefutes) {
  Verdicts verdicts;
  for (const Algorithm* const algorithm : all_algorithms()) {
    const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = 3, .root = 1});
    int turn = 0;
    for (const Form& form : forms_of(schedule)) {
      const BoundForm bound(schedule, form);
      judge_faults(bound, turn++ % 3, verdicts);
    }
  }
  std::printf("plans with a fault: %d refused by both, %d by refines alone, %d by neither, %d by the proof alone\n",
              verdicts.by_both, verdicts.by_refines_alone, verdicts.by_neither, verdicts.by_proof_alone);
  EXPECT_EQ(verdicts.by_proof_alone, 0) << verdicts.example;
  EXPECT_GT(verdicts.by_both, 10'000);
}

/// The departure of `rank`'s plan as bound by `bound`, if `judged` were what was asked for.
std::string departure_of(const Schedule& schedule, BindRequest bound, BindRequest judged, int rank = 1) {
  bound.rank = judged.rank = rank;
  const Result<BoundCall> call = bind(schedule, bound);
  if (!call.is_ok()) return call.status().message();
  const auto found =
      find_departures(schedule, {.plan = call.value().plan(0), .request = judged, .segment = judged.count});
  return found.empty() ? std::string() : to_string(found.front());
}
std::string departure_of(const Schedule& schedule, const BindRequest& request) {
  return departure_of(schedule, request, request);
}

TEST(Refines, NoStagedCopyBehindItsSignal) {
  const Schedule direct = schedule_for(Collective::sendrecv, "direct", 3);
  const BoundForm form(direct, {.slices = 1, .is_in_place = false, .buffers = Buffers::private_});
  OpenPlan plan(form.plans[1]);
  ASSERT_EQ(plan.ops[1].verb, Verb::signal);
  move_op(plan, 0, 1);
  EXPECT_EQ(form.departure(1, plan.closed()), "rank 1 step 0: bytes [0, 64) are not moved");
}

TEST(Refines, OnlyWithTheBuffersThatWereBound) {
  const Schedule direct = schedule_for(Collective::sendrecv, "direct", 3);
  const BindRequest staged = request_for(direct, Buffers::private_);
  const BindRequest shared = request_for(direct, Buffers::shared);
  EXPECT_EQ(departure_of(direct, shared, staged),
            "rank 1: the plan has 0 bytes of scratch; its units and mirrors take 64");
  EXPECT_EQ(departure_of(direct, staged, shared), "rank 1 step 0: the SIGNAL is missing");
  BindRequest copied = shared;
  copied.most_copied = 64;
  EXPECT_EQ(departure_of(direct, staged, copied), "") << "a short shared input is staged as a private one";
}

TEST(Refines, OnlyWithTheSlotsThatWereBound) {
  const Schedule pairwise = schedule_for(Collective::all_to_all, "pairwise", 3);
  BindRequest narrow = request_for(pairwise);
  narrow.count = 64;  // four slices
  narrow.resources.slots = 1;
  BindRequest wide = narrow;
  wide.resources.slots = 2;
  EXPECT_EQ(departure_of(pairwise, narrow), "");
  EXPECT_THAT(departure_of(pairwise, narrow, wide), HasSubstr("bytes [64, 256) are not moved"));
  EXPECT_THAT(departure_of(pairwise, wide, narrow), HasSubstr("bytes [0, 256) are not moved"));
  BindRequest long_slots = narrow;
  long_slots.resources.slot_bytes = 128;
  EXPECT_EQ(departure_of(pairwise, long_slots, narrow),
            "rank 1: the plan's longest message has 2 slices; the schedule's has 4");
}

// avg divides there.
TEST(Refines, NoDivisionLeftOutAsACopyOntoItself) {
  Programs chain = programs_of(Collective::all_reduce, "ring", 2);
  for (int rank = 0; rank < 2; ++rank) chain[rank] = {final_move({output(rank, unit(0))}, {output(rank, unit(0))})};
  const Schedule schedule = chain.schedule();
  BindRequest request = request_for(schedule);
  EXPECT_EQ(departure_of(schedule, request), "");
  request.rank = 1;
  EXPECT_EQ(bind(schedule, request).value().plan(0).ops().size(), 1U);
  BindRequest sum = request;
  sum.op = Op::sum;
  EXPECT_EQ(bind(schedule, sum).value().plan(0).ops().size(), 0U);
  EXPECT_EQ(departure_of(schedule, sum), "");
  EXPECT_EQ(departure_of(schedule, sum, request), "rank 1: the plan is of another call");
}

/// Rank 0's input read twice; each time only the reads are ended.
Programs read_twice() {
  Programs direct = programs_of(Collective::broadcast, "direct", 2);
  const Exposure first{.space = Space::input, .units = unit(0)};
  direct[0] = {move({output(0, unit(0))}, {input(0, unit(0))}), signal(only(1), 1, first),
               closing_reads(wait(only(1), 2)), signal(only(1), 3, first), closing_reads(wait(only(1), 4))};
  direct[1] = {wait(only(0), 1), move({output(1, unit(0))}, {input(0, unit(0))}), closing_reads(signal(only(0), 2)),
               wait(only(0), 3), move({output(1, unit(0))}, {input(0, unit(0))}), closing_reads(signal(only(0), 4))};
  return direct;
}

// Both ends leave the closing steps out, and the second copy would be a race with the first read.
TEST(Refines, NoSecondCopyToTheMirrorThatIsStillRead) {
  const Schedule schedule = read_twice().schedule();
  const BindRequest staged = request_for(schedule, Buffers::private_);
  const BindRequest shared = request_for(schedule, Buffers::shared);
  EXPECT_EQ(findings_of(schedule, shared), "");
  EXPECT_EQ(departure_of(schedule, shared, shared, 0), "");
  EXPECT_THAT(findings_of(schedule, staged), HasSubstr("race: writes scratch bytes [0, 64) of rank 0"));
  EXPECT_EQ(departure_of(schedule, staged, staged, 0),
            "rank 0 step 3: copies to the mirror what peers may still read there");
  const Status status = refine_some_plans(schedule).status();
  EXPECT_EQ(status.code(), Code::refuted);
  EXPECT_THAT(status.message(), HasSubstr("private buffers, "));
  EXPECT_THAT(status.message(),
              HasSubstr(": the plan is not what the steps say:\n  rank 0 step 3: copies to the mirror "
                        "what peers may still read there"));
}

TEST(Refines, NoStepThatOnlyEndsReadsButEndsAWrite) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  for (Program& program : two_shot.ranks) {
    for (Step& step : program) step.only_closes_reads = step.verb == Verb::wait && step.phase == 2;
  }
  const Schedule schedule = two_shot.schedule();
  EXPECT_EQ(departure_of(schedule, request_for(schedule, Buffers::shared)), "");
  EXPECT_THAT(departure_of(schedule, request_for(schedule, Buffers::private_)),
              HasSubstr("is said only to end reads, and ends a write"));
}

TEST(RefineSomePlans, AsManyAsThereIsTimeFor) {
  const Schedule ring = schedule_for(Collective::all_reduce, "ring", 200);
  const Result<RefinedPlans> one = refine_some_plans(ring);
  ASSERT_TRUE(one.is_ok()) << one.status().message();
  EXPECT_EQ(one.value().plans, 1) << "597 steps";
  const Schedule tree = schedule_for(Collective::broadcast, "knomial", 256, 77);
  const Result<RefinedPlans> all = refine_some_plans(tree);
  ASSERT_TRUE(all.is_ok()) << all.status().message();
  EXPECT_EQ(all.value().ranks, 5);
  EXPECT_EQ(all.value().plans, 5 * static_cast<int>(forms_of(tree).size()));
  const Schedule few = schedule_for(Collective::barrier, "dissemination", 1);
  EXPECT_EQ(refine_some_plans(few).value().ranks, 1);
}

}  // namespace
}  // namespace tutti

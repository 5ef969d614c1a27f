// SPDX-License-Identifier: Apache-2.0
// Schedules broken by hand, one fault each, chosen so that the result, the safety or the cost changes. Each is refuted,
// and the message names the rank and step, or the output bytes and the contribution that is missing or one too many.
#include <gmock/gmock.h>

#include "suites/unit/impl/prove/programs.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(BrokenSchedule, DroppedReceiveLeavesASliceAndAnUnwrittenOutput) {
  Programs ring = programs_of(Collective::all_reduce, "ring", 4);
  EXPECT_EQ(findings_of(ring), "");
  drop(ring[0], 6);  // OUT[2] <- CH(3)
  EXPECT_THAT(findings_of(ring), HasSubstr("rank 3 step 5: sends a slice to rank 0 that is never received"));
  EXPECT_THAT(findings_of(ring), HasSubstr("rank 0: output bytes [128, 192) are never written"));
}

TEST(BrokenSchedule, DroppedCopyIntoScratchIsReadBeforeItIsWritten) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 4);
  drop(one_shot[2], 0);
  EXPECT_THAT(findings_of(one_shot),
              HasSubstr("rank 0 step 3: reads scratch bytes [0, 64) of rank 2, which no rank has written"));
}

TEST(BrokenSchedule, ForgottenRankLacksItsContribution) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 6);
  Operands<4>& sources = at(two_shot[1], 2).sources;
  sources = {on({.first = 0, .stride = 1, .n = 5}, sources.items[0])};
  EXPECT_THAT(findings_of(two_shot), HasSubstr("rank 2: output bytes [64, 128) lack the contribution of rank 5\n"));
}

TEST(BrokenSchedule, DoubledSourceIsCountedTwice) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 3);
  at(one_shot[2], 3).sources.push_back(input(1 + 1, unit(0)));
  EXPECT_EQ(findings_of(one_shot), "rank 2: output bytes [0, 64) hold the contribution of rank 2 2 times\n");
}

TEST(BrokenSchedule, DoubledSendIsNeverReceived) {
  Programs knomial = programs_of(Collective::broadcast, "knomial", 3);
  double_step(knomial[0], 0);
  EXPECT_THAT(findings_of(knomial), StartsWith("rank 0 step 1: sends a slice to rank 1 that is never received"));
}

TEST(BrokenSchedule, SwappedSendsAddTheWrongInputs) {
  Programs ring = programs_of(Collective::all_reduce, "ring", 4);
  swap_steps(ring[0], 1, 2);  // CH(1) <- CH(3) op IN[3] and op IN[2]
  const std::string findings = findings_of(ring);
  EXPECT_THAT(findings,
              HasSubstr("output bytes [128, 192) lack the contribution of rank 0; hold bytes [192, 256) of rank 0's "
                        "input, which do not belong there"));
  EXPECT_THAT(findings,
              HasSubstr("output bytes [192, 256) lack the contribution of rank 0; hold bytes [128, 192) of rank 0's "
                        "input, which do not belong there"));
}

TEST(BrokenSchedule, SwappedWaitAndReadIsAReadOfWhatIsNotYetExposed) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  swap_steps(two_shot[1], 1, 2);
  EXPECT_THAT(
      findings_of(two_shot),
      StartsWith(
          "rank 1 step 1: reads input bytes [64, 128) of rank 0, exposed in a phase that it has not waited for"));
}

TEST(BrokenSchedule, SwappedReadAndClosingSignalReadsWhatMayBeClosed) {
  Programs direct = programs_of(Collective::broadcast, "direct", 3);
  swap_steps(direct[2], 1, 2);
  EXPECT_THAT(findings_of(direct),
              StartsWith("rank 2 step 2: reads input bytes [0, 64) of rank 0, though it has already signalled a "
                         "later phase: the exposure may be closed"));
}

TEST(BrokenSchedule, MisaddressedUnitGivesTheWrongBytes) {
  Programs pairwise = programs_of(Collective::all_to_all, "pairwise", 3);
  ASSERT_EQ(at(pairwise[0], 3), in_turn(move({channel(2)}, {input(0, unit(2))})));
  at(pairwise[0], 3).sources = {input(0, unit(1))};
  EXPECT_EQ(findings_of(pairwise),
            "rank 2: output bytes [0, 64) (block 0) lack the contribution of rank 0; hold bytes [64, 128) of rank 0's "
            "input, which do "
            "not belong there\n");
}

TEST(BrokenSchedule, MisaddressedMessageStops) {
  Programs ring = programs_of(Collective::all_reduce, "ring", 4);
  at(ring[0], 0).destinations = {channel(2)};
  EXPECT_THAT(
      findings_of(ring),
      HasSubstr("rank 1 step 6: deadlock: waits for a message from rank 0, which has ended without sending it"));
}

TEST(BrokenSchedule, DroppedSignalLeavesAWaitWithoutOne) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  drop(two_shot[2], 0);
  EXPECT_THAT(findings_of(two_shot),
              HasSubstr("rank 0 step 1: WAIT for phase 1 of rank 2, which never signals it to rank 0"));
}

// Flags are one word per rank, so at run time this WAIT would be satisfied.
TEST(BrokenSchedule, MisdirectedSignalIsNotForMe) {
  Programs barrier = programs_of(Collective::barrier, "dissemination", 4);
  at(barrier[1], 0).ranks = only(3);
  EXPECT_THAT(findings_of(barrier),
              StartsWith("rank 2 step 1: WAIT for phase 1 of rank 1, which never signals it to rank 2"));
}

TEST(BrokenSchedule, SignalToARankThatNeverWaits) {
  Programs barrier = programs_of(Collective::barrier, "dissemination", 4);
  at(barrier[1], 0).ranks = {.first = 2, .stride = 1, .n = 2};
  EXPECT_EQ(findings_of(barrier), "rank 1 step 0: SIGNAL of phase 1 to rank 3, which never waits for it\n");
}

TEST(BrokenSchedule, MissingWaitLetsABarrierEndEarly) {
  Programs barrier = programs_of(Collective::barrier, "dissemination", 4);
  drop(barrier[3], 3);
  EXPECT_THAT(findings_of(barrier), HasSubstr("rank 3: can end before rank 0 has started, though this is a barrier"));
  EXPECT_THAT(findings_of(barrier), HasSubstr("rank 1 step 2: SIGNAL of phase 2 to rank 3, which never waits for it"));
}

TEST(BrokenSchedule, BarrierThatDoesNothing) {
  Programs barrier = programs_of(Collective::barrier, "dissemination", 2);
  barrier[0].clear();
  barrier[1].clear();
  EXPECT_THAT(findings_of(barrier), StartsWith("rank 0: can end before rank 1 has started, though this is a barrier"));
}

TEST(BrokenSchedule, ExposureLeftOpen) {
  Programs direct = programs_of(Collective::broadcast, "direct", 3);
  drop(direct[0], 2);
  drop(direct[1], 2);
  drop(direct[2], 2);
  EXPECT_THAT(findings_of(direct),
              StartsWith("rank 0 step 0: the exposure of input bytes [0, 64) to rank 1 is still open at the end"));
  EXPECT_EQ(findings_of(direct, Buffers::private_), "");  // staged in scratch, which its generation protects
}

// The steps are there with shared buffers; where buffers are staged, binding drops what is said to close reads only.
TEST(BrokenSchedule, StepsThatDoMoreThanCloseReadsAreMissedWithPrivateBuffers) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  for (int rank = 0; rank < 3; ++rank) {
    for (const int closing : {3, 4}) at(two_shot[rank], closing).only_closes_reads = true;
  }
  EXPECT_EQ(findings_of(two_shot), "");
  EXPECT_THAT(findings_of(two_shot, Buffers::private_), HasSubstr("rank 0: output bytes [64, 192) are never written"));
  EXPECT_THAT(prove_schedule(two_shot.schedule()).status().message(), HasSubstr("private buffers"));
}

TEST(BrokenSchedule, ReadOutsideTheExposure) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  at(two_shot[0], 0).read.per_target = 0;  // unit 0 for everyone
  EXPECT_THAT(findings_of(two_shot),
              HasSubstr("rank 1 step 2: reads input bytes [64, 128) of rank 0, which is not exposed to it"));
}

TEST(BrokenSchedule, ReadBeyondTheExposure) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  at(two_shot[1], 2).sources.items[0].units.length = 2;
  at(two_shot[1], 2).destinations.items[0].units.length = 2;
  EXPECT_THAT(findings_of(two_shot),
              StartsWith("rank 1 step 2: reads input bytes [64, 192) of rank 0, which reaches outside the exposure"));
}

TEST(BrokenSchedule, WritingWhatMayBeReadIsARace) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 3);
  double_step(one_shot[1], 0);
  swap_steps(one_shot[1], 1, 2);  // SCR <- IN; SIGNAL; SCR <- IN; WAIT; ...
  EXPECT_THAT(
      findings_of(one_shot),
      HasSubstr("rank 1 step 2: race: writes scratch bytes [0, 64) of rank 1 while rank 0 may read it in its step 3"));
}

TEST(BrokenSchedule, ReadInFlightOfTheRootsBufferInPlace) {
  Programs direct = programs_of(Collective::broadcast, "direct", 3);
  // The root reuses its buffer before the readers have answered: harmless out of place, where its output is another
  // one.
  at(direct[0], 1) = move({output(0, unit(0))}, {scratch(0, unit(0))});
  direct[0].insert(direct[0].begin(), move({scratch(0, unit(0))}, {input(0, unit(0))}));
  direct.original.shape.scratch_units = 1;
  EXPECT_EQ(findings_of(direct), "");
  EXPECT_THAT(
      findings_of(direct, Buffers::shared, true),
      StartsWith("rank 0 step 2: race: writes output bytes [0, 64) of rank 0 while rank 1 may read it in its step 1"));
}

TEST(BrokenSchedule, OneShotOnPeersInputsIsWrongInPlaceOnly) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 3);
  for (int rank = 0; rank < 3; ++rank) {
    one_shot[rank] = {signal(others(rank, 3), 1, {.space = Space::input, .units = unit(0)}), wait(others(rank, 3), 1),
                      final_move({output(rank, unit(0))}, {on(everyone(3), input(rank, unit(0)))}),
                      signal(others(rank, 3), 2), wait(others(rank, 3), 2)};
  }
  one_shot.original.shape = {.units_per_block = 1, .exposes_input = true};
  EXPECT_EQ(findings_of(one_shot), "");
  EXPECT_EQ(findings_of(one_shot, Buffers::private_, true), "");  // staged
  EXPECT_THAT(
      findings_of(one_shot, Buffers::shared, true),
      HasSubstr("rank 0 step 2: race: writes output bytes [0, 64) of rank 0 while rank 1 may read it in its step 2"));
}

TEST(BrokenSchedule, TwoWritersOfOneUnitRace) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  at(two_shot[0], 0).write = {.space = Space::output, .units = units(0, 3)};
  at(two_shot[1], 2).destinations.items[0] = on(only(1), output(1, unit(1)));
  two_shot[1].insert(two_shot[1].begin() + 3, move({output(0, unit(2))}, {output(1, unit(1))}));
  EXPECT_THAT(findings_of(two_shot), HasSubstr("race: writes output bytes [128, 192) of rank 0 while rank"));
}

TEST(BrokenSchedule, LateSignalIsCaughtByTheDepth) {
  Programs direct = programs_of(Collective::all_to_all, "direct", 3);
  for (int rank = 0; rank < 3; ++rank) swap_steps(direct[rank], 0, 1);  // copies its own block before it signals
  EXPECT_EQ(findings_of(direct), "");
  const Status status = prove_schedule(direct.schedule()).status();
  EXPECT_EQ(status.code(), Code::refuted);
  EXPECT_THAT(
      status.message(),
      HasSubstr("rank 0: the cost formula says 8 steps, 0 messages, 2 units, depth 4; the steps have 8, 0, 2, 5"));
}

TEST(BrokenSchedule, DoubledIdempotentMoveIsCaughtByTheStepCount) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 3);
  double_step(one_shot[1], 0);
  EXPECT_EQ(findings_of(one_shot), "");
  EXPECT_THAT(
      prove_schedule(one_shot.schedule()).status().message(),
      HasSubstr("rank 1: the cost formula says 4 steps, 0 messages, 2 units, depth 3; the steps have 5, 0, 2, 4"));
}

TEST(BrokenSchedule, DoubledWaitRepeatsAPhase) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 3);
  double_step(one_shot[1], 2);
  EXPECT_THAT(findings_of(one_shot),
              StartsWith("rank 1 step 3: WAIT for phase 1 of rank 2 after phase 1: phases must rise"));
}

TEST(BrokenSchedule, RepeatedPhase) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  at(two_shot[2], 3).phase = 1;
  EXPECT_THAT(findings_of(two_shot), StartsWith("rank 2 step 3: SIGNAL of phase 1 after phase 1: phases must rise"));
}

TEST(BrokenSchedule, MissingFinalMark) {
  Programs ring = programs_of(Collective::all_reduce, "ring", 3);
  at(ring[1], 2).is_final = false;
  EXPECT_THAT(findings_of(ring), StartsWith("rank 0: output bytes [128, 192) are made final 0 times instead of once"));
}

TEST(BrokenSchedule, FinalMarkTooEarly) {
  Programs ring = programs_of(Collective::all_reduce, "ring", 3);
  at(ring[1], 1).is_final = true;
  EXPECT_THAT(findings_of(ring), StartsWith("rank 2 step 2: reduces a value that is final already"));
}

TEST(BrokenSchedule, PartialOverlapOfSourceAndDestination) {
  Programs halving = programs_of(Collective::all_reduce, "halving", 4);
  halving[0].push_back(move({output(0, units(1, 2))}, {output(0, units(0, 2))}));
  EXPECT_THAT(findings_of(halving), StartsWith("rank 0 step 8: a destination overlaps a source partly"));
}

// What takes turns for: with whole messages, both ends fill the one slot and wait.
TEST(BrokenSchedule, ExchangeThatDoesNotTakeTurnsNeedsASlotForEverySlice) {
  Programs pairwise = programs_of(Collective::all_to_all, "pairwise", 3);
  for (Program& program : pairwise.ranks) {
    for (Step& step : program) step.in_turn_with_next = false;
  }
  EXPECT_THAT(prove_schedule(pairwise.schedule()).status().message(),
              HasSubstr("4 slices per unit:\n  rank 0 step 1: deadlock: with 1 slot per channel, none becomes free to "
                        "rank 1"));
}

// In place, slice k of a block would be overwritten before it has left.
TEST(BrokenSchedule, ReceiveBeforeItsSendInATurnIsWrongInPlace) {
  Programs linear = programs_of(Collective::all_to_all, "linear", 2);
  linear.original.least_slots = [](int slices) { return slices; };
  EXPECT_EQ(findings_of(linear, Buffers::shared, true), "");
  linear[0] = {at(linear[0], 0), at(linear[0], 2), at(linear[0], 1)};
  at(linear[0], 1).in_turn_with_next = true;
  at(linear[0], 2).in_turn_with_next = false;
  EXPECT_EQ(findings_of(linear), "");
  EXPECT_THAT(findings_of(linear, Buffers::shared, true), HasSubstr("rank 1: output bytes [0, 64) (block 0) "));
}

TEST(BrokenSchedule, TurnsOfStepsThatCannotTakeThem) {
  Programs copies = programs_of(Collective::all_to_all, "pairwise", 2);
  at(copies[0], 0).in_turn_with_next = true;
  EXPECT_THAT(findings_of(copies),
              StartsWith("rank 0 step 0: takes turns with another step, but is no MOVE through a channel"));
  Programs signals = programs_of(Collective::all_to_all, "direct", 2);
  signals[1].insert(signals[1].begin(), in_turn(move({channel(0)}, {input(1, unit(0))})));
  EXPECT_THAT(findings_of(signals),
              StartsWith("rank 1 step 1: takes turns with another step, but is no MOVE through a channel"));
  Programs last = programs_of(Collective::all_to_all, "pairwise", 2);
  at(last[1], 2).in_turn_with_next = true;
  EXPECT_THAT(findings_of(last), StartsWith("rank 1 step 2: takes turns with the next step, but is the last"));
}

TEST(BrokenSchedule, MovesWithoutALengthOrWithTwo) {
  const auto finding_of = [](const Step& step, int units_per_block = 1) {
    Programs made = programs_of(Collective::all_to_all, "pairwise", 2);
    made.original.shape.units_per_block = units_per_block;
    made.original.shape.scratch_units = 4;
    made[1][0] = step;
    return findings_of(made);
  };
  EXPECT_THAT(finding_of(move({channel(0)}, {channel(0)})),
              StartsWith("rank 1 step 0: a MOVE without memory has no length"));
  EXPECT_THAT(finding_of(relay(0, 0, scratch(1, unit(0)))),
              StartsWith("rank 1 step 0: a MOVE as long as something that is neither input nor output"));
  Step two = move({output(1, unit(0))}, {input(1, unit(0))});
  two.as_long_as = output(0, unit(0));
  EXPECT_THAT(finding_of(two), StartsWith("rank 1 step 0: a MOVE of memory states another length"));
  EXPECT_THAT(finding_of(move({scratch(1, units(0, 2))}, {input(1, unit(0))})),
              StartsWith("rank 1 step 0: a MOVE of 1 units to or from 2"));
  EXPECT_THAT(finding_of(move({scratch(1, units(0, 2))}, {input(1, units(0, 2))}), 3),
              StartsWith("rank 1 step 0: 2 units of scratch, though a block has 3: one, or blocks of one unit"));
  EXPECT_THAT(finding_of(move({channel(0)}, {scratch(1, unit(0))}), 3),
              StartsWith("rank 1 step 0: a MOVE of scratch alone, though a block has 3 units, has no length"));
  Step several = move({channel(0)}, {scratch(1, units(0, 2))});
  several.as_long_as = input(1, units(0, 2));
  EXPECT_THAT(finding_of(several, 3),
              StartsWith("rank 1 step 0: a MOVE of scratch as long as something else, of more than one unit"));
}

TEST(BrokenSchedule, WriteIntoAnInput) {
  Programs direct = programs_of(Collective::all_to_all, "direct", 2);
  direct[1].push_back(move({input(1, unit(0))}, {output(1, unit(1))}));
  EXPECT_THAT(findings_of(direct), StartsWith("rank 1 step 6: writes into an input"));
}

// An empty token into a channel touches nothing, and must not hide a race of others on the bytes behind it.
TEST(BrokenSchedule, RaceBehindAnEmptyAccess) {
  Programs made = programs_of(Collective::all_reduce, "two_shot", 2);
  made.original.shape = {.units_per_block = 4, .scratch_units = 1, .largest_message = 1, .exposes_output = true};
  made.original.least_slots = [](int slices) { return slices; };
  const Exposure first_two{.space = Space::output, .units = units(0, 2)};
  made[0] = {move({output(0, units(0, 2))}, {input(0, units(0, 2))}), signal(only(1), 1, {}, first_two),
             move({scratch(0, unit(0))}, {output(0, unit(1))}),  // while rank 1 may write it
             wait(only(1), 2), move({channel(1)}, {output(0, unit(3))})};
  made[1] = {wait(only(0), 1), move({output(0, units(0, 2))}, {input(1, units(0, 2))}), signal(only(0), 2),
             move({output(1, unit(3))}, {channel(0)})};
  const Schedule schedule = made.schedule();
  BindRequest request = request_for(schedule);
  request.count = 32;  // two lines: units 2 and 3 are empty
  EXPECT_THAT(findings_of(schedule, request),
              HasSubstr("rank 0 step 2: race: reads output bytes [64, 128) of rank 0 while rank 1 may write it in its "
                        "step 1 (exposed at rank 0 step 1)"));
}

/// A broadcast from shared buffers whose root has scratch too.
Programs direct_with_scratch() {
  Programs direct = programs_of(Collective::broadcast, "direct", 2);
  direct[0].insert(direct[0].begin() + 1, move({scratch(0, unit(0))}, {input(0, unit(0))}));
  direct.original.shape.scratch_units = 1;
  direct.original.cost = [](int rank) { return rank == 0 ? Cost{4, 0, 0, 3} : Cost{3, 0, 1, 3}; };
  return direct;
}

// Small scratch would be placed where the references to the exposed input are.
TEST(BrokenSchedule, ExposureThatTheShapeHides) {
  Programs direct = direct_with_scratch();
  EXPECT_TRUE(prove_schedule(direct.schedule()).is_ok()) << prove_schedule(direct.schedule()).status().message();
  direct.original.shape.exposes_input = false;
  const std::string finding = "rank 0 step 0: exposes the input, but the schedule's shape says that no rank does";
  for (const Buffers buffers : {Buffers::shared, Buffers::private_}) {
    EXPECT_THAT(findings_of(direct, buffers), StartsWith(finding)) << to_string(buffers);
  }
  const Status status = prove_schedule(direct.schedule()).status();
  EXPECT_EQ(status.code(), Code::refuted);
  EXPECT_THAT(status.message(), HasSubstr(finding));
}

TEST(BrokenSchedule, RankSetOutOfRange) {
  const auto expect_refuted = [](Programs one_shot, const std::string& finding) {
    EXPECT_THAT(findings_of(one_shot), StartsWith(finding));
    const Status status = prove_schedule(one_shot.schedule()).status();
    EXPECT_EQ(status.code(), Code::refuted);
    EXPECT_THAT(status.message(), HasSubstr(finding));
  };
  const Programs whole = programs_of(Collective::all_reduce, "one_shot", 3);
  Programs strides = whole;
  at(strides[2], 1).ranks.stride = at(strides[2], 2).ranks.stride = 1 + 3 * 50'000;  // the same ranks modulo 3
  expect_refuted(strides, "rank 2 step 1: SIGNAL to the ranks {first 0, stride 150001, n 2}, on 3 ranks: ");
  Programs beyond = whole;
  at(beyond[1], 2).ranks = only(1'000'000);
  expect_refuted(beyond, "rank 1 step 2: WAIT for the ranks {first 1000000, stride 1, n 1}, on 3 ranks: ");
  Programs many = whole;
  at(many[1], 3).sources.items[0].ranks.n = 5;
  expect_refuted(many, "rank 1 step 3: a source on the ranks {first 0, stride 1, n 5}, on 3 ranks: ");
}

// Both destinations would be the same slot, and the second slice be published empty.
TEST(BrokenSchedule, OneChannelTwiceInAMove) {
  Programs knomial = programs_of(Collective::broadcast, "knomial", 2);
  at(knomial[0], 0).destinations.push_back(channel(1));
  double_step(knomial[1], 0);
  EXPECT_EQ(findings_of(knomial), "rank 0 step 0: a MOVE has the channel of rank 1 twice on one side\n");
}

TEST(BrokenSchedule, EveryDroppedOrDoubledStepAndEveryShiftedPhaseIsRefuted) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {2, 5}) {
      const Programs whole = programs_of(algorithm->collective, algorithm->name, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < whole.original.step_count(rank); ++i) {
          Programs dropped = whole;
          drop(dropped[rank], i);
          Programs doubled = whole;
          double_step(doubled[rank], i);
          Programs shifted = whole;
          ++at(shifted[rank], i).phase;
          const auto is_refuted = [](const Programs& programs) {
            return prove_schedule(programs.schedule()).status().code() == Code::refuted;
          };
          EXPECT_TRUE(is_refuted(dropped)) << algorithm->name << " rank " << rank << " step " << i;
          EXPECT_TRUE(is_refuted(doubled)) << algorithm->name << " rank " << rank << " step " << i;
          EXPECT_TRUE(is_refuted(shifted) || at(shifted[rank], i).verb == Verb::move)
              << algorithm->name << " rank " << rank << " step " << i;
        }
      }
    }
  }
}

TEST(BrokenSchedule, EveryReasonIsGivenAtOnce) {
  Programs two_shot = programs_of(Collective::all_reduce, "two_shot", 3);
  at(two_shot[0], 0).write = {.space = Space::output, .units = units(0, 3)};
  at(two_shot[1], 2).destinations.items[0] = on(only(1), output(1, unit(1)));
  two_shot[1].insert(two_shot[1].begin() + 3, move({output(0, unit(2))}, {output(1, unit(1))}));
  const std::string said = prove_schedule(two_shot.schedule()).status().message();
  EXPECT_THAT(said, StartsWith("all_reduce two_shot on 3 ranks, root 0: rank 1: the cost formula says "));
  EXPECT_THAT(said, HasSubstr("\nall_reduce two_shot on 3 ranks, root 0, out of place, shared buffers, 1 slice per "
                              "unit:\n  rank 1 step 3: race: writes output bytes [128, 192) of rank 0 while rank"));

  Schedule ring = schedule_for(Collective::all_reduce, "two_shot", 6);
  ring.cost = [cost = ring.cost](int rank) {
    Cost more = cost(rank);
    ++more.depth;
    return more;
  };
  ring.synchronises = false;
  const std::string stated = prove_schedule(ring).status().message();
  EXPECT_THAT(stated, HasSubstr("the cost formula says "));
  EXPECT_THAT(stated, HasSubstr("\nall_reduce two_shot on 6 ranks, root 0: synchronises is true, but false is stated"));
}

TEST(BrokenSchedule, WrongStatementsAboutItself) {
  Schedule ring = schedule_for(Collective::all_reduce, "ring", 4);
  ring.least_slots = [](int slices) { return slices + 2; };
  EXPECT_THAT(prove_schedule(ring).status().message(),
              HasSubstr("with messages of 1 slice 2 slots are needed, but 3 are stated"));

  Schedule knomial = schedule_for(Collective::broadcast, "knomial", 4);
  knomial.synchronises = true;
  EXPECT_THAT(prove_schedule(knomial).status().message(),
              HasSubstr("rank 0: can end before rank 1 has started, though the plan says that it synchronises"));

  Schedule two_shot = schedule_for(Collective::all_reduce, "two_shot", 6);
  two_shot.synchronises = false;
  EXPECT_THAT(prove_schedule(two_shot).status().message(), HasSubstr("synchronises is true, but false is stated"));
}

}  // namespace
}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// The verifier on trial, on ranks as threads: each fault is found and named; where a part of the verifier is blind, the
// faults that only it sees are missed.
#include "harness/faults/trial.h"

#include <map>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::faults {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4;

Case case_of(Collective collective, Dtype dtype = Dtype::f32) {
  Case one;
  one.collective = collective;
  one.dtype = dtype;
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.ranks = kRanks;
  one.ranks_as = RanksAs::threads;
  one.transport = "local";
  one.algorithm = "auto";
  return one;
}

/// Runner 0's results.
std::vector<TrialResult> results_of(const Case& what, std::span<const Fault> faults, const Sight& sight,
                                    std::uint64_t seed = 1) {
  const BoardMemory memory(kRanks);
  const Board board = memory.board();
  const auto domain = local::open_domain(local::shape_for(kRanks));
  EXPECT_TRUE(domain.is_ok());
  std::vector<TrialResult> results;
  const auto run = [&](Runner& runner) -> Status {
    const auto breaker = std::make_shared<PlanBreaker>();
    const CommunicatorOptions options{.waiting = Waiting::yield, .prove_plans = false};
    TUTTI_ASSIGN_OR_RETURN(const auto own, OwnBackend::create(*domain.value(), runner.ranks(), options,
                                                              {.after_bind = PlanBreaker::hook(breaker)}));
    Injector injector(*own, runner.ranks(), breaker);
    for (const Fault fault : faults) {
      const auto source = [&own](const Case& which, std::size_t index) { return own->allocator(which, index); };
      const TrialPlace place{.runner = runner, .own = *own, .injector = injector, .sight = sight, .memory = source};
      TUTTI_ASSIGN_OR_RETURN(TrialResult result, try_fault(place, what, fault, seed));
      if (runner.index() == 0) results.push_back(std::move(result));
    }
    return {};
  };
  on_runners(board, kRanks, [&](Runner& runner) {
    const Status status = run(runner);
    EXPECT_TRUE(status.is_ok()) << "runner " << runner.index() << ": " << status.message();
    if (!status.is_ok()) board.abort_flag().store(1);
  });
  return results;
}

constexpr Sight kBlind{.outputs = false, .inputs = false, .guards = false, .afterwards = false, .barriers = false};

class Trial : public testing::TestWithParam<Collective> {};

TEST_P(Trial, EveryFaultIsCaughtAndNamedOrHasNoMeaningHere) {
  for (const TrialResult& result : results_of(case_of(GetParam()), all_faults(), {})) {
    const std::string why = why_not_applicable(result.fault, case_of(GetParam()));
    SCOPED_TRACE(fmt::format("{}, {}: {}", to_string(result.fault), result.case_id, result.text));
    EXPECT_EQ(to_string(result.outcome), why.empty() ? "caught" : "not applicable");
    EXPECT_EQ(result.names_cause, why.empty());
    EXPECT_NE(result.text, "");
    const auto read_back = trial_from_json(to_json(result));
    ASSERT_TRUE(read_back.is_ok());
    EXPECT_EQ(to_json(read_back.value()), to_json(result));
  }
}

TEST_P(Trial, WhatABlindVerifierMissesIsMissed) {
  for (const TrialResult& result : results_of(case_of(GetParam()), all_faults(), kBlind)) {
    if (result.outcome == TrialOutcome::not_applicable) continue;
    EXPECT_EQ(to_string(result.outcome), "missed") << to_string(result.fault);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Trial,
                         testing::Values(Collective::broadcast, Collective::all_reduce, Collective::reduce,
                                         Collective::all_gather, Collective::scatter, Collective::barrier,
                                         Collective::gather_v),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

/// What comes of one fault with many seeds, by the words that stand in the case's id.
std::map<std::string, std::vector<TrialResult>> results_by_place(const Case& what, Fault fault,
                                                                 const Sight& sight = {}) {
  std::map<std::string, std::vector<TrialResult>> by_place;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const TrialResult& result : results_of(what, std::array{fault}, sight, seed)) {
      for (const char* place : {"/in/", "/out/", "/private/", "/shared/"}) {
        if (result.case_id.find(place) != std::string::npos) by_place[place].push_back(result);
      }
    }
  }
  return by_place;
}

TEST(TrialOfPlaces, FaultsAreFoundAndNamedInPlaceAndOnSharedBuffers) {
  for (const auto& [collective, fault] : {std::pair(Collective::all_reduce, Fault::missing_rank),
                                          std::pair(Collective::all_gather, Fault::write_past_end),
                                          std::pair(Collective::reduce_scatter, Fault::flipped_bit),
                                          std::pair(Collective::reduce_scatter, Fault::overwritten_input)}) {
    const auto by_place = results_by_place(case_of(collective), fault);
    EXPECT_EQ(by_place.size(), 4U) << to_string(fault);
    for (const auto& [place, results] : by_place) {
      for (const TrialResult& result : results) {
        EXPECT_EQ(result.outcome, TrialOutcome::caught) << result.case_id;
        EXPECT_TRUE(result.names_cause) << result.case_id << ": " << result.text;
      }
    }
  }
}

TEST(TrialOfPlaces, AnInputThatIsOverwrittenInPlaceIsSeenByALookAtInputsOnly) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::scatter, Collective::scatter_v}) {
    const auto blind = results_by_place(case_of(collective), Fault::overwritten_input, {.inputs = false});
    ASSERT_TRUE(blind.contains("/in/")) << to_string(collective);
    for (const TrialResult& result : blind.at("/in/"))
      EXPECT_EQ(result.outcome, TrialOutcome::missed) << result.case_id;
    const auto seeing = results_by_place(case_of(collective), Fault::overwritten_input);
    for (const TrialResult& result : seeing.at("/in/")) {
      EXPECT_THAT(result.text, HasSubstr("the input was overwritten")) << result.case_id;
    }
  }
}

TEST(TrialOfPlaces, WhatGivesTheCallOtherBuffersStaysOutOfPlaceOnPrivateOnes) {
  EXPECT_FALSE(fits_in_place(Fault::late_write, Collective::all_reduce));
  EXPECT_FALSE(fits_shared(Fault::late_write, Collective::all_reduce, false));
  EXPECT_FALSE(fits_in_place(Fault::overwritten_input, Collective::all_reduce)) << "the output covers it";
  EXPECT_TRUE(fits_in_place(Fault::overwritten_input, Collective::scatter_v));
  EXPECT_FALSE(fits_in_place(Fault::write_past_end, Collective::scatter)) << "the input goes on there";
  EXPECT_FALSE(fits_shared(Fault::missing_rank, Collective::barrier, false));
  EXPECT_TRUE(fits_shared(Fault::swapped_blocks, Collective::reduce, false));
  EXPECT_FALSE(fits_shared(Fault::swapped_blocks, Collective::reduce, true));
}

TEST(TrialOfParts, WithoutGuardsWritesOutsideTheOutputAreMissed) {
  const std::array faults{Fault::write_past_end, Fault::write_before_start, Fault::overwritten_input};
  const auto results = results_of(case_of(Collective::all_reduce), faults, {.guards = false});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].outcome, TrialOutcome::missed);
  EXPECT_EQ(results[1].outcome, TrialOutcome::missed);
  EXPECT_EQ(results[2].outcome, TrialOutcome::caught);
}

TEST(TrialOfParts, WithoutALookAtInputsAnOverwrittenOneIsMissed) {
  const std::array faults{Fault::overwritten_input, Fault::write_past_end};
  const auto results = results_of(case_of(Collective::all_gather), faults, {.inputs = false});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].outcome, TrialOutcome::missed);
  EXPECT_EQ(results[1].outcome, TrialOutcome::caught);
}

TEST(TrialOfParts, WithoutASecondLookALateWriteIsMissedUnlessTheOutputShowsIt) {
  const std::array faults{Fault::late_write};
  const Case what = case_of(Collective::all_reduce);
  const auto by_output = results_of(what, faults, {.afterwards = false});
  ASSERT_EQ(by_output.size(), 1U);
  EXPECT_EQ(by_output[0].outcome, TrialOutcome::caught);
  EXPECT_FALSE(by_output[0].names_cause) << by_output[0].text;
  const auto by_second_look = results_of(what, faults, {.outputs = false});
  ASSERT_EQ(by_second_look.size(), 1U);
  EXPECT_EQ(by_second_look[0].outcome, TrialOutcome::caught);
  EXPECT_TRUE(by_second_look[0].names_cause) << by_second_look[0].text;
}

TEST(TrialOfParts, AWrongRootOfBlocksThatLieInAnyOrderIsNamed) {
  const std::array faults{Fault::wrong_root};
  const auto results = results_of(case_of(Collective::gather_v, Dtype::i32), faults, {});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, TrialOutcome::caught);
  EXPECT_THAT(results[0].text, HasSubstr("it holds the result, as if this rank were the root")) << results[0].case_id;
}

TEST(Faults, AreParsedByNameAndAnUnknownOneNamesTheNearest) {
  ASSERT_TRUE(parse_faults("all").is_ok());
  EXPECT_EQ(parse_faults("all").value().size(), 14U);
  const auto two = parse_faults("late_write,wrong_root,late_write");
  ASSERT_TRUE(two.is_ok());
  EXPECT_EQ(two.value(), (std::vector{Fault::late_write, Fault::wrong_root}));
  const auto slip = parse_faults("flipped_bits");
  ASSERT_FALSE(slip.is_ok());
  EXPECT_EQ(slip.status().code(), Code::invalid_argument);
  EXPECT_THAT(std::string(slip.status().message()),
              HasSubstr("unknown fault 'flipped_bits': did you mean 'flipped_bit'?"));
}

TEST(Faults, AreNotNamedByTheWordsOfOthers) {
  for (const char* text :
       {"rank 1's contribution is counted twice", "the contributions of ranks 0 and 2 are counted twice",
        "bit 3 of rank 1's contribution was flipped on the way"}) {
    EXPECT_FALSE(names_cause(Fault::missing_rank, text)) << text;
    EXPECT_FALSE(names_cause(Fault::dropped_message, text)) << text;
  }
  for (const char* text : {"rank 1's contribution is missing", "the contributions of ranks 0 and 2 are missing",
                           "3 elements still hold the poison: they were not written"}) {
    EXPECT_TRUE(names_cause(Fault::missing_rank, text)) << text;
    EXPECT_TRUE(names_cause(Fault::dropped_message, text)) << text;
  }
}

TEST(Faults, ThatHaveNoMeaningSayWhy) {
  EXPECT_EQ(why_not_applicable(Fault::wrong_root, case_of(Collective::all_reduce)), "it has no root");
  EXPECT_EQ(why_not_applicable(Fault::flipped_bit, case_of(Collective::barrier)), "a barrier has no data");
  EXPECT_EQ(why_not_applicable(Fault::missing_rank, case_of(Collective::barrier)), "");
  EXPECT_EQ(why_not_applicable(Fault::one_rank_differs, case_of(Collective::reduce)), "only the root has a result");
  Case two = case_of(Collective::exscan);
  EXPECT_EQ(why_not_applicable(Fault::doubled_contribution, two), "");
  two.ranks = 2;
  EXPECT_EQ(why_not_applicable(Fault::doubled_contribution, two),
            "nothing is combined: every element comes from one rank");
  EXPECT_EQ(why_not_applicable(Fault::narrow_type, two), "nothing is reduced");
  Case maximum = case_of(Collective::all_reduce);
  maximum.op = Op::max;
  EXPECT_EQ(why_not_applicable(Fault::doubled_contribution, maximum), "max of a value with itself is that value");
}

}  // namespace
}  // namespace tutti::harness::faults

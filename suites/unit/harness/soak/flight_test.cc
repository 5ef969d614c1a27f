// SPDX-License-Identifier: Apache-2.0
// One operation of a soak: what is right passes, and what is wrong is seen.
#include "harness/soak/flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/tutti/group.h"
#include "impl/transports/local/domain.h"

namespace tutti::harness::soak {
namespace {

using std::chrono::seconds;

SoakOperation operation_of(Collective collective) {
  SoakOperation operation;
  operation.what = {.problem = {.collective = collective, .ranks = 1},
                    .dtype = Dtype::i32,
                    .op = is_reducing(collective) ? Op::sum : Op::none,
                    .count = 100,
                    .seed = 5,
                    .salt = 17};
  operation.algorithm = algorithms_of(collective).size();  // the first of them
  return operation;
}

class OneRank : public testing::Test {
 protected:
  std::unique_ptr<Domain> domain_ = local::open_domain(local::shape_for(1)).value();
  std::shared_ptr<Schedules> schedules_ = std::make_shared<Schedules>();
  TuttiGroup group_{Communicator::create(*domain_, 0, {.prove_plans = false}).value(), schedules_};

  std::string result_of(const SoakOperation& operation) {
    const auto flight = Flight::post(group_, operation).value();
    EXPECT_TRUE(flight->wait(seconds(5)).is_ok());
    return flight->verify();
  }
};

using FlightOfASoak = OneRank;

TEST_F(FlightOfASoak, IsRightForEveryCollectiveInBothPlacements) {
  for (const Collective collective : all_collectives()) {
    for (const bool is_in_place : {false, true}) {
      SoakOperation operation = operation_of(collective);
      operation.is_in_place = is_in_place;
      EXPECT_EQ(result_of(operation), "") << to_string(collective);
    }
  }
}

/// gather_v of one rank whose block of 100 begins after a gap.
SoakOperation with_a_gap() {
  SoakOperation operation = operation_of(Collective::gather_v);
  for (std::uint64_t seed = 0;; ++seed) {
    const auto blocks = std::make_shared<CellBlocks>(operation.what.problem, Counts{}, 100);
    blocks->set_apart(seed);
    operation.what.blocks = blocks;
    if (blocks->output(0, 0).first >= 2) return operation;
  }
}

TEST_F(FlightOfASoak, OfAVFormIsRightInBothPlacements) {
  for (const bool is_in_place : {false, true}) {
    SoakOperation operation = with_a_gap();
    operation.is_in_place = is_in_place;
    EXPECT_EQ(result_of(operation), "");
  }
}

TEST_F(FlightOfASoak, WhoseGapsWereWrittenIsWrong) {
  for (const bool is_in_place : {false, true}) {
    SoakOperation operation = with_a_gap();
    operation.is_in_place = is_in_place;
    const auto flight = Flight::post(group_, operation).value();
    ASSERT_TRUE(flight->wait(seconds(5)).is_ok());
    ASSERT_EQ(flight->verify(), "");
    flight->output()[0] ^= std::byte{1};
    EXPECT_THAT(flight->verify(), testing::HasSubstr("the gaps between blocks are not to be written"));
  }
}

TEST_F(FlightOfASoak, ThatDoesNothingIsWrong) {
  const SoakOperation operation = operation_of(Collective::all_reduce);
  const Algorithm* const algorithm = algorithms_of(Collective::all_reduce).front();
  auto idle = std::make_unique<Schedule>(schedule_of(*algorithm, operation.what.problem));
  idle->step_count = [](int) { return 0; };
  (*schedules_)[{algorithm, 1, 0, 0, operation.what.problem.pairing.window}] = std::move(idle);
  EXPECT_THAT(result_of(operation), testing::HasSubstr("output still holds the poison: nothing was written"));
}

TEST_F(FlightOfASoak, CarriesItsMessageToItself) {
  SoakOperation operation = operation_of(Collective::barrier);
  operation.is_exchange = true;
  EXPECT_EQ(result_of(operation), "");
}

TEST_F(FlightOfASoak, SaysWhatItIs) {
  const auto flight = Flight::post(group_, operation_of(Collective::reduce)).value();
  ASSERT_TRUE(flight->wait(seconds(5)).is_ok());
  EXPECT_EQ(flight->name(),
            "operation 16 (reduce int32 sum of 100, root 0, out of place, private, on communicator 0 of 1 ranks)");
}

}  // namespace
}  // namespace tutti::harness::soak

// SPDX-License-Identifier: Apache-2.0
// What two ranks say of where they stand, where it takes channels that are soon full, segments, or calls that wait for
// nobody to get there.
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "impl/algorithms/algorithm.h"
#include "impl/collective/blocks.h"
#include "impl/communicator/communicator.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Two ranks as tasks, with channels of four slots of 1 KiB.
class FewSlots : public testing::Test {
 protected:
  static DomainShape shape() {
    DomainShape shape = local::shape_for(2);
    shape.slots = shape.pair_slots = 4;
    shape.slot_bytes = shape.pair_slot_bytes = 1024;
    return shape;
  }
  void open(std::size_t rank, Count segment) {
    const CommunicatorOptions options{.waiting = Waiting::yield, .segment = segment, .prove_plans = false};
    ranks_[rank] = Communicator::create(*domain_, static_cast<int>(rank), options).value();
  }
  [[nodiscard]] Communicator& on(std::size_t rank) {
    if (ranks_[rank] == nullptr) open(rank, 0);
    return *ranks_[rank];
  }
  /// Rank 0's data to both.
  [[nodiscard]] Call broadcast(const char* algorithm, Count count) {
    const Problem problem{.collective = Collective::broadcast, .ranks = 2};
    schedules_.push_back(
        std::make_unique<Schedule>(schedule_of(*find_algorithm(problem.collective, algorithm).value(), problem)));
    return {.collective = Collective::broadcast,
            .count = count,
            .input = values_.data(),
            .output = values_.data(),
            .is_in_place = true,
            .schedule = schedules_.back().get()};
  }
  /// Of blocks of counts[b] elements, to rank 0.
  Result<Work> post_gather_v(std::size_t rank, const std::array<Count, 2>& counts) {
    const Problem problem{.collective = Collective::gather_v, .ranks = 2};
    const BlockTable blocks = blocks_of(problem, static_cast<int>(rank), {.counts = counts}, sizeof(float)).value();
    return on(rank).post({.collective = Collective::gather_v,
                          .input = values_.data(),
                          .output = values_.data() + 1024,
                          .blocks = &blocks});
  }
  [[nodiscard]] Work post(std::size_t rank, const Call& call) { return on(rank).post(call).value(); }

  std::unique_ptr<Domain> domain_ = local::open_domain(shape()).value();
  std::vector<std::unique_ptr<Schedule>> schedules_;
  std::array<std::unique_ptr<Communicator>, 2> ranks_;
  std::vector<float> values_ = std::vector<float>(4096);
};

TEST_F(FewSlots, SayHowManyBytesTheyWaitFor) {
  const Call call = broadcast("knomial", 2048);
  const std::string where = "operation 1 (broadcast knomial of 2048 float, root 0), step 1 of 1: waits for ";
  Work leaf = post(1, call);
  EXPECT_EQ(leaf.position(), where + "8192 bytes from rank 0");
  Work root = post(0, call);
  EXPECT_FALSE(root.test().value());
  EXPECT_EQ(root.position(), where + "room for 4096 bytes at rank 1") << "as many lie in the slots";
  EXPECT_FALSE(leaf.test().value());
  EXPECT_EQ(leaf.position(), where + "4096 bytes from rank 0");
}

TEST_F(FewSlots, NameWhoHasNotCompletedAnOperationAGenerationAgo) {
  const Call call = broadcast("direct", 4);
  for (int i = 0; i < shape().generations; ++i) EXPECT_TRUE(post(0, call).test().value()) << "it waits for nobody";
  EXPECT_EQ(post(0, call).position(),
            "operation 5 (broadcast direct of 4 float, root 0): waits for rank 1 to complete an operation a generation "
            "ago");
}

// The fifth is another call than the four before it, and cannot start: nobody may take it for one of those.
TEST_F(FewSlots, WhatWaitsForAGenerationIsTheCallThatItIs) {
  const Call broadcast_call = broadcast("direct", 4);
  const Call barrier{.collective = Collective::barrier};
  for (int i = 0; i < shape().generations; ++i) ASSERT_TRUE(post(0, broadcast_call).test().value());
  Work zero = post(0, barrier);
  const auto report = [&] { return on(1).report(); };
  const auto end = Clock::now() + seconds(20);
  while (report().find("a generation ago") == std::string::npos && Clock::now() < end) {
    ASSERT_FALSE(zero.test().value());
  }
  EXPECT_THAT(report(), HasSubstr("rank 0 has completed operation 4 (broadcast direct of 4 float, root 0), is in "
                                  "operation 5 (barrier dissemination): waits for rank 1 to complete an operation a "
                                  "generation ago"));
  for (int i = 0; i < shape().generations; ++i) ASSERT_TRUE(post(1, broadcast_call).test().value());
  Work one = post(1, barrier);
  const Result<bool> tested = one.test();
  ASSERT_TRUE(tested.is_ok()) << tested.status().message();
  while (!zero.test().value() || !one.test().value()) {
  }
}

TEST_F(FewSlots, SayWhichSegmentOfACallAnOperationIs) {
  for (std::size_t rank = 0; rank < 2; ++rank) open(rank, 128);
  const Call call = broadcast("knomial", 300);
  const std::string text = " (broadcast knomial of 300 float, root 0, segment ";
  Work leaf = post(1, call);
  EXPECT_THAT(leaf.position(), StartsWith("operation 1" + text + "1 of 3), step 1 of 1: waits for 512 bytes from "));
  Work root = post(0, call);
  while (!root.test().value() || !leaf.test().value()) {
  }
  EXPECT_EQ(on(0).report(), "\n  rank 0 has completed operation 3" + text + "3 of 3)\n  rank 1 has completed " +
                                "operation 3" + text + "3 of 3)");
}

TEST_F(FewSlots, SegmentsOfOtherLengthsAreAMismatch) {
  open(0, 128);
  open(1, 100);
  const Call call = broadcast("knomial", 300);
  (void)post(0, call);
  EXPECT_THAT(
      std::string(post(1, call).test().status().message()),
      StartsWith("rank 1 and rank 0 do not agree on operation 1: bytes per segment 400 and 512 (rank 1 calls "));
}

TEST_F(FewSlots, OtherCountsInSegmentsOfOneLengthAreAMismatch) {
  for (std::size_t rank = 0; rank < 2; ++rank) open(rank, 128);
  (void)post(0, broadcast("knomial", 300));
  EXPECT_THAT(std::string(post(1, broadcast("knomial", 301)).test().status().message()),
              StartsWith("rank 1 and rank 0 do not agree on operation 1: count 301 and 300 (rank 1 calls "));
}

TEST_F(FewSlots, APlacementThatIsTheRootsOwnAffairIsNoField) {
  const Call leaf{.collective = Collective::reduce,
                  .op = Op::sum,
                  .count = 9,
                  .input = values_.data(),
                  .output = values_.data() + 1024};
  Call root = leaf;
  root.count = 8;
  root.output = values_.data();
  root.is_in_place = true;
  (void)post(0, root);
  EXPECT_THAT(std::string(post(1, leaf).test().status().message()),
              StartsWith("rank 1 and rank 0 do not agree on operation 1: count 9 and 8 (rank 1 calls "));
}

// A rank keeps the counts of its last v form only: where both calls read alike otherwise, that is said.
TEST_F(FewSlots, CountsThatAreNotKnownAnyMoreAreSaidToDiffer) {
  ASSERT_TRUE(post_gather_v(1, {2, 3}).value().test().value()) << "it waits for nobody";
  ASSERT_TRUE(post_gather_v(1, {5, 5}).value().test().value());
  const Result<Work> root = post_gather_v(0, {2, 4});
  const Status status = root.is_ok() ? Work(root.value()).test().status() : root.status();
  EXPECT_EQ(status.code(), Code::mismatch);
  EXPECT_THAT(status.message(), StartsWith("rank 0 and rank 1 do not agree on operation 1: counts, not known any more "
                                           "(rank 0 calls gather_v "));
}

TEST_F(FewSlots, SayHowFarATransferWentThatStandsStill) {
  Work send = on(0).post_send(values_.data(), 2048, Dtype::f32, 1).value();
  EXPECT_FALSE(send.test().value());
  EXPECT_EQ(send.position(), "send of 2048 float (8192 bytes) to rank 1 has no receive");
  Work receive = on(1).post_recv(values_.data() + 2048, 2048, Dtype::f32, 0).value();
  Work next = on(1).post_recv(values_.data(), 3, Dtype::i32, 0).value();
  EXPECT_FALSE(receive.test().value());
  EXPECT_EQ(send.position(), "send of 2048 float (8192 bytes) to rank 1 stands still after 4096 bytes");
  EXPECT_EQ(receive.position(), "receive of 2048 float (8192 bytes) from rank 0 stands still after 4096 bytes");
  EXPECT_EQ(next.position(), "receive of 3 int32 (12 bytes) from rank 0 waits for 1 before it");
}

TEST_F(FewSlots, SayWhoHasLeft) {
  const Call call{.collective = Collective::barrier};
  Work zero = post(0, call), one = post(1, call);
  while (!zero.test().value() || !one.test().value()) {
  }
  ranks_[1] = nullptr;
  EXPECT_EQ(on(0).report(),
            "\n  rank 0 has completed operation 1 (barrier dissemination)"
            "\n  rank 1 has completed operation 1 (barrier dissemination) and has left");
}

TEST_F(FewSlots, SayWhoHasLeftInAnOperation) {
  (void)post(1, {.collective = Collective::barrier});
  ranks_[1] = nullptr;
  EXPECT_EQ(on(0).report(),
            "\n  rank 0 has not called operation 1: it has made no call"
            "\n  rank 1 has completed no operation, has left in operation 1 (barrier dissemination)");
}

TEST_F(FewSlots, SayWhatWasCompletedAlsoOfARankThatHasToldNothing) {
  const Call barrier{.collective = Collective::barrier};
  const auto make_one = [&] {
    Work zero = post(0, barrier), one = post(1, barrier);
    while (!zero.test().value() || !one.test().value()) {
    }
  };
  make_one();
  (void)post(1, barrier);
  EXPECT_THAT(on(0).report(),
              EndsWith("\n  rank 1 has completed operation 1 (barrier dissemination), is in operation 2 "
                       "(barrier dissemination)"));
  (void)post(1, barrier);
  EXPECT_THAT(on(0).report(), EndsWith("\n  rank 1 has completed at least operation 1 (barrier dissemination), is in "
                                       "operation 3 (barrier dissemination)"));
}

}  // namespace
}  // namespace tutti

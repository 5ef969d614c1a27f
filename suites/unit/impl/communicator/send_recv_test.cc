// SPDX-License-Identifier: Apache-2.0
// Sends and receives: matching, lengths, order, and how they live beside collectives.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SendRecv : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SendRecv, testing::Values(Kind::threads, Kind::processes, Kind::blocks),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

std::vector<std::int32_t> message(int from, int to, std::size_t length) {
  std::vector<std::int32_t> values(length);
  std::iota(values.begin(), values.end(), (from + 1) * 1000000 + to * 1000);
  return values;
}

TEST_P(SendRecv, CarriesMessagesOfAnyLength) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    for (const std::size_t length : {0U, 1U, 10U, 11U, 4096U, 4097U, 100000U, 1000000U}) {
      std::vector<std::int32_t> values(length, -1);
      if (communicator.rank() == 0) {
        values = message(0, 1, length);
        ASSERT_TRUE(communicator.send(values.data(), static_cast<Count>(length), Dtype::i32, 1).is_ok());
      } else {
        ASSERT_TRUE(communicator.recv(values.data(), static_cast<Count>(length), Dtype::i32, 0).is_ok());
      }
      ASSERT_EQ(values, message(0, 1, length)) << length;
    }
  });
}

TEST_P(SendRecv, TheTutorialsTensorGoesFromRankZeroToRankOne) {
  // torch.distributed's tutorial: rank 0 adds one to its zero and sends it.
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    float tensor = 0;
    if (communicator.rank() == 0) {
      tensor += 1;
      ASSERT_TRUE(communicator.send(&tensor, 1, Dtype::f32, 1).is_ok());
    } else {
      ASSERT_TRUE(communicator.recv(&tensor, 1, Dtype::f32, 0).is_ok());
    }
    EXPECT_EQ(tensor, 1);
  });
}

TEST_P(SendRecv, ARingOfLongMessagesIsPostedAtOnce) {
  on_ranks(GetParam(), 4, [](Communicator& communicator) {
    const int rank = communicator.rank(), ranks = communicator.ranks();
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    constexpr std::size_t kLength = 100000;
    const std::vector<std::int32_t> out = message(rank, right, kLength);
    std::vector<std::int32_t> in(kLength);
    Work sent = communicator.post_send(out.data(), kLength, Dtype::i32, right).value();
    Work received = communicator.post_recv(in.data(), kLength, Dtype::i32, left).value();
    ASSERT_TRUE(sent.wait(seconds(20)).is_ok());
    ASSERT_TRUE(received.wait(seconds(20)).is_ok());
    EXPECT_EQ(in, message(left, rank, kLength));
  });
}

TEST_P(SendRecv, MessagesOfAPairKeepTheirOrderWhateverIsWaitedForFirst) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    constexpr std::size_t kMessages = 100;
    const int peer = 1 - communicator.rank();
    std::vector<std::vector<std::int32_t>> in, out;
    std::vector<Work> works;
    for (std::size_t i = 0; i < kMessages; ++i) {
      out.push_back(message(communicator.rank(), peer, i * 50));
      in.emplace_back(i * 50);
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      const auto count = static_cast<Count>(in[i].size());
      works.push_back(communicator.post_recv(in[i].data(), count, Dtype::i32, peer).value());
      works.push_back(communicator.post_send(out[i].data(), count, Dtype::i32, peer).value());
    }
    std::reverse(works.begin(), works.end());
    for (Work& work : works) ASSERT_TRUE(work.wait(seconds(20)).is_ok());
    for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(in[i], message(peer, communicator.rank(), i * 50));
  });
}

TEST_P(SendRecv, ARankSendsToItself) {
  on_ranks(GetParam(), 1, [](Communicator& communicator) {
    constexpr std::size_t kLength = 1000000;
    const std::vector<std::int32_t> out = message(0, 0, kLength);
    std::vector<std::int32_t> in(kLength);
    Work sent = communicator.post_send(out.data(), kLength, Dtype::i32, 0).value();
    Work received = communicator.post_recv(in.data(), kLength, Dtype::i32, 0).value();
    ASSERT_TRUE(sent.wait(seconds(20)).is_ok());
    ASSERT_TRUE(received.wait(seconds(20)).is_ok());
    EXPECT_EQ(in, out);
  });
}

TEST_P(SendRecv, TheBufferOfACompleteSendMayBeWritten) {
  if (GetParam() == Kind::blocks) GTEST_SKIP() << "a send of thread blocks is complete when its receive is";
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    std::int32_t value = 7;
    if (communicator.rank() == 0) {
      ASSERT_TRUE(communicator.send(&value, 1, Dtype::i32, 1).is_ok()) << "a short send does not wait for its receive";
      value = 8;
      ASSERT_TRUE(communicator.barrier().is_ok());
    } else {
      ASSERT_TRUE(communicator.barrier().is_ok());
      ASSERT_TRUE(communicator.recv(&value, 1, Dtype::i32, 0).is_ok());
      EXPECT_EQ(value, 7);
    }
  });
}

TEST_P(SendRecv, APostedTransferKeepsNoCollectiveWaitingAndIsMovedByItsWait) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    constexpr std::size_t kLength = 300000;
    const int peer = 1 - communicator.rank();
    const std::vector<std::int32_t> out = message(communicator.rank(), peer, kLength);
    std::vector<std::int32_t> in(kLength);
    Work sent = communicator.post_send(out.data(), kLength, Dtype::i32, peer).value();
    for (int i = 0; i < 100; ++i) {
      std::int32_t value = i, sum = 0;
      ASSERT_TRUE(communicator.all_reduce(&value, &sum, 1, Dtype::i32, Op::sum).is_ok());
      ASSERT_EQ(sum, 2 * i);
    }
    Work received = communicator.post_recv(in.data(), kLength, Dtype::i32, peer).value();
    // Rank 0 waits for a collective only; rank 1 comes to it after its transfers, which rank 0 must move meanwhile.
    if (communicator.rank() == 1) {
      ASSERT_TRUE(sent.wait(seconds(20)).is_ok());
      ASSERT_TRUE(received.wait(seconds(20)).is_ok());
    }
    ASSERT_TRUE(communicator.barrier().is_ok());
    ASSERT_TRUE(sent.wait(seconds(20)).is_ok());
    ASSERT_TRUE(received.wait(seconds(20)).is_ok());
    EXPECT_EQ(in, message(peer, communicator.rank(), kLength));
  });
}

TEST_P(SendRecv, AnotherLengthOrDtypeIsAMismatchThatNamesBothSides) {
  struct Wrong {
    Count count;
    Dtype dtype;
    const char* text;
  };
  for (const Wrong& wrong : {Wrong{9, Dtype::f32, "from rank 1 to rank 0: 9 float is sent, 8 float expected"},
                             Wrong{8, Dtype::i32, "from rank 1 to rank 0: 8 int32 is sent, 8 float expected"},
                             Wrong{0, Dtype::f32, "from rank 1 to rank 0: 0 float is sent, 8 float expected"}}) {
    on_ranks(GetParam(), 2, [&wrong, is_told_to_all = GetParam() == Kind::blocks](Communicator& communicator) {
      float buffer[16] = {};
      if (is_told_to_all) {
        const Status status = communicator.rank() == 1 ? communicator.send(buffer, wrong.count, wrong.dtype, 0)
                                                       : communicator.recv(buffer, 8, Dtype::f32, 1);
        EXPECT_EQ(status.code(), Code::mismatch);
        EXPECT_THAT(status.message(), testing::HasSubstr(wrong.text));
      } else if (communicator.rank() == 1) {
        ASSERT_TRUE(communicator.send(buffer, wrong.count, wrong.dtype, 0).is_ok());
        const Status status = communicator.recv(buffer, 1, Dtype::f32, 0);
        EXPECT_EQ(status.code(), Code::aborted);
        EXPECT_THAT(status.message(), testing::StartsWith("rank 0 failed: mismatch: message 1 "));
        EXPECT_THAT(status.message(), testing::HasSubstr(wrong.text));
      } else {
        const Status status = communicator.recv(buffer, 8, Dtype::f32, 1);
        EXPECT_EQ(status.code(), Code::mismatch);
        EXPECT_THAT(status.message(), testing::HasSubstr(wrong.text));
      }
    });
  }
}

TEST_P(SendRecv, WhoIsWaitedForIsNamedAtTheDeadline) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    float value = 0;
    Work work = communicator.post_recv(&value, 1, Dtype::f32, 1).value();
    EXPECT_FALSE(work.test().value());
    const Status status = work.wait(milliseconds(20));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(),
                testing::StartsWith("rank 0 gave up: receive of 1 float (4 bytes) from rank 1 has no send\n"));
    EXPECT_EQ(communicator.barrier().code(), Code::timeout) << "the first error is the communicator's end";
  });
}

TEST(SendRecv, ValuesOutOfRangeAreRefused) {
  on_threads(1, [](Communicator& communicator) {
    float value = 0;
    EXPECT_EQ(communicator.send(&value, 1, Dtype::f32, 1).message(), "send to rank 1, which is out of range: 0 to 0");
    EXPECT_EQ(communicator.recv(&value, -1, Dtype::f32, 0).code(), Code::invalid_argument);
    EXPECT_EQ(communicator.recv(&value, std::int64_t{1} << 62U, Dtype::f32, 0).code(), Code::invalid_argument);
    EXPECT_EQ(communicator.recv(nullptr, 1, Dtype::f32, 0).message(),
              "receive from rank 0: the buffer is a null pointer");
    EXPECT_TRUE(communicator.barrier().is_ok()) << "a refused call leaves the communicator usable";
  });
}

TEST(SendRecvAsTasks, ManyRanksDrivenByOneThreadExchangeInBothDirections) {
  constexpr int kRanks = 17;
  constexpr std::size_t kLength = 20000;
  const auto domain = local::open_domain(local::shape_for(kRanks)).value();
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::vector<std::int32_t>> in(kRanks, std::vector<std::int32_t>(kLength)), out(kRanks);
  std::vector<Work> works;
  for (int rank = 0; rank < kRanks; ++rank) {
    communicators.push_back(Communicator::create(*domain, rank, {.prove_plans = false}).value());
    const int to = (rank + 5) % kRanks, from = (rank + kRanks - 5) % kRanks;
    out[static_cast<std::size_t>(rank)] = message(rank, to, kLength);
    Communicator& mine = *communicators.back();
    works.push_back(mine.post_send(out[static_cast<std::size_t>(rank)].data(), kLength, Dtype::i32, to).value());
    works.push_back(mine.post_recv(in[static_cast<std::size_t>(rank)].data(), kLength, Dtype::i32, from).value());
  }
  const auto is_pending = [](Work& work) { return !work.test().value(); };
  while (std::ranges::count_if(works, is_pending) > 0) continue;  // all of them, so that every rank makes progress
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(in[static_cast<std::size_t>(rank)], message((rank + kRanks - 5) % kRanks, rank, kLength));
  }
}

}  // namespace
}  // namespace tutti

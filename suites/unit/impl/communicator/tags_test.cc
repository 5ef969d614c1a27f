// SPDX-License-Identifier: Apache-2.0
// Messages with tags: which receive takes which message, what is kept until its receive comes, and what can be asked
// and taken back before.
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "impl/transports/fake/domain.h"
#include "suites/conformance/ranks.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Values = std::vector<std::int32_t>;
Values tagged(int tag, std::size_t length) { return Values(length, 1000 * tag + static_cast<int>(length)); }
Count count_of(const Values& values) { return static_cast<Count>(values.size()); }

class Tags : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Tags, testing::Values(Kind::threads, Kind::processes),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

TEST_P(Tags, AReceiveOvertakesMessagesWithOtherTags) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    for (const std::size_t length : {0U, 1U, 10U, 11U, 5000U, 100000U}) {
      const Values first = tagged(5, length), second = tagged(3, length + 1), third = tagged(0, length);
      if (communicator.rank() == 0) {
        ASSERT_TRUE(communicator.send(first.data(), count_of(first), Dtype::i32, 1, 5).is_ok());
        ASSERT_TRUE(communicator.send(second.data(), count_of(second), Dtype::i32, 1, 3).is_ok());
        ASSERT_TRUE(communicator.send(third.data(), count_of(third), Dtype::i32, 1).is_ok());
      } else {
        Values in(length), longer(length + 1);
        ASSERT_TRUE(communicator.recv(in.data(), count_of(in), Dtype::i32, 0).is_ok());
        EXPECT_EQ(in, third);
        ASSERT_TRUE(communicator.recv(longer.data(), count_of(longer), Dtype::i32, 0, 3).is_ok());
        EXPECT_EQ(longer, second);
        ASSERT_TRUE(communicator.recv(in.data(), count_of(in), Dtype::i32, 0, 5).is_ok());
        EXPECT_EQ(in, first);
      }
    }
  });
}

/// Rank 0 sends `kMessages` messages, each with one of four tags; rank 1 posts the receives in another order, but for
/// those with one tag. Whoever waits in which order is drawn.
class Shuffled {
 public:
  explicit Shuffled(std::uint64_t seed) : random_(seed) {
    std::vector<std::size_t> next(4);
    for (std::size_t i = 0; i < kMessages; ++i) {
      const int tag = static_cast<int>(random_() % 4);
      sent_.push_back({tag, Values(random_() % 3000, static_cast<int>(i) * 10 + tag)});
    }
    for (std::size_t i = 0; i < kMessages; ++i) order_.push_back(i);
    std::ranges::shuffle(order_, random_);
    // The k-th receive with a tag takes the k-th message with it.
    for (int tag = 0; tag < 4; ++tag) {
      std::vector<std::size_t> places, messages;
      for (std::size_t place = 0; place < kMessages; ++place) {
        if (sent_[order_[place]].tag == tag) places.push_back(place);
        if (sent_[place].tag == tag) messages.push_back(place);
      }
      for (std::size_t k = 0; k < places.size(); ++k) order_[places[k]] = messages[k];
    }
    for (const std::size_t message : order_) received_.emplace_back(sent_[message].values.size());
  }
  [[nodiscard]] Result<Work> send(Communicator& from, std::size_t i) const {
    return from.post_send(sent_[i].values.data(), count_of(sent_[i].values), Dtype::i32, 1, sent_[i].tag);
  }
  [[nodiscard]] Result<Work> receive(Communicator& at, std::size_t i) {
    return at.post_recv(received_[i].data(), count_of(received_[i]), Dtype::i32, 0, sent_[order_[i]].tag);
  }
  void expect_right() const {
    for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(received_[i], sent_[order_[i]].values) << i;
  }
  static constexpr std::size_t kMessages = 60;

 private:
  struct Sent {
    int tag;
    Values values;
  };
  std::mt19937_64 random_;
  std::vector<Sent> sent_;
  std::vector<std::size_t> order_;  // which message the i-th receive takes
  std::vector<Values> received_;
};

TEST_P(Tags, MessagesOfATagKeepTheirOrderInAnyOrderOfReceives) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Shuffled messages(seed);
      std::vector<Work> works;
      for (std::size_t i = 0; i < Shuffled::kMessages; ++i) {
        works.push_back(communicator.rank() == 0 ? messages.send(communicator, i).value()
                                                 : messages.receive(communicator, i).value());
      }
      std::mt19937_64 random(seed + 100);
      std::ranges::shuffle(works, random);
      for (Work& work : works) ASSERT_TRUE(work.wait(seconds(20)).is_ok());
      if (communicator.rank() == 1) messages.expect_right();
    }
  });
}

// The receives are posted while messages come, so that some are early in part.
TEST(TagsAsTasks, ReceivesArePostedAtAnyMoment) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const bool on_hosts = seed % 2 == 1;
    DomainShape shape = on_hosts ? shape_across_hosts(2, 2, 0) : local::shape_for(2);
    shape.pair_slots = 2;
    shape.pair_slot_bytes = 256;
    RanksOn world(on_hosts ? fake::open_domain(shape, {.seed = seed}).value() : local::open_domain(shape).value());
    Shuffled messages(seed);
    std::mt19937_64 random(seed);
    std::vector<Work> works;
    for (std::size_t sent = 0, received = 0; sent < Shuffled::kMessages || received < Shuffled::kMessages;) {
      const auto turn = random() % 4;
      if (turn == 0 && sent < Shuffled::kMessages) {
        works.push_back(messages.send(world.on(0), sent++).value());
      } else if (turn == 1 && received < Shuffled::kMessages) {
        works.push_back(messages.receive(world.on(1), received++).value());
      } else if (!works.empty()) {
        ASSERT_TRUE(works[random() % works.size()].test().is_ok());
      }
    }
    ASSERT_TRUE(world.go(works, seed));
    messages.expect_right();
  }
}

TEST_P(Tags, AMessageIsProbedUntilItIsReceived) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    const Values large = tagged(7, 100000), small = tagged(2, 1);
    if (communicator.rank() == 0) {
      ASSERT_TRUE(communicator.barrier().is_ok());
      ASSERT_TRUE(communicator.send(large.data(), count_of(large), Dtype::i32, 1, 7).is_ok());
      ASSERT_TRUE(communicator.send(small.data(), 1, Dtype::i32, 1, 2).is_ok());
      ASSERT_TRUE(communicator.barrier().is_ok());
      return;
    }
    EXPECT_EQ(communicator.probe(0).value(), std::nullopt);
    EXPECT_EQ(communicator.probe(0, 7).value(), std::nullopt);
    ASSERT_TRUE(communicator.barrier().is_ok());
    std::optional<Message> found;
    while (!found) found = communicator.probe(0, 2).value();  // behind the large one, which is kept
    EXPECT_EQ(found->tag, 2);
    EXPECT_EQ(found->bytes, 4);
    EXPECT_EQ(found->dtype, Dtype::i32);
    found = communicator.probe(0).value();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->tag, 7) << "the oldest";
    EXPECT_EQ(found->bytes, 400000);
    Values in(100000);
    ASSERT_TRUE(communicator.recv(in.data(), count_of(in), Dtype::i32, 0, found->tag).is_ok());
    EXPECT_EQ(in, large);
    EXPECT_EQ(communicator.probe(0, 7).value(), std::nullopt);
    ASSERT_TRUE(communicator.recv(in.data(), 1, Dtype::i32, 0, 2).is_ok());
    EXPECT_EQ(in[0], small[0]);
    EXPECT_EQ(communicator.probe(0).value(), std::nullopt);
    ASSERT_TRUE(communicator.barrier().is_ok());
  });
}

TEST_P(Tags, AMessageThatAPostedReceiveTakesIsNotFound) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    std::int32_t value = communicator.rank();
    if (communicator.rank() == 0) {
      ASSERT_TRUE(communicator.barrier().is_ok());
      ASSERT_TRUE(communicator.send(&value, 1, Dtype::i32, 1, 4).is_ok());
      ASSERT_TRUE(communicator.barrier().is_ok());
      return;
    }
    Work work = communicator.post_recv(&value, 1, Dtype::i32, 0, 4).value();
    ASSERT_TRUE(communicator.barrier().is_ok());
    ASSERT_TRUE(communicator.barrier().is_ok());
    EXPECT_EQ(communicator.probe(0).value(), std::nullopt);
    EXPECT_TRUE(work.test().value());
    EXPECT_EQ(value, 0);
  });
}

TEST_P(Tags, AReceiveThatIsTakenBackTakesNothing) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    std::int32_t value = 6, other = -1;
    if (communicator.rank() == 0) {
      ASSERT_TRUE(communicator.barrier().is_ok());
      Work sent = communicator.post_send(&value, 1, Dtype::i32, 1, 4).value();
      EXPECT_FALSE(communicator.cancel(sent)) << "a send is not taken back";
      ASSERT_TRUE(sent.wait().is_ok());
      return;
    }
    value = -1;
    Work first = communicator.post_recv(&value, 1, Dtype::i32, 0, 4).value();
    Work second = communicator.post_recv(&other, 1, Dtype::i32, 0, 4).value();
    EXPECT_TRUE(communicator.cancel(first));
    EXPECT_TRUE(first.test().value());
    EXPECT_FALSE(communicator.cancel(first)) << "it is complete";
    ASSERT_TRUE(communicator.barrier().is_ok());
    ASSERT_TRUE(second.wait(seconds(20)).is_ok());
    EXPECT_FALSE(communicator.cancel(second));
    EXPECT_EQ(value, -1);
    EXPECT_EQ(other, 6);
    EXPECT_TRUE(communicator.cancel(communicator.post_recv(&value, 1, Dtype::i32, 0).value()))
        << "so that the communicator leaves nothing";
  });
}

TEST_P(Tags, AnotherLengthOfAMessageThatWasKeptIsAMismatchThatNamesBothSides) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    float buffer[16] = {};
    if (communicator.rank() == 1) {
      ASSERT_TRUE(communicator.send(buffer, 2, Dtype::f32, 0, 8).is_ok());
      ASSERT_TRUE(communicator.send(buffer, 9, Dtype::f32, 0, 3).is_ok());
      ASSERT_TRUE(communicator.send(buffer, 1, Dtype::f32, 0, 2).is_ok());
      return;
    }
    ASSERT_TRUE(communicator.recv(buffer, 1, Dtype::f32, 1, 2).is_ok());
    const Status status = communicator.recv(buffer, 8, Dtype::f32, 1, 3);
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(),
                StartsWith("message 2 from rank 1 to rank 0 with tag 3: 9 float is sent, 8 float expected"));
  });
}

TEST_P(Tags, AreToldAtTheDeadline) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    float value = 0;
    Work other = communicator.post_recv(&value, 1, Dtype::f32, 1, 1).value();
    Work work = communicator.post_recv(&value, 1, Dtype::f32, 1, 12).value();
    EXPECT_THAT(work.wait(milliseconds(20)).message(),
                StartsWith("rank 0 gave up: receive of 1 float (4 bytes, tag 12) from rank 1 has no send\n"));
  });
}

TEST(TagsOutOfRange, AreRefused) {
  on_threads(1, [](Communicator& communicator) {
    float value = 0;
    EXPECT_EQ(communicator.send(&value, 1, Dtype::f32, 0, -1).message(),
              "send to rank 0: tag -1 is out of range: 0 to 2147483647");
    EXPECT_EQ(communicator.probe(1).status().message(), "receive from rank 1, which is out of range: 0 to 0");
    EXPECT_EQ(communicator.probe(0, -2).status().message(),
              "receive from rank 0: tag -2 is out of range: 0 to 2147483647");
    EXPECT_TRUE(communicator.barrier().is_ok());
  });
}

TEST(TagsOfBlocks, AreRefusedByName) {
  on_blocks(2, [](Communicator& communicator) {
    float value = 0;
    const Status status = communicator.send(&value, 1, Dtype::f32, 1 - communicator.rank(), 5);
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_THAT(status.message(), HasSubstr("with tag 5: messages of thread blocks have no tags other than 0"));
    EXPECT_EQ(communicator.probe(0).status().code(), Code::unavailable);
    EXPECT_TRUE(communicator.barrier().is_ok());
  });
}

}  // namespace
}  // namespace tutti

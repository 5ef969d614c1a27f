// SPDX-License-Identifier: Apache-2.0
// Two groups in one host process, without processes: the test plays the launcher, and the one rank of each group.
#include "harness/hosts/work.h"

#include <atomic>
#include <csignal>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/process/waits.h"
#include "impl/bootstrap/control.h"
#include "suites/unit/harness/hosts/host_double.h"
#include "suites/unit/harness/process/reader_double.h"

namespace tutti::harness::hosts {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kRank = 1;  ///< of two, the other one is elsewhere

std::string name_of_group() {
  static std::atomic<int> number{0};
  return fmt::format("tutti-work-test-{}-{}", ::getpid(), number.fetch_add(1));
}

struct PlayedGroup {
  explicit PlayedGroup(std::string of_key, std::chrono::nanoseconds timeout = std::chrono::seconds(60))
      : key(std::move(of_key)),
        control(name_of_group()),
        listener(listen_at(control, 4).value()),
        job{.ranks = 2, .host = 1, .first = kRank, .here = 1, .started = 0, .timeout_ns = timeout.count()},
        work(
            {.key = key, .control = control, .control_socket = listener.get()},
            [this](const Frame& frame) { sent.push_back(frame); }, look) {}

  Status start() { return work.start("what " + key + " does", job); }
  [[nodiscard]] std::vector<std::string> texts_of(std::string_view type) const {
    std::vector<std::string> texts;
    for (const Frame& frame : sent) {
      if (frame.type == type) texts.push_back(frame.text);
    }
    return texts;
  }

  std::string key, control;
  Descriptor listener;
  HostJob job;
  std::vector<Frame> sent;
  std::vector<std::string> asked;  ///< payloads whose ranks were looked at
  LookAtRanks look = [this](const std::string& payload, int /*host*/, int /*domain*/) {
    asked.push_back(payload);
    return RanksSeen{.standings = std::vector<RankStanding>(2, {.text = "waits in " + key}),
                     .calls = {{}, {{.number = 17}}}};
  };
  Work work;
};

/// The rank of a group, which has come.
struct PlayedRank {
  Descriptor socket;
  Frame welcome;
  std::vector<Descriptor> given;
  Mapping memory;

  [[nodiscard]] Board board() { return {memory.data(), 2}; }
};

class Works : public testing::Test {
 protected:
  /// Lets both groups go on until it holds.
  template <class Holds>
  bool until(Holds holds) {
    return nap_until(kPlayed, [&] {
      first_.work.step();
      second_.work.step();
      return holds();
    });
  }

  PlayedRank come_to(PlayedGroup& group) {
    PlayedRank rank{.socket = connect_to(std::string_view(group.control), std::chrono::seconds(5)).value()};
    EXPECT_TRUE(send_frame(rank.socket.get(), {"hello", std::to_string(kRank)}).is_ok());
    EXPECT_TRUE(until([&] { return !group.texts_of("up").empty(); }));
    FrameReader reader;
    rank.welcome = receive_frame(rank.socket.get(), reader, rank.given).value();
    rank.memory = Mapping::map(rank.given[1].get(), Board::bytes(2)).value();
    return rank;
  }

  PlayedGroup first_{"aa"}, second_{"bb", std::chrono::milliseconds(200)};
};

TEST_F(Works, HaveAKeyAMemoryAndRanksOfTheirOwn) {
  second_.job.domain_bytes = 4096;
  ASSERT_TRUE(first_.start().is_ok());
  ASSERT_TRUE(second_.start().is_ok());
  PlayedRank in_first = come_to(first_), in_second = come_to(second_);
  EXPECT_THAT(in_first.welcome.text, HasSubstr("\naa\n"));
  EXPECT_THAT(in_second.welcome.text, HasSubstr("\nbb\n"));
  EXPECT_EQ(in_first.given.size(), 2U) << "payload and board";
  EXPECT_EQ(in_second.given.size(), 3U) << "and the domain";
  in_first.board().status(kRank).operation.store(7);
  EXPECT_EQ(in_second.board().status(kRank).operation.load(), 0U);
  ASSERT_TRUE(send_frame(in_second.socket.get(), {"row", "of the second"}).is_ok());
  ASSERT_TRUE(until([&] { return !second_.texts_of("from").empty(); }));
  EXPECT_EQ(second_.texts_of("from"), std::vector<std::string>{"1 row\nof the second"});
  EXPECT_THAT(first_.texts_of("from"), IsEmpty());
}

TEST_F(Works, EachEndsAlone) {
  ASSERT_TRUE(first_.start().is_ok());
  ASSERT_TRUE(second_.start().is_ok());
  PlayedRank in_first = come_to(first_), in_second = come_to(second_);
  first_.work.end("");
  EXPECT_EQ(in_first.board().abort_flag().load(), 1U);
  EXPECT_EQ(in_second.board().abort_flag().load(), 0U);
  FrameReader reader;
  std::vector<Descriptor> none;
  EXPECT_EQ(receive_frame(in_first.socket.get(), reader, none).value().type, kEnd);
  EXPECT_FALSE(first_.work.is_done()) << "its rank has not said bye";

  ASSERT_TRUE(send_frame(in_second.socket.get(), {"bye", ""}).is_ok());
  in_second.socket.close();
  ASSERT_TRUE(until([&] { return !second_.texts_of("exit").empty(); }));
  EXPECT_TRUE(second_.work.is_done());
  EXPECT_EQ(second_.texts_of("exit"), std::vector{fmt::format("1 {} 0", ::getpid())});
}

TEST_F(Works, EachHasADeadlineOfItsOwn) {
  ASSERT_TRUE(first_.start().is_ok());
  ASSERT_TRUE(second_.start().is_ok());
  PlayedRank in_first = come_to(first_), in_second = come_to(second_);
  for (PlayedRank* rank : {&in_first, &in_second}) {
    announce(rank->board().status(kRank), Activity::operation, 0);
  }
  ASSERT_TRUE(until([&] { return !second_.texts_of("standing").empty(); }));
  EXPECT_THAT(second_.texts_of("standing").front(), HasSubstr("waits in bb"));
  EXPECT_EQ(second_.asked.front(), "what bb does");
  EXPECT_THAT(first_.asked, IsEmpty()) << "60 s have not passed";
}

class RecalledWorks : public Works {
 protected:
  /// What the first group sends of its rank, to the end.
  std::vector<std::string> recalled() {
    first_.work.recall();
    first_.work.recall();  // the second is ignored
    EXPECT_TRUE(until([&] { return !first_.texts_of("recalled").empty(); }));
    EXPECT_FALSE(first_.work.reads_stacks());
    EXPECT_EQ(first_.asked, std::vector<std::string>{"what aa does"});
    EXPECT_EQ(first_.texts_of("calls"), std::vector<std::string>{"1 17 started barrier 0 float\n"});
    return first_.texts_of("stack");
  }
};

TEST_F(RecalledWorks, TellWhatTheirOwnRanksCalledLastAndWhereTheseAre) {
  const ReaderDouble reader(kPrintsAStack);
  ASSERT_TRUE(first_.start().is_ok());
  const PlayedRank in_first = come_to(first_);
  EXPECT_EQ(recalled(), std::vector<std::string>{"1 thread 1\n  #0 poll\n"});
}

TEST_F(RecalledWorks, DoNotLookAtAProcessThatMayBeAnothers) {
  const ReaderDouble reader(kPrintsAStack);
  ASSERT_TRUE(first_.start().is_ok());
  come_to(first_).socket.close();
  ASSERT_TRUE(until([&] { return !first_.texts_of("closed").empty(); }));
  EXPECT_EQ(recalled(), std::vector<std::string>{"1 not read: its process has ended\n"});
  EXPECT_EQ(reader.pid(), 0);
}

TEST_F(RecalledWorks, GoOnAndEndWhileAStackIsRead) {
  const ReaderDouble reader(kNeverEnds);
  ASSERT_TRUE(first_.start().is_ok());
  const PlayedRank in_first = come_to(first_);
  first_.work.recall();
  ASSERT_TRUE(until([&] { return reader.pid() > 0; }));
  ASSERT_TRUE(send_frame(in_first.socket.get(), {"row", "meanwhile"}).is_ok());
  ASSERT_TRUE(until([&] { return !first_.texts_of("from").empty(); }));
  EXPECT_TRUE(first_.work.reads_stacks());
  first_.work.end("");
  EXPECT_EQ(::kill(reader.pid(), 0), -1) << "it has been killed and waited for";
  EXPECT_THAT(first_.texts_of("recalled"), IsEmpty());
}

TEST_F(RecalledWorks, HaveNothingToTellThatDidNotStart) {
  first_.work.recall();
  EXPECT_EQ(first_.texts_of("recalled").size(), 1U);
  EXPECT_EQ(first_.sent.size(), 1U);
}

TEST_F(Works, OneThatCannotStartLeavesTheOtherAlone) {
  first_.job.domain_bytes = std::size_t{1} << 60;
  const Status status = first_.start();
  EXPECT_FALSE(status.is_ok());
  ASSERT_TRUE(second_.start().is_ok());
  first_.work.fail(status);
  EXPECT_EQ(first_.texts_of("unable").size(), 1U);
  come_to(second_);
  first_.work.end("");
  EXPECT_THAT(second_.texts_of("unable"), IsEmpty());
}

}  // namespace
}  // namespace tutti::harness::hosts

// SPDX-License-Identifier: Apache-2.0
// What the launcher makes of the messages of its hosts. The agent notes the invitation, and the test plays the host.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/board/segment.h"
#include "harness/hosts/hosts_starter.h"
#include "harness/process/interrupts.h"
#include "harness/process/stacks.h"
#include "suites/unit/harness/hosts/host_double.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

struct Heard : Connections::Events {
  void on_hello(int rank, pid_t pid) override { said += fmt::format("hello {} {}; ", rank, pid); }
  void on_frame(int rank, const Frame& frame) override {
    said += fmt::format("{} {} {}; ", rank, frame.type, frame.text);
  }
  void on_closed(int rank) override { said += fmt::format("closed {}; ", rank); }
  void on_garbage(int rank, pid_t pid, const std::string& what) override {
    said += fmt::format("garbage {} {} {}; ", rank, pid, what);
  }
  void on_unfit(const Status& why) override { said += fmt::format("unfit {}; ", why.message()); }
  void on_lost_host(int first_rank, const Status& why) override { lost[first_rank] = why.message(); }
  void on_hosts(const std::vector<HostInfo>& all) override { said += fmt::format("{} hosts; ", all.size()); }

  std::string said;
  std::map<int, std::string> lost;  ///< by first rank
};

/// [rank]
std::vector<std::string> texts_of(const Recall& told) {
  std::vector<std::string> texts;
  for (const RankStack& one : told.stacks) texts.push_back(one.text);
  return texts;
}

class HostPlayed : public testing::Test {
 protected:
  HostPlayed() {
    std::string name = testing::TempDir() + "tutti-played-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream(folder_ / "agent") << "#!/bin/sh\nexec cat > " << (folder_ / "invitation").string() << "\n";
    std::filesystem::permissions(folder_ / "agent", std::filesystem::perms::owner_all);
    across_ = {.hosts = {{.name = "away", .ranks = 2, .domain_bytes = 0}},
               .agent = (folder_ / "agent").string(),
               .interface = "127.0.0.1",
               .build = "a build"};
    job_.ranks = 2;
    job_.payload = "what to do";
    job_.program = "/no/program";
  }
  ~HostPlayed() override {
    stream_.close();
    starter_.end();
    std::filesystem::remove_all(folder_);
  }
  HostPlayed(const HostPlayed&) = delete;
  HostPlayed& operator=(const HostPlayed&) = delete;

  /// What its agent is told on stdin.
  Invitation start() {
    const Status started = starter_.start(job_, "a control name", "", STDERR_FILENO);
    EXPECT_TRUE(started.is_ok()) << started.message();
    std::string line;
    const auto is_there = [&] {
      std::ifstream file(folder_ / "invitation");
      return std::getline(file, line) && !file.eof();
    };
    EXPECT_TRUE(nap_until(kPlayed, is_there));
    const auto invitation = invitation_from(line);
    EXPECT_TRUE(invitation.is_ok()) << invitation.status().message();
    return invitation.is_ok() ? invitation.value() : Invitation();
  }
  void come(const Invitation& invitation) {
    stream_ = come_as_host(invitation.address, invitation.key, 0, [this] { step(); });
    EXPECT_TRUE(stream_.is_open());
  }
  /// It has come, and has its job.
  void take_job() {
    come(start());
    stream_.send({"hello", hello("a build")});
    const auto go_on = [this] { step(); };
    ASSERT_TRUE(next_of(stream_, "meet", go_on).has_value());
    stream_.send({"meets", "0 " + to_json(MeetingPlace{.exchange_address = "here", .domain_address = "there"})});
    ASSERT_TRUE(next_of(stream_, "job", go_on).has_value());
  }
  /// What comes of it if the host sends this, so long after it was asked.
  Recall recall(const std::vector<Frame>& answers, std::chrono::milliseconds after = 0ms) {
    std::thread host([&] {
      EXPECT_EQ(next_of(stream_, "recall"), "0 ");
      std::this_thread::sleep_for(after);
      for (const Frame& frame : answers) stream_.send(frame);
      const auto has_sent_all = [this] {
        stream_.go_on();
        return stream_.has_sent_all() || !stream_.is_open();
      };
      EXPECT_TRUE(nap_until(kPlayed, has_sent_all));
      if (answers.empty()) stream_.close();
    });
    Recall told = starter_.recall({}, heard_, board_, Interrupts());
    host.join();
    return told;
  }
  void step() {
    starter_.reap();
    starter_.service(heard_, board_);
  }
  bool step_until(const std::function<bool()>& is_over) {
    const auto look = [&] {
      step();
      stream_.go_on();
      return is_over();
    };
    return nap_until(kPlayed, look);
  }
  static std::string hello(const std::string& build) {
    return to_json(HostHello{.build = build, .name = "its name", .kernel = "k", .description = "{}"});
  }

  std::filesystem::path folder_;
  JobAcross across_;
  Job job_;
  Descriptor segment_ = make_segment("tutti-board", Board::bytes(2)).value();
  Mapping memory_ = Mapping::map(segment_.get(), Board::bytes(2)).value();
  Board board_{memory_.data(), 2};
  Heard heard_;
  HostsStarter starter_{across_};
  FrameStream stream_;
  const Frame no_calls_{"calls", "0 1 "}, that_was_all_{"recalled", "0 "};  ///< answers
};

TEST_F(HostPlayed, GetsTheJobAndReportsItsRanks) {
  come(start());
  stream_.send({"hello", hello("a build")});
  const auto go_on = [this] { step(); };
  EXPECT_EQ(next_of(stream_, "meet", go_on), "0 ");
  stream_.send({"meets", "0 " + to_json(MeetingPlace{.exchange_address = "here", .domain_address = "there"})});
  EXPECT_EQ(next_of(stream_, "payload", go_on), "0 what to do");
  const auto job = job_from_json(next_of(stream_, "job", go_on).value_or("0 ").substr(2));
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job.value().here, 2);
  EXPECT_EQ(job.value().started, 2);
  EXPECT_EQ(job.value().control, "a control name");
  EXPECT_EQ(job.value().place.exchange_address, "here");
  stream_.send({"awaits", "0 "});
  stream_.send({"up", "0 1 17"});
  stream_.send({"from", "0 1 row\n1 2\n3"});
  stream_.send(
      {"status", "0 " + to_lines(std::vector<RankReport>{{}, {.waited_ns = 5, .operation = 9, .state = 'T'}})});
  stream_.send({"garbage", "0 0 16 no message"});
  stream_.send({"standing", "0 1 " + to_json(RankStanding{.text = "it waits"})});
  stream_.send({"closed", "0 1"});
  stream_.send({"exit", "0 0 16 0"});
  EXPECT_FALSE(starter_.have_all_exited());
  ASSERT_TRUE(step_until([&] { return starter_.all()[0].wait_status.has_value(); }));
  EXPECT_EQ(heard_.said, "1 hosts; hello 1 17; 1 row 1 2\n3; garbage 0 16 no message; closed 1; ");
  EXPECT_EQ(starter_.state_of(0), 'X');
  EXPECT_EQ(starter_.state_of(1), 'T');
  EXPECT_EQ(board_.status(1).operation.load(), 9U);
  ASSERT_EQ(starter_.standings().size(), 2U);
  EXPECT_EQ(starter_.standings()[1].text, "it waits");
  stream_.send({"exit", "0 1 17 256"});
  EXPECT_TRUE(step_until([&] { return starter_.have_all_exited(); }));
  EXPECT_EQ(starter_.all()[1].wait_status, 256);
  EXPECT_TRUE(heard_.lost.empty());
}

/// A message that ends the job, and what the error says behind the host's name.
struct BadMessage {
  const char* type;
  const char* text;
  const char* error;
};

class BadMessages : public HostPlayed, public testing::WithParamInterface<BadMessage> {};

TEST_P(BadMessages, AreErrorsThatNameTheHost) {
  come(start());
  stream_.send({GetParam().type, GetParam().text});
  ASSERT_TRUE(step_until([&] { return !heard_.lost.empty(); }));
  EXPECT_EQ(heard_.lost.begin()->first, 0);
  EXPECT_THAT(heard_.lost.begin()->second,
              testing::StartsWith(fmt::format("host away (ranks 0 to 1) is lost: {}", GetParam().error)));
  EXPECT_EQ(heard_.said, "");
}

INSTANTIATE_TEST_SUITE_P(
    Of, BadMessages,
    testing::Values(BadMessage{"dance", "", "it sends 'dance', which is no message of a host"},
                    BadMessage{"hello", "{}", "what a host says of itself cannot be read"},
                    BadMessage{"up", "0 2 17", "it speaks of rank 2, which it has not"},
                    BadMessage{"up", "0 1", "'up' of a rank cannot be read: '1'"},
                    BadMessage{"exit", "0 1 17 x", "'exit' of a rank cannot be read: '1 17 x'"},
                    BadMessage{"from", "0 1 row", "what rank 1 says has no type: 'row'"},
                    BadMessage{"standing", "0 1 []", "where a rank stands"},
                    BadMessage{"status", "0 0 0 0 0 0 S\n", "1 lines of ranks, and it has 2 ranks"},
                    BadMessage{"meets", "0 {}", "where a group meets cannot be read"},
                    BadMessage{"awaits", "no number", "'awaits' names no group: 'no number'"},
                    BadMessage{"calls", "0 1 ", "it sends 'calls', which this launcher has not asked"},
                    BadMessage{"stack", "0 1 ", "it sends 'stack', which this launcher has not asked"},
                    BadMessage{"recalled", "0 ", "it sends 'recalled', which this launcher has not asked"},
                    BadMessage{"unable", "0 no room", "no room"}, BadMessage{"failed", "no room", "no room"}));

constexpr const char* kTwoCalls = "7 completed all_reduce 8 float\n8 started barrier 0 float\n";

TEST_F(HostPlayed, IsAskedWhatItsRanksCalledLast) {
  take_job();
  stream_.send({"from", "0 0 row\n1 2"});
  const Recall told = recall({{"calls", std::string("0 0 ") + kTwoCalls},
                              no_calls_,
                              {"stack", "0 1 thread \x1b[1m1\n  #0 poll"},
                              that_was_all_});
  EXPECT_THAT(told.silent, IsEmpty());
  ASSERT_EQ(told.calls.size(), 2U);
  EXPECT_EQ(call_lines(told.calls.at(0)), kTwoCalls);
  EXPECT_THAT(told.calls.at(1), IsEmpty());
  EXPECT_EQ(texts_of(told),
            (std::vector<std::string>{"not read: its host has not told it\n", "thread \\x1b[1m1\n  #0 poll\n"}));
  EXPECT_EQ(heard_.said, "1 hosts; 0 row 1 2; ");
  EXPECT_TRUE(heard_.lost.empty());
}

TEST_F(HostPlayed, IsWaitedForUntilItAnswers) {
  take_job();
  const Recall told = recall({{"calls", std::string("0 0 ") + kTwoCalls}, no_calls_, that_was_all_}, 300ms);
  EXPECT_THAT(told.silent, IsEmpty());
  EXPECT_EQ(told.calls.size(), 2U);
}

TEST_F(HostPlayed, TellsTheFirstOfTwoAndNothingOnceThatWasAll) {
  take_job();
  const Recall told = recall({{"calls", std::string("0 0 ") + kTwoCalls},
                              {"calls", "0 0 "},
                              {"stack", "0 0 thread 1\n\nrank 1\nthread 1"},
                              {"stack", "0 0 thread 2"},
                              that_was_all_,
                              no_calls_});
  EXPECT_EQ(told.silent, std::vector<std::string>{"host away (rank 1): it cannot read their memory"});
  EXPECT_EQ(call_lines(told.calls.at(0)), kTwoCalls);
  EXPECT_EQ(texts_of(told), (std::vector<std::string>{"thread 1\nthread 1\n", "not read: its host has not told it\n"}));
  stream_.send(no_calls_);
  stream_.send({"from", "0 0 row\nlate"});
  EXPECT_TRUE(step_until([&] { return heard_.said.ends_with("0 row late; "); }));
  EXPECT_TRUE(heard_.lost.empty());
}

TEST_F(HostPlayed, ThatHasNoJobIsNotAsked) {
  come(start());
  const Recall told = starter_.recall({}, heard_, board_, Interrupts());
  EXPECT_THAT(told.silent, IsEmpty());
  EXPECT_TRUE(told.calls.empty());
}

TEST_F(HostPlayed, ThatHasLeftIsNotAsked) {
  take_job();
  stream_.send({"left", ""});
  stream_.send({"closed", "0 1"});
  ASSERT_TRUE(step_until([&] { return heard_.said.ends_with("closed 1; "); }));
  EXPECT_EQ(starter_.recall({}, heard_, board_, Interrupts()).silent,
            std::vector<std::string>{"host away (ranks 0 and 1): it has left"});
}

TEST_F(HostPlayed, WhoseConnectionEndsBeforeItHasToldAllIsNamed) {
  take_job();
  EXPECT_EQ(recall({}).silent, std::vector<std::string>{"host away (ranks 0 and 1): its connection has ended"});
}

TEST_F(HostPlayed, ThatDoesNotAnswerIsNamedAndNotWaitedForAfterAnInterrupt) {
  take_job();
  const Interrupts interrupts;
  ASSERT_EQ(::raise(SIGTERM), 0);
  const Recall told = starter_.recall({}, heard_, board_, interrupts);
  ASSERT_EQ(told.silent.size(), 1U);
  EXPECT_THAT(told.silent[0], testing::StartsWith("host away (ranks 0 and 1): it has not answered within 0."));
}

/// An answer that cannot be read, and what is said of its rank.
class BadAnswers : public HostPlayed, public testing::WithParamInterface<BadMessage> {};

TEST_P(BadAnswers, LeaveOutTheirRankAlone) {
  take_job();
  const Recall told =
      recall({{GetParam().type, GetParam().text}, {"calls", std::string("0 0 ") + kTwoCalls}, that_was_all_});
  ASSERT_EQ(told.silent.size(), 1U);
  EXPECT_THAT(told.silent[0], testing::StartsWith(fmt::format("host away (rank 1): {}", GetParam().error)));
  EXPECT_EQ(told.calls.size(), 1U);
  EXPECT_TRUE(heard_.lost.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Of, BadAnswers,
    testing::Values(BadMessage{"calls", "0 1 7 begun barrier 0 float\n", "call 1: 'begun' is not a call's state"},
                    BadMessage{"calls", "0 1 7 started barrier -1 float\n", "call 1: '-1' is not a call's count"},
                    BadMessage{"stack", "0 1 rank 0\n", "it cannot read their memory"}));

/// An answer after which nothing of its host is believed.
class WorseAnswers : public HostPlayed, public testing::WithParamInterface<BadMessage> {};

TEST_P(WorseAnswers, LoseTheirHost) {
  take_job();
  const Recall told = recall({{GetParam().type, GetParam().text}, no_calls_, that_was_all_});
  EXPECT_EQ(told.silent, std::vector{fmt::format("host away (ranks 0 and 1): {}", GetParam().error)});
  EXPECT_TRUE(told.calls.empty());
}

INSTANTIATE_TEST_SUITE_P(Of, WorseAnswers,
                         testing::Values(BadMessage{"calls", "0 2 ", "it speaks of rank 2, which it has not"},
                                         BadMessage{"calls", "0 1", "'calls' of a rank cannot be read: '1'"},
                                         BadMessage{"stack", "0 2 ", "it speaks of rank 2, which it has not"}));

TEST_F(HostPlayed, StacksThatAreTooLongAreNotTaken) {
  take_job();
  const Recall told = recall({{"stack", "0 1 " + std::string(kMostStackBytes + 1, 'x')}, that_was_all_});
  EXPECT_EQ(texts_of(told), (std::vector<std::string>{"not read: its host has not told it\n",
                                                      "not read: it has 65537 bytes, and at most 65536 are taken\n"}));
}

TEST_F(HostPlayed, OfAnotherBuildIsRefused) {
  come(start());
  stream_.send({"hello", hello("another")});
  ASSERT_TRUE(step_until([&] { return !heard_.lost.empty(); }));
  EXPECT_THAT(heard_.lost[0], HasSubstr("its build is 'another', and this one is 'a build'"));
}

TEST_F(HostPlayed, WithAnotherKeyIsNotLetIn) {
  const Invitation invitation = start();
  EXPECT_FALSE(
      come_as_host(invitation.address, tcp::to_text(tcp::draw_secret().value()), 0, [this] { step(); }).is_open());
  come(invitation);
  EXPECT_TRUE(heard_.lost.empty());
}

TEST_F(HostPlayed, ThatSaysNothingHasNotCome) {
  job_.connect_timeout = 600ms;
  const Invitation invitation = start();
  const auto silent = tcp::connect_to(invitation.address);
  ASSERT_TRUE(step_until([&] { return !heard_.lost.empty(); }));
  EXPECT_THAT(heard_.lost[0], HasSubstr("host away (ranks 0 to 1) has not come to " + invitation.address));
}

TEST_F(HostPlayed, WhoseConnectionEndsIsLost) {
  come(start());
  stream_.close();
  ASSERT_TRUE(step_until([&] { return !heard_.lost.empty(); }));
  EXPECT_THAT(heard_.lost[0], HasSubstr("its connection has ended"));
}

}  // namespace
}  // namespace tutti::harness::hosts

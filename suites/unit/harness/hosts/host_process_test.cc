// SPDX-License-Identifier: Apache-2.0
// A host process in a thread; the test plays its launcher, and the one rank that comes to it.
#include "harness/hosts/host_process.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/bootstrap/control.h"
#include "impl/bootstrap/meeting.h"
#include "suites/unit/harness/hosts/host_double.h"
#include "suites/unit/harness/process/reader_double.h"

namespace tutti::harness::hosts {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

RanksSeen see_nothing(const std::string& /*payload*/, int /*host*/, int /*domain_fd*/) { return {}; }

class HostProcessPlayed : public testing::Test {
 protected:
  HostProcessPlayed() : control_(tcp_name()), ranks_(listen_at(control_, 4).value()) {}
  ~HostProcessPlayed() override { join(); }
  HostProcessPlayed(const HostProcessPlayed&) = delete;
  HostProcessPlayed& operator=(const HostProcessPlayed&) = delete;

  static std::string tcp_name() {
    static std::atomic<int> number{0};
    return fmt::format("tutti-host-process-test-{}-{}", ::getpid(), number.fetch_add(1));
  }

  /// Not open if it does not come.
  FrameStream start(const std::string& key_of_launcher) {
    const Invitation invitation{.key = key_,
                                .address = listener_.address,
                                .host = 1,
                                .interface = "127.0.0.1",
                                .control = control_,
                                .control_socket = ranks_.get(),
                                .rails = {"lo", "no-such0", "127.0.0.0/8"}};
    thread_ = std::thread([this, invitation] {
      result_ = serve_as_host_process(invitation, {.build = "a build", .look = see_nothing, .examiner = examiner_},
                                      [this](std::string_view what) { lost_ = std::string(what); });
    });
    return let_host_in(listener_.socket.get(), key_of_launcher);
  }

  /// Gives it a job of one rank, which then comes.
  Descriptor give_job(FrameStream& launcher, int group) const {
    launcher.send({"payload", fmt::format("{} what to do", group)});
    const HostJob job{.ranks = 2,
                      .host = 1,
                      .first = 1,
                      .here = 1,
                      .started = 0,
                      .arguments = "",
                      .timeout_ns = 60'000'000'000,
                      .place = {.interface = "127.0.0.1"}};
    launcher.send({"job", fmt::format("{} {}", group, to_json(job))});
    EXPECT_TRUE(next_of(launcher, "awaits").has_value());
    auto rank = connect_to(std::string_view(control_), std::chrono::seconds(5));
    EXPECT_TRUE(rank.is_ok()) << rank.status().message();
    EXPECT_TRUE(send_frame(rank.value().get(), {"hello", "1"}).is_ok());
    EXPECT_EQ(next_of(launcher, "up"), fmt::format("{} 1 {}", group, ::getpid()));
    return std::move(rank).value();
  }

  static std::string pid_file() { return testing::TempDir() + fmt::format("tutti-examiner-{}", ::getpid()); }
  /// Once it has written its pid; 0: it has not.
  static pid_t pid_of_examiner() {
    pid_t pid = 0;
    nap_until(kPlayed, [&] { return static_cast<bool>(std::ifstream(pid_file()) >> pid); });
    std::filesystem::remove(pid_file());
    return pid;
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

  const std::string key_ = tcp::to_text(tcp::draw_secret().value());
  const tcp::Listener listener_ = tcp::listen_on("127.0.0.1").value();
  const std::string control_;
  const Descriptor ranks_;
  std::vector<std::string> examiner_;
  std::thread thread_;
  Status result_;
  std::string lost_;
};

TEST_F(HostProcessPlayed, HandsOnWhatItsRankSaysAndEnds) {
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  const auto hello = hello_from_json(next_of(launcher, "hello").value_or(""));
  ASSERT_TRUE(hello.is_ok()) << hello.status().message();
  EXPECT_EQ(hello.value().build, "a build");
  EXPECT_EQ(hello.value().interface, "127.0.0.1");
  ASSERT_EQ(hello.value().rails.size(), 3U);
  EXPECT_EQ(hello.value().rails[0].address, "127.0.0.1");
  EXPECT_EQ(hello.value().rails[0].problem, "");
  EXPECT_THAT(hello.value().rails[1].problem, StartsWith("'no-such0' is neither an interface of this machine"));
  EXPECT_EQ(hello.value().rails[2].problem,
            "rails 'lo' and '127.0.0.0/8' are both in the network 127.0.0.0/8: the kernel sends over one of them");
  launcher.send({"meet", "6 127.0.0.3"});
  const auto elsewhere = meeting_place_from_json(next_of(launcher, "meets").value_or("6 ").substr(2));
  ASSERT_TRUE(elsewhere.is_ok()) << elsewhere.status().message();
  EXPECT_THAT(elsewhere.value().domain_address, StartsWith("127.0.0.3:"));
  launcher.send({"meet", "7 "});
  const auto place = meeting_place_from_json(next_of(launcher, "meets").value_or("7 ").substr(2));
  ASSERT_TRUE(place.is_ok()) << place.status().message();
  EXPECT_THAT(place.value().exchange_address, StartsWith("127.0.0.1:"));
  Descriptor rank = give_job(launcher, 7);
  FrameReader reader;
  std::vector<Descriptor> given;
  const auto welcome = receive_frame(rank.get(), reader, given);
  ASSERT_TRUE(welcome.is_ok()) << welcome.status().message();
  EXPECT_EQ(welcome.value().type, "welcome");
  EXPECT_EQ(given.size(), 2U) << "payload and board";
  ASSERT_TRUE(send_frame(rank.get(), {"row", "1 2\n3"}).is_ok());
  EXPECT_EQ(next_of(launcher, "from"), "7 1 row\n1 2\n3");
  EXPECT_THAT(next_of(launcher, "status").value_or(""), StartsWith("7 0 0 0 0 0 "));
  ASSERT_TRUE(send_frame(rank.get(), {"bye", ""}).is_ok());
  EXPECT_EQ(next_of(launcher, "from"), "7 1 bye\n");
  rank.close();
  EXPECT_EQ(next_of(launcher, "closed"), "7 1");
  EXPECT_EQ(next_of(launcher, "exit"), fmt::format("7 1 {} 0", ::getpid()));
  launcher.send({"end", "7 "});
  EXPECT_EQ(next_of(launcher, "ended"), "7 ");
  launcher.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher, "left").has_value());
  join();
  EXPECT_TRUE(result_.is_ok()) << result_.message();
  EXPECT_EQ(lost_, "");
}

TEST_F(HostProcessPlayed, RefusesALauncherWithAnotherKey) {
  EXPECT_FALSE(start(tcp::to_text(tcp::draw_secret().value())).is_open());
  join();
  EXPECT_THAT(result_.message(), HasSubstr("did not prove that it is of this job"));
}

TEST_F(HostProcessPlayed, SaysWhyItEndsIfItCannotReadItsLauncher) {
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.send({"dance", ""});
  const Status said = error_from(next_of(launcher, "failed").value_or(""));
  EXPECT_EQ(said.code(), Code::io);
  EXPECT_EQ(said.message(), "the launcher sends 'dance', which is no message of a launcher");
  join();
  EXPECT_EQ(result_.message(), said.message());
}

TEST_F(HostProcessPlayed, SaysWhatOfItsJobCannotBeRead) {
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.send({"job", "3 {}"});
  EXPECT_THAT(next_of(launcher, "unable").value_or(""), HasSubstr("the job that the launcher gives cannot be read"));
  launcher.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher, "left").has_value());
}

TEST_F(HostProcessPlayed, HasNothingToTellOfAGroupThatIsNotHere) {
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.send({"recall", "3 "});
  EXPECT_EQ(next_of(launcher, "recalled"), "3 ");
  launcher.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher, "left").has_value());
}

/// A stack is read for ever, and the launcher has something to say.
class HostProcessRecalled : public HostProcessPlayed {
 protected:
  HostProcessRecalled() {
    launcher_ = start(key_);
    rank_ = give_job(launcher_, 7);
    for (int i = 0; i < 2; ++i) launcher_.send({"recall", "7 "});
    const auto has_begun = [&] {
      launcher_.go_on();
      return reader_.pid() > 0;
    };
    EXPECT_TRUE(nap_until(kPlayed, has_begun));
  }
  ~HostProcessRecalled() override {
    launcher_.close();
    join();
  }
  HostProcessRecalled(const HostProcessRecalled&) = delete;
  HostProcessRecalled& operator=(const HostProcessRecalled&) = delete;

  const ReaderDouble reader_{kNeverEnds};
  FrameStream launcher_;
  Descriptor rank_;
};

TEST_F(HostProcessRecalled, HandsOnWhatItsRankSays) {
  ASSERT_TRUE(send_frame(rank_.get(), {"row", "meanwhile"}).is_ok());
  EXPECT_EQ(next_of(launcher_, "from"), "7 1 row\nmeanwhile");
  launcher_.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher_, "left").has_value());
  join();
  EXPECT_EQ(::kill(reader_.pid(), 0), -1) << "it has been killed and waited for";
}

TEST_F(HostProcessRecalled, EndsItsGroup) {
  launcher_.send({"end", "7 "});
  EXPECT_EQ(next_of(launcher_, "ended"), "7 ");
  EXPECT_EQ(::kill(reader_.pid(), 0), -1) << "it has been killed and waited for";
  launcher_.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher_, "left").has_value());
}

TEST_F(HostProcessRecalled, EndsWithItsLauncher) {
  launcher_.close();
  join();
  EXPECT_EQ(lost_, "is gone");
  EXPECT_EQ(::kill(reader_.pid(), 0), -1) << "it has been killed and waited for";
}

TEST_F(HostProcessPlayed, HandsOnWhatItsExaminerPrints) {
  examiner_ = {"cat"};
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.send({"examine", "how are you?"});
  EXPECT_EQ(next_of(launcher, "examined"), "how are you?\n");
  launcher.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher, "left").has_value());
  join();
  EXPECT_TRUE(result_.is_ok()) << result_.message();
}

TEST_F(HostProcessPlayed, SaysWhyItsExaminerHasNoAnswer) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kinds{
      {{}, "it has no examiner"},
      {{"/no/examiner"}, "cannot execute '/no/examiner': No such file or directory"},
      {{"sh", "-c", "echo first; echo last >&2; exit 3"}, "its examiner exited with code 3: last"},
      {{"sh", "-c", "kill -9 $$"}, "its examiner was killed by signal 9"},
      {{"yes"}, "its examiner has printed more than 1024 KiB"}};
  for (const auto& [command, why] : kinds) {
    examiner_ = command;
    FrameStream launcher = start(key_);
    ASSERT_TRUE(launcher.is_open());
    launcher.send({"examine", ""});
    EXPECT_THAT(error_from(next_of(launcher, "unexamined").value_or("")).message(), StartsWith(why));
    launcher.send({"leave", ""});
    EXPECT_TRUE(next_of(launcher, "left").has_value());
    join();
  }
}

TEST_F(HostProcessPlayed, PlaysWhileItsExaminerRunsAndEndsIt) {
  examiner_ = {"sh", "-c", "read pid < /proc/self/stat; echo ${pid%% *} > $0; exec sleep 60", pid_file()};
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.send({"examine", ""});
  const pid_t examiner = pid_of_examiner();
  ASSERT_GT(examiner, 0);
  launcher.send({"recall", "3 "});
  EXPECT_EQ(next_of(launcher, "recalled"), "3 ");
  EXPECT_TRUE(next_of(launcher, "alive").has_value());
  launcher.send({"leave", ""});
  EXPECT_TRUE(next_of(launcher, "left").has_value());
  join();
  EXPECT_EQ(::kill(examiner, 0), -1) << "it has been killed and waited for";
}

TEST_F(HostProcessPlayed, TakesOneQuestion) {
  examiner_ = {"cat"};
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  for (int i = 0; i < 2; ++i) launcher.send({"examine", ""});
  EXPECT_EQ(error_from(next_of(launcher, "failed").value_or("")).message(),
            "the launcher sends a second question for the examiner");
}

TEST_F(HostProcessPlayed, EndsWithItsLauncher) {
  FrameStream launcher = start(key_);
  ASSERT_TRUE(launcher.is_open());
  launcher.close();
  join();
  EXPECT_EQ(result_.message(), "the launcher is gone");
  EXPECT_EQ(lost_, "is gone");
}

}  // namespace
}  // namespace tutti::harness::hosts

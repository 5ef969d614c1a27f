// SPDX-License-Identifier: Apache-2.0
// Each way in which a job can end, with the ranks as own processes and under mpirun, and what must not be left
// afterwards.
#include "harness/launch/launch.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/process/processes.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// Marks all processes of this test program in their environment.
const char* const kTag = "TUTTI_TEST_TAG";

std::string own_tag() {
  static const std::string tag = std::to_string(::getpid());
  ::setenv(kTag, tag.c_str(), 1);
  return tag;
}

class Recorder : public Listener {
 public:
  void on_message(int rank, std::string_view type, std::string_view text) override {
    if (type == "row") rows[rank].emplace_back(text);
    if (type == "long") long_bytes += text.size();
    if (type == "ready") ++ready;
    if (type == "file" || type == "directory") paths.emplace(text);
    if (type == "ready" && on_ready) on_ready(*this, rank, static_cast<pid_t>(std::atoi(std::string(text).c_str())));
  }
  [[nodiscard]] std::string case_name(std::uint32_t index) const override {
    return "the case " + std::to_string(index);
  }
  [[nodiscard]] std::vector<RankStanding> standings(int domain_fd) const override {
    struct stat memory {};
    if (domain_fd < 0 || ::fstat(domain_fd, &memory) != 0) return {};
    return {{.text = fmt::format("it shares {} bytes", memory.st_size)}};
  }

  std::map<int, std::vector<std::string>> rows;
  std::size_t long_bytes = 0;
  int ready = 0;
  std::set<std::string> paths;
  std::function<void(Recorder&, int, pid_t)> on_ready;
};

/// Processes of this test program that run the rank program, with their ranks.
std::map<pid_t, int> rank_processes() {
  std::map<pid_t, int> found;
  for (const ProcessInfo& process : all_processes()) {
    std::error_code failure;
    const auto program = std::filesystem::read_symlink("/proc/" + std::to_string(process.pid) + "/exe", failure);
    if (failure || program != TUTTI_TEST_RANK || environment_of(process.pid, kTag) != own_tag()) continue;
    const auto own = environment_of(process.pid, "TUTTI_RANK");
    const auto rank = own ? own : environment_of(process.pid, "OMPI_COMM_WORLD_RANK");
    if (rank) found[process.pid] = std::atoi(rank->c_str());
  }
  return found;
}

/// The start command of Open MPI, as a child of tutti says; empty where there is none.
const std::optional<StartCommand>& start_command() {
  static const std::optional<StartCommand> command = []() -> std::optional<StartCommand> {
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(TUTTI_PROGRAM " probe openmpi 2>/dev/null", "r"), ::pclose);
    std::string said;
    for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) said += static_cast<char>(c);
    const auto all = nlohmann::json::parse(said, nullptr, false);
    if (!all.is_object()) return std::nullopt;
    const auto parsed = parse_start_command(all.at("start").dump());
    return parsed.is_ok() ? std::optional(parsed.value()) : std::nullopt;
  }();
  return command;
}

class Launching : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    own_tag();
    if (GetParam() && !start_command()) GTEST_SKIP() << "no reference is started by an mpirun here";
  }

  Job job(int ranks, std::vector<std::string> arguments) const {
    Job made;
    made.ranks = ranks;
    if (GetParam()) made.start = start_command();
    made.program = TUTTI_TEST_RANK;
    made.arguments = std::move(arguments);
    made.timeout = 30s;
    return made;
  }

  Outcome run(const Job& todo) {
    Result<Outcome> result = launch_job(todo, recorder_);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    expect_nothing_left();
    return result.is_ok() ? result.value() : Outcome();
  }

  void expect_nothing_left() const {
    for (const ProcessInfo& process : all_processes()) {
      EXPECT_NE(process.parent, ::getpid()) << "process " << process.pid << " in state " << process.state;
      if (process.pid == ::getpid()) continue;
      EXPECT_NE(environment_of(process.pid, kTag), own_tag()) << "process " << process.pid;
    }
    for (const std::string& path : recorder_.paths) {
      EXPECT_FALSE(path != "/tmp" && std::filesystem::exists(path)) << path;
    }
  }

  Recorder recorder_;
};

INSTANTIATE_TEST_SUITE_P(Ranks, Launching, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "UnderMpirun" : "OwnSpawn"; });

TEST_P(Launching, RanksGetPayloadAndSharedMemoryAndAllTheirMessagesArrive) {
  Job todo = job(4, {"exchange"});
  todo.payload = std::string(300000, 'p') + "!";
  todo.domain_bytes = 1 << 20;
  const Outcome outcome = run(todo);
  EXPECT_TRUE(outcome.ok) << outcome.failure.message() << outcome.log_tail;
  EXPECT_EQ(outcome.how, Ending::finished);
  ASSERT_EQ(recorder_.rows.size(), 4U);
  for (const auto& [rank, rows] : recorder_.rows) {
    EXPECT_EQ(rows, (std::vector<std::string>{"0:10:" + todo.payload, "1:10:" + todo.payload, "2:10:" + todo.payload}));
  }
  EXPECT_EQ(recorder_.long_bytes, std::size_t{4} << 20);
}

TEST_P(Launching, ManyRanksFinish) {
  Job todo = job(40, {"exchange"});
  todo.domain_bytes = 4096;
  const Outcome outcome = run(todo);
  EXPECT_TRUE(outcome.ok) << outcome.failure.message() << outcome.log_tail;
  EXPECT_EQ(recorder_.rows.size(), 40U);
}

TEST_P(Launching, ExitCodeIsReportedWithItsRank) {
  const Outcome outcome = run(job(3, {"exit", "1"}));
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.how, Ending::exited);
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.number, 3) << outcome.log_tail;
  EXPECT_THAT(outcome.failure.message(), AllOf(HasSubstr("rank 1 (pid "), HasSubstr("exited with code 3")));
}

TEST_P(Launching, LeavingWithoutGoodbyeIsAFailure) {
  const Outcome outcome = run(job(3, {"leave", "2"}));
  EXPECT_EQ(outcome.how, Ending::exited);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("rank 2 (pid "));
}

TEST_P(Launching, ExitCodeAfterGoodbyeIsAFailure) {
  const Outcome outcome = run(job(3, {"late-exit", "1"}));
  EXPECT_EQ(outcome.how, Ending::exited);
  // mpirun does not always say which rank's code it passes on, and with all goodbyes said nothing else tells.
  const bool is_untold = GetParam() && outcome.failed_rank == -1;
  EXPECT_TRUE(outcome.failed_rank == 1 || is_untold) << outcome.failed_rank;
  EXPECT_EQ(outcome.number, 4) << outcome.log_tail;
}

TEST_P(Launching, AbortIsReportedAsItsSignal) {
  const Outcome outcome = run(job(3, {"abort", "0"}));
  EXPECT_EQ(outcome.how, Ending::killed) << outcome.failure.message();
  EXPECT_EQ(outcome.failed_rank, 0);
  EXPECT_EQ(outcome.number, SIGABRT);
}

TEST_P(Launching, ErrorOfARankIsReportedWithItsCode) {
  const Outcome outcome = run(job(3, {"error", "2"}));
  EXPECT_EQ(outcome.how, Ending::said_error);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_EQ(outcome.failure.code(), Code::unavailable);
  EXPECT_EQ(outcome.failure.message(), "rank 2: no such backend");
}

TEST_P(Launching, GarbageIsReportedWithItsRank) {
  const Outcome outcome = run(job(2, {"garbage", "1"}));
  EXPECT_EQ(outcome.how, Ending::garbled);
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("not a message"));
}

TEST_P(Launching, DeathBeforeHelloIsNoticed) {
  const Outcome killed = run(job(3, {"early-kill", "1"}));
  EXPECT_EQ(killed.how, Ending::killed) << killed.failure.message();
  EXPECT_EQ(killed.failed_rank, 1);
  EXPECT_EQ(killed.number, SIGKILL);
  const Outcome exited = run(job(3, {"early-exit", "2"}));
  EXPECT_EQ(exited.how, Ending::exited) << exited.failure.message();
  EXPECT_EQ(exited.failed_rank, 2);
  EXPECT_EQ(exited.number, 5);
}

TEST_P(Launching, SilenceBeforeHelloEndsAtTheConnectTimeout) {
  Job todo = job(3, {"early-sleep", "2"});
  todo.connect_timeout = 1s;
  const Outcome outcome = run(todo);
  EXPECT_EQ(outcome.how, Ending::never_connected);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_EQ(outcome.failure.code(), Code::timeout);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("rank 2"));
}

TEST_P(Launching, StoppedRankIsNamedBeforeAndAfterItsHello) {
  for (const char* mode : {"stop", "early-stop"}) {
    Job todo = job(3, {mode, "1"});
    todo.timeout = 2s;
    const Outcome outcome = run(todo);
    EXPECT_EQ(outcome.how, Ending::stopped) << mode << ": " << outcome.failure.message();
    EXPECT_EQ(outcome.failed_rank, 1);
    EXPECT_EQ(outcome.failure.code(), Code::timeout);
    EXPECT_THAT(outcome.failure.message(), AllOf(HasSubstr("rank 1 (pid "), HasSubstr("stopped (state T)")));
  }
}

TEST_P(Launching, StoppedRankIsToBlameWhenAnotherComplains) {
  const Outcome outcome = run(job(2, {"complain", "1"}));
  EXPECT_EQ(outcome.how, Ending::stopped) << outcome.failure.message();
  EXPECT_EQ(outcome.failed_rank, 1);
}

TEST_P(Launching, IdleRankIsToBlameForAHang) {
  Job todo = job(3, {"idle", "2"});
  todo.timeout = 1s;
  const Outcome outcome = run(todo);
  EXPECT_EQ(outcome.how, Ending::hung);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_THAT(outcome.failure.message(), AllOf(HasSubstr("rank 2 (pid "), HasSubstr("operation 1 (the case 5)")));
}

TEST_P(Launching, HangOfAllRanksIsReportedWithoutACulprit) {
  Job todo = job(3, {"wait"});
  todo.timeout = 1s;
  todo.domain_bytes = 8192;
  const Outcome outcome = run(todo);
  EXPECT_EQ(outcome.how, Ending::hung);
  EXPECT_EQ(outcome.failed_rank, -1);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("all 3 ranks hang in operation 1 (the case 5)"));
  EXPECT_THAT(outcome.failure.message(),
              testing::ContainsRegex("\n  rank 0 \\(pid [0-9]+\\): in operation 1 \\(the case 5\\) for 1[.][0-9] s; it "
                                     "shares 8192 bytes\n  rank 1 \\(pid [0-9]+\\): in operation 1 .*\n  rank 2 "));
}

TEST_P(Launching, InterruptedLauncherEndsTheJob) {
  for (const int signal : {SIGINT, SIGTERM}) {
    recorder_.on_ready = [&](Recorder&, int rank, pid_t) {
      if (rank == 0) ::kill(::getpid(), signal);
    };
    const Outcome outcome = run(job(3, {"sleep"}));
    EXPECT_EQ(outcome.how, Ending::interrupted);
    EXPECT_EQ(outcome.number, signal);
    EXPECT_EQ(outcome.failure.code(), Code::aborted);
  }
}

TEST_P(Launching, GrandchildrenAreEndedToo) {
  const Outcome outcome = run(job(2, {"grandchild", "0"}));
  EXPECT_FALSE(outcome.ok);
}

TEST_P(Launching, MissingProgramIsAnError) {
  Job todo = job(2, {});
  (GetParam() ? todo.start->words.front() : todo.program) = "/nonexistent/program";
  const Result<Outcome> result = launch_job(todo, recorder_);
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().code(), Code::unavailable);
  EXPECT_THAT(result.status().message(), HasSubstr("/nonexistent/program"));
  expect_nothing_left();
}

TEST_P(Launching, RandomKillsAreAlwaysBlamedOnTheirVictim) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    std::atomic<int> victim = -1;
    const auto delay = std::chrono::milliseconds(random() % 150);
    const unsigned choice = static_cast<unsigned>(random());
    std::thread killer([&] {
      std::this_thread::sleep_for(delay);  // before, in or after the connection phase
      for (std::map<pid_t, int> ranks; victim < 0;) {
        ranks = rank_processes();
        if (ranks.empty()) continue;
        const auto chosen = std::next(ranks.begin(), static_cast<std::ptrdiff_t>(choice % ranks.size()));
        victim = chosen->second;
        ::kill(chosen->first, SIGKILL);
      }
    });
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = run(job(4, {"sleep"}));
    const auto end = std::chrono::steady_clock::now();
    killer.join();
    std::printf("trial %2d: rank %d after %3lld ms, ended after %lld ms\n", trial, victim.load(),
                static_cast<long long>(delay.count()), static_cast<long long>((end - start) / 1ms));
    EXPECT_EQ(outcome.how, Ending::killed) << outcome.failure.message() << outcome.log_tail;
    EXPECT_EQ(outcome.failed_rank, victim) << outcome.failure.message();
    EXPECT_EQ(outcome.number, SIGKILL);
  }
}

TEST_P(Launching, RandomStopsAreAlwaysBlamedOnTheirVictim) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    const int victim = static_cast<int>(random() % 4);
    Job todo = job(4, {"wait", std::to_string(victim)});
    todo.timeout = 300ms;
    recorder_.on_ready = [&](Recorder&, int rank, pid_t pid) {
      if (rank == victim) ::kill(pid, SIGSTOP);
    };
    const Outcome outcome = run(todo);
    EXPECT_EQ(outcome.how, Ending::stopped) << outcome.failure.message();
    EXPECT_EQ(outcome.failed_rank, victim) << outcome.failure.message();
  }
}

TEST_P(Launching, ThreadsHaveOneProcessThatServesAllRanks) {
  if (GetParam()) {
    Job todo = job(4, {"exchange"});
    todo.ranks_as = RanksAs::threads;
    EXPECT_EQ(launch_job(todo, recorder_).status().code(), Code::invalid_argument);
    return;
  }
  Job todo = job(4, {"exit", "0"});
  todo.ranks_as = RanksAs::threads;
  const Outcome outcome = run(todo);
  EXPECT_EQ(outcome.how, Ending::exited);
  EXPECT_EQ(recorder_.ready, 1);
}

class UnderMpirun : public Launching {};
/// Pretends that its processes run on two machines, two on each.
class TwoMachines final : public Children {
 public:
  [[nodiscard]] RankPlace place_of(int rank) const override { return {.host = rank / 2, .local = rank % 2}; }
};

TEST_P(Launching, EachRankIsToldItsMachineAndItsPlaceThere) {
  const auto rows = [](const char* first, const char* second, const char* third, const char* fourth) {
    return std::map<int, std::vector<std::string>>{{0, {first}}, {1, {second}}, {2, {third}}, {3, {fourth}}};
  };
  for (const bool are_two : {false, true}) {
    TwoMachines machines;
    Job todo = job(4, {"place"});
    if (are_two) todo.starter = &machines;
    Recorder recorder;
    const auto outcome = launch_job(todo, recorder);
    ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
    EXPECT_TRUE(outcome.value().ok) << outcome.value().failure.message();
    EXPECT_EQ(recorder.rows, are_two ? rows("0/0", "0/1", "1/0", "1/1") : rows("0/0", "0/1", "0/2", "0/3"));
  }
}

TEST_P(Launching, AnotherStarterEndsItsRanksToo) {
  TwoMachines machines;
  Job todo = job(4, {"exit", "2"});
  todo.starter = &machines;
  Recorder recorder;
  const auto outcome = launch_job(todo, recorder);
  ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
  EXPECT_EQ(outcome.value().how, Ending::exited);
  EXPECT_EQ(outcome.value().failed_rank, 2);
  EXPECT_TRUE(machines.all().empty());
}

INSTANTIATE_TEST_SUITE_P(Only, UnderMpirun, testing::Values(true));

TEST_P(UnderMpirun, DeathOfMpirunIsReportedAndLeavesNothing) {
  recorder_.on_ready = [](Recorder&, int rank, pid_t pid) {
    if (rank == 1) ::kill(process_info(pid)->parent, SIGKILL);
  };
  const Outcome outcome = run(job(3, {"sleep"}));
  EXPECT_EQ(outcome.how, Ending::killed) << outcome.failure.message();
  EXPECT_EQ(outcome.failed_rank, -1);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("mpirun (pid "));
}

TEST_P(UnderMpirun, OpenMpiRunsAndItsFilesAreGoneAfterwards) {
  const Outcome outcome = run(job(3, {"mpi"}));
  if (outcome.failure.code() == Code::unavailable) GTEST_SKIP() << outcome.failure.message();
  EXPECT_TRUE(outcome.ok) << outcome.failure.message() << outcome.log_tail;
  EXPECT_EQ(recorder_.ready, 3);
  EXPECT_GE(recorder_.paths.size(), 4U) << "no shared memory of Open MPI was seen";
}

TEST_P(UnderMpirun, KilledRankOfOpenMpiLeavesNoFiles) {
  recorder_.on_ready = [](Recorder& recorder, int, pid_t) {
    if (recorder.ready < 3) return;
    for (const auto& [pid, rank] : rank_processes()) {
      if (rank == 2) ::kill(pid, SIGKILL);
    }
  };
  const Outcome outcome = run(job(3, {"mpi-for-ever"}));
  if (outcome.failure.code() == Code::unavailable) GTEST_SKIP() << outcome.failure.message();
  EXPECT_EQ(outcome.how, Ending::killed) << outcome.failure.message();
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_GE(recorder_.paths.size(), 4U) << "no shared memory of Open MPI was seen";
}

// The launcher itself is killed, in a child: its ranks must be gone without anybody's help. The directory for mpirun is
// removed by the next launch.
TEST_P(Launching, RanksDoNotOutliveTheLauncher) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    Recorder recorder;
    recorder.on_ready = [&](Recorder& all, int, pid_t pid) {
      if (all.ready < 3) return;
      ::kill(pid, SIGSTOP);  // a rank that cannot notice anything itself
      const std::string directory = all.paths.empty() ? "none" : *all.paths.begin();
      if (::write(ends[1], directory.data(), directory.size()) > 0) ::raise(SIGKILL);
    };
    [[maybe_unused]] const Result<Outcome> never = launch_job(job(3, {"sleep"}), recorder);
    ::_exit(1);
  }
  ::close(ends[1]);
  char directory[256] = {};
  EXPECT_GT(::read(ends[0], directory, sizeof(directory) - 1), 0);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(launcher, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  while (!rank_processes().empty()) std::this_thread::sleep_for(5ms);  // the test's time limit is the judge
  if (!GetParam()) return;
  EXPECT_THAT(directory, HasSubstr("/tutti-"));
  // mpirun may outlive its ranks by a moment, and keeps its directory so long.
  do {
    run(job(1, {"exit", "0"}));
  } while (std::filesystem::exists(directory));
}

TEST(Launch, RefusesWhatCannotBe) {
  Recorder recorder;
  Job todo;
  todo.program = TUTTI_TEST_RANK;
  todo.ranks = 0;
  EXPECT_EQ(launch_job(todo, recorder).status().code(), Code::invalid_argument);
  todo.ranks = 1;
  todo.domain_bytes = std::size_t{1} << 50;
  const Status status = launch_job(todo, recorder).status();
  EXPECT_EQ(status.code(), Code::resource);
  EXPECT_THAT(status.message(), HasSubstr("1125899906842624"));
  todo.domain_bytes = 0;
  todo.log = "/nonexistent/log";
  EXPECT_EQ(launch_job(todo, recorder).status().code(), Code::io);
}

TEST(Launch, LogOfAFailedRankIsShown) {
  Recorder recorder;
  Job todo;
  todo.program = "/bin/sh";
  todo.arguments = {"-c", "echo some last words; exit 6"};
  const Result<Outcome> result = launch_job(todo, recorder);
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result.value().number, 6);
  EXPECT_EQ(result.value().log_tail, "some last words");
}

}  // namespace
}  // namespace tutti::harness::launch

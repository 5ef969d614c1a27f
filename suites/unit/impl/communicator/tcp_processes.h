// SPDX-License-Identifier: Apache-2.0
// Ranks on pretended hosts with TCP between them, each a process that may be killed or stopped.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "impl/transports/shared_memory.h"
#include "impl/transports/tcp/domain.h"
#include "suites/unit/impl/communicator/groups.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {

/// Ranks that are processes, as the launcher has them: one memory, of which each sees its own host's part.
class Processes {
 public:
  /// What a rank does with its communicator, and what it says of it.
  using Act = std::function<std::string(Communicator& communicator)>;

  /// Without `act` they sum until something goes wrong.
  Processes(int ranks, int hosts, std::chrono::nanoseconds timeout, Act act = {})
      : act_(std::move(act)),
        shape_(tcp::transport().shape(ranks, hosts, 0)),
        memory_(create_memory("tutti-test", tcp::transport().shared_bytes(shape_, RanksIn::own_processes)).value()),
        timeout_(timeout) {
    EXPECT_EQ(pipe(said_.data()), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      pids_.push_back(fork());
      if (pids_.back() == 0) run(rank);
    }
    close(said_[1]);
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    close(said_[0]);
    close(memory_);
  }
  void signal_to(int rank, int number) const { kill(pids_[static_cast<std::size_t>(rank)], number); }

  /// What ranks say, until `lines` of them or the time is over.
  std::vector<std::string> hear(std::size_t lines, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::vector<std::string> heard;
    while (heard.size() < lines) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd one{.fd = said_[0], .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) break;
      std::array<char, 4096> bytes;
      const ssize_t n = read(said_[0], bytes.data(), bytes.size());
      if (n <= 0) break;
      text_.append(bytes.data(), static_cast<std::size_t>(n));
      for (std::size_t at; (at = text_.find('\n')) != std::string::npos; text_.erase(0, at + 1)) {
        heard.push_back(text_.substr(0, at));
      }
    }
    return heard;
  }

 private:
  void say(int rank, const std::string& text) const {
    std::string line = fmt::format("{}: {}", rank, text);
    std::ranges::replace(line, '\n', ' ');
    line = line.substr(0, 2000) + "\n";
    (void)!write(said_[1], line.data(), line.size());
  }
  /// Sums until something goes wrong, and says what.
  [[noreturn]] void run(int rank) const {
    auto domain = tcp::transport().open(shape_, {.memory = memory_, .rank = rank, .timeout = std::chrono::seconds(10)});
    if (!domain.is_ok()) {
      say(rank, domain.status().message());
      _exit(1);
    }
    {
      const CommunicatorOptions options{.waiting = Waiting::yield, .timeout = timeout_, .prove_plans = false};
      const auto communicator = Communicator::create(*domain.value(), rank, options).value();
      if (act_) say(rank, act_(*communicator));
      for (int i = 0; !act_; ++i) {
        Sums sums(shape_.ranks, 2000, 1);
        const Status done = communicator->run(sums.call(rank, nullptr));
        if (i == 5) say(rank, "is under way");
        if (done.is_ok()) continue;
        say(rank, done.message());
        break;
      }
    }
    domain = error(Code::aborted, "gone");
    _exit(0);
  }

  Act act_;
  DomainShape shape_;
  int memory_;
  std::chrono::nanoseconds timeout_;
  std::array<int, 2> said_{};
  std::vector<pid_t> pids_;
  std::string text_;
};

}  // namespace tutti

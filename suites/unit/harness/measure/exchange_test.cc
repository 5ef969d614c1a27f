// SPDX-License-Identifier: Apache-2.0
// Hosts that share no memory: each has a board of its own, and what one writes goes to the others through sockets.
#include "harness/measure/exchange.h"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

constexpr int kApart = 3;

/// A socket for each pair of runners; each message is a part of the sender's board.
class Sockets {
 public:
  Sockets() {
    for (int a = 0; a < kApart; ++a) {
      for (int b = a + 1; b < kApart; ++b) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        at(a, b) = ends[0];
        at(b, a) = ends[1];
      }
    }
  }
  ~Sockets() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  [[nodiscard]] int& at(int runner, int peer) { return ends_[static_cast<std::size_t>(runner * kApart + peer)]; }

 private:
  std::array<int, kApart* kApart> ends_ = [] {
    std::array<int, kApart * kApart> none{};
    none.fill(-1);
    return none;
  }();
};

class OverSockets final : public Exchange {
 public:
  OverSockets(Sockets& sockets, int runner) : sockets_(sockets), runner_(runner) {}
  void tell(const Board& board, int runner, Part part) override {
    Message message{.runner = runner, .part = part, .bytes = {}};
    std::memcpy(message.bytes.data(), place(board, runner, part), bytes_of(part));
    for (int peer = 0; peer < kApart; ++peer) {
      if (peer == runner_) continue;
      EXPECT_EQ(::send(sockets_.at(runner_, peer), &message, sizeof(message), 0), sizeof(message));
    }
  }
  void look(const Board& board) override {
    Message message;
    for (int peer = 0; peer < kApart; ++peer) {
      if (peer == runner_) continue;
      while (::recv(sockets_.at(runner_, peer), &message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
        std::memcpy(place(board, message.runner, message.part), message.bytes.data(), bytes_of(message.part));
      }
    }
  }
  [[nodiscard]] bool needs_look() const override { return true; }
  [[nodiscard]] bool is_aborted(const Board& /*board*/) const override { return is_given_up; }

  bool is_given_up = false;

 private:
  struct Message {
    int runner;
    Part part;
    std::array<std::byte, sizeof(RunnerPage)> bytes;
  };
  static std::size_t bytes_of(Part part) { return part == Part::page ? sizeof(RunnerPage) : sizeof(SyncLine); }
  static void* place(const Board& board, int runner, Part part) {
    if (part == Part::page) return &board.page(runner);
    return part == Part::sync ? &board.sync(runner) : &board.probe(runner);
  }

  Sockets& sockets_;
  int runner_;
};

void on_runners_apart(const std::function<void(Runner&)>& body,
                      const std::function<void(RunnerOptions&)>& change = {}) {
  Sockets sockets;
  std::vector<std::thread> threads;
  for (int index = 0; index < kApart; ++index) {
    threads.emplace_back([&, index] {
      const BoardMemory memory(kApart);
      OverSockets exchange(sockets, index);
      RunnerOptions options = runner_options(index, kApart);
      options.exchange = &exchange;
      if (change) change(options);
      Runner runner(memory.board(), std::move(options));
      body(runner);
      // Nobody leaves before all have heard what was told last.
      EXPECT_TRUE(runner.exchange(index).is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Exchange, HostsWithoutCommonMemoryExchangeRecordsAndAgree) {
  on_runners_apart([](Runner& runner) {
    for (int round = 0; round < 200; ++round) {
      const auto all = runner.exchange(100 * runner.index() + round);
      ASSERT_TRUE(all.is_ok()) << all.status().message();
      ASSERT_THAT(all.value(), testing::ElementsAre(round, 100 + round, 200 + round));
      const auto agreed = runner.agree(runner.index() + round);
      ASSERT_TRUE(agreed.is_ok()) << agreed.status().message();
      ASSERT_EQ(agreed.value(), round);
    }
    const auto first = runner.first_reason(runner.index() == 2 ? error(Code::resource, "no memory") : Status());
    ASSERT_TRUE(first.is_ok()) << first.status().message();
    EXPECT_EQ(first.value().text(), "no memory");
    EXPECT_EQ(first.value().code, Code::resource);
  });
}

TEST(Exchange, HostsWithoutCommonMemoryStartTogetherAndPassBarriers) {
  on_runners_apart([](Runner& runner) {
    std::int64_t last = 0;
    for (int round = 0; round < 50; ++round) {
      const auto instant = runner.start_together();
      const std::int64_t now = monotonic_ns();
      ASSERT_TRUE(instant.is_ok()) << instant.status().message();
      ASSERT_GE(now, instant.value());
      ASSERT_GT(instant.value(), last);
      ASSERT_EQ(runner.agree(instant.value()).value(), instant.value());
      last = instant.value();
      ASSERT_TRUE(runner.start_after([&] { return runner.pass_barrier(); }).is_ok());
      ASSERT_EQ(runner.agree(runner.last_start().value()).value(), runner.last_start().value());
    }
  });
}

TEST(Exchange, ALineIsProbedAcrossIt) {
  on_runners_apart(
      [](Runner& runner) {
        const auto trips = runner.probe();
        ASSERT_TRUE(trips.is_ok()) << trips.status().message();
        EXPECT_GT(trips.value().line_ns.value_or(0), 0);
      },
      [](RunnerOptions& options) { options.yields = false; });
}

TEST(Exchange, SaysThatTheJobWasGivenUp) {
  Sockets sockets;
  const BoardMemory memory(kApart);
  OverSockets exchange(sockets, 1);
  exchange.is_given_up = true;
  RunnerOptions options = runner_options(1, kApart);
  options.exchange = &exchange;
  Runner runner(memory.board(), std::move(options));
  EXPECT_EQ(runner.exchange(1).status().code(), Code::aborted);
}

}  // namespace
}  // namespace tutti::harness::measure

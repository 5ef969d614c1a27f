// SPDX-License-Identifier: Apache-2.0
// Hosts on several machines that share no board: each a thread here, over 127.0.0.1, with a clock of its own.
#include "harness/measure/mesh.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "harness/measure/block.h"
#include "harness/measure/runner.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/meeting.h"
#include "impl/tcp/socket.h"
#include "suites/unit/harness/measure/barrier_backend.h"
#include "suites/unit/harness/measure/machines_apart.h"

namespace tutti::harness::measure {
namespace {

using namespace std::chrono_literals;

/// By how much the runner's common instant is off now.
std::int64_t error_of(const Runner& runner) {
  const std::int64_t before = monotonic_ns();
  const std::int64_t common = runner.common_now_ns();
  const std::int64_t after = monotonic_ns();
  return common < before ? before - common : std::max<std::int64_t>(0, common - after);
}

TEST(Mesh, AnExchangeGivesEveryHostEveryRecordRoundAfterRound) {
  on_machines({0, 0, 1, 1, 2}, [](Runner& runner, const MeshPlace& /*place*/) {
    struct Said {
      int runner, round;
      std::array<char, 1500> rest;
    };
    for (int round = 0; round < 100; ++round) {
      Said mine{.runner = runner.index(), .round = round, .rest = {}};
      mine.rest.fill(static_cast<char>(round + runner.index()));
      const auto all = runner.exchange(mine);
      ASSERT_TRUE(all.is_ok()) << all.status().message();
      for (int other = 0; other < 5; ++other) {
        const Said& record = all.value()[static_cast<std::size_t>(other)];
        ASSERT_EQ(record.runner, other);
        ASSERT_EQ(record.round, round);
        ASSERT_EQ(record.rest.back(), static_cast<char>(round + other));
      }
      ASSERT_TRUE(runner.pass_barrier().is_ok());
    }
  });
}

TEST(Mesh, AnOffsetIsRecoveredWithinItsBound) {
  on_machines({0, 1}, [](Runner& runner, const MeshPlace& /*place*/) {
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t error = error_of(runner);
    const std::int64_t bound = runner.clocks().most_bound_ns;
    EXPECT_GT(bound, 0);
    // A drift that is not known yet adds what has passed since.
    EXPECT_LE(error, bound + 10'000) << runner.index();
    EXPECT_NEAR(static_cast<double>(runner.clock().offset_ns), runner.index() * 1e9, 1e8);
    EXPECT_GE(runner.clock().doubt_ns, 2 * bound);
  });
}

TEST(Mesh, ADriftIsRecoveredAndWhatItHadMovedIsTold) {
  on_machines({0, 1}, [](Runner& runner, const MeshPlace& /*place*/) {
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t first_bound = runner.clocks().most_bound_ns;
    const std::int64_t since = monotonic_ns();
    std::this_thread::sleep_for(400ms);
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const double passed = static_cast<double>(monotonic_ns() - since);
    const double bounds = static_cast<double>(first_bound + runner.clocks().most_bound_ns);
    const double its_drift = runner.index() == 1 ? kDrift : 0;
    EXPECT_NEAR(runner.clock().drift, its_drift, 1.1 * bounds / passed + 1e-6);
    EXPECT_NEAR(static_cast<double>(runner.clocks().most_change_ns), kDrift * passed, 1.1 * bounds + 20'000);
    std::this_thread::sleep_for(400ms);
    EXPECT_LE(static_cast<double>(error_of(runner)), 4 * bounds + 10'000);
    ASSERT_TRUE(runner.compare_clocks().is_ok());
  });
}

TEST(Mesh, AnErrorBeyondTheBoundIsTold) {
  constexpr double kStrongDrift = 0.5;  // far beyond what any round trip leaves open
  const auto body = [](Runner& runner, const MeshPlace& /*place*/) {
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t since = monotonic_ns();
    std::this_thread::sleep_for(
        std::max<std::chrono::nanoseconds>(300ms, std::chrono::nanoseconds(200 * runner.clocks().most_bound_ns)));
    const auto error = static_cast<std::int64_t>(kStrongDrift * static_cast<double>(monotonic_ns() - since));
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t bound = runner.clocks().most_bound_ns;
    ASSERT_GT(error, 4 * bound) << "this says nothing of an error beyond the bound";
    EXPECT_GE(runner.clocks().most_change_ns, error - 2 * bound);
    EXPECT_GE(runner.clock().doubt_ns, 2 * (error - 2 * bound));
  };
  on_machines({0, 1}, body, {.drift = kStrongDrift});
}

TEST(Mesh, WhatLiesBetweenTwoEstimatesIsInterpolated) {
  on_machines({0, 1}, [](Runner& runner, const MeshPlace& /*place*/) {
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t before = runner.clock().since_ns;
    std::this_thread::sleep_for(500ms);
    const std::int64_t true_ns = monotonic_ns(), reading = runner.now_ns(), later_ns = monotonic_ns();
    const std::int64_t as_foreseen = runner.clock().common(reading);
    std::this_thread::sleep_for(500ms);
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    const std::int64_t common = runner.clock_between().common(reading);
    const std::int64_t bound = runner.clocks().most_bound_ns + 1000;
    EXPECT_GE(common, true_ns - bound);
    EXPECT_LE(common, later_ns + bound);
    EXPECT_EQ(runner.clock_between().since_ns, before);
    if (runner.index() == 1 && bound < 20'000) {  // at 100 ppm it had moved by 50 us
      EXPECT_GT(as_foreseen, later_ns + 20'000);
    }
  });
}

TEST(Mesh, ABlockLiesBetweenTwoEstimates) {
  BarrierBackend backend;
  on_machines({0, 1}, [&](Runner& runner, const MeshPlace& /*place*/) {
    Variant variant = made_on(runner, backend);
    for (int i = 0; i < 2; ++i) {
      const std::int64_t begin = runner.now_ns();
      const auto block = run_block(runner, variant, {.salt = 1, .samples = 5});
      ASSERT_TRUE(block.is_ok()) << block.status().message();
      const RunnerClock clock = runner.clock_between();
      EXPECT_EQ(block.value().wrong, 0) << block.value().reason;
      EXPECT_GT(block.value().clocks_bound_ns, 0);
      EXPECT_LE(block.value().clocks_bound_ns, runner.clocks().most_bound_ns);
      if (runner.index() == 0) continue;  // of whose clock nobody asks
      EXPECT_GE(clock.since_ns, begin);
      EXPECT_LT(clock.common(clock.since_ns), block.value().last_instant_ns);
      EXPECT_GT(runner.clock().common(runner.clock().since_ns), block.value().last_instant_ns);
    }
  });
}

TEST(Mesh, AStartIsAtOneInstantOnAllMachines) {
  on_machines({0, 0, 1}, [](Runner& runner, const MeshPlace& /*place*/) {
    ASSERT_TRUE(runner.compare_clocks().is_ok());
    for (int round = 0; round < 20; ++round) {
      const auto instant = runner.start_together();
      ASSERT_TRUE(instant.is_ok()) << instant.status().message();
      const std::int64_t entered = runner.common_now_ns();
      EXPECT_GE(entered, instant.value());
      const auto all = runner.exchange(instant.value());
      ASSERT_TRUE(all.is_ok());
      EXPECT_THAT(all.value(), testing::Each(instant.value()));
    }
  });
}

TEST(Mesh, AWordIsProbedBetweenMachinesAndALineWithinTheFirst) {
  on_machines({0, 0, 1},
              [](Runner& runner, const MeshPlace& /*place*/) {
                const auto trips = runner.probe();
                ASSERT_TRUE(trips.is_ok()) << trips.status().message();
                EXPECT_GT(trips.value().line_ns.value_or(0), 0);
                EXPECT_GT(trips.value().net_ns.value_or(0), 1000)
                    << "no word goes to and fro over TCP in a microsecond";
              },
              {.are_crowded = {false, false}});
}

TEST(Mesh, WhereOneMachineIsCrowdedAllHostsTakeItsRanksForThat) {
  for (const bool is_first_crowded : {true, false}) {
    on_machines({0, 1},
                [](Runner& runner, const MeshPlace& /*place*/) {
                  ASSERT_TRUE(runner.compare_clocks().is_ok());
                  const auto trips = runner.probe();  // who did not know it would wait here for the other one
                  ASSERT_TRUE(trips.is_ok()) << trips.status().message();
                  EXPECT_FALSE(trips.value().net_ns.has_value());
                  const auto in_time = runner.exchange(runner.in_time_ns());
                  ASSERT_TRUE(in_time.is_ok());
                  EXPECT_EQ(in_time.value()[0], in_time.value()[1]) << "which samples count is decided by it";
                },
                {.are_crowded = {is_first_crowded, !is_first_crowded}});
  }
}

TEST(Mesh, WhoDoesNotKnowTheSecretIsNoHost) {
  const auto meeting = tcp::listen_on("127.0.0.1");
  ASSERT_TRUE(meeting.is_ok());
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      const auto secret = tcp::draw_secret();  // each another one
      const auto mesh = Mesh::join({.runner = index,
                                    .machines = {0, 1},
                                    .key = secret.value(),
                                    .interface = "127.0.0.1",
                                    .address = meeting.value().address,
                                    .listener = index == 0 ? meeting.value().socket.get() : -1,
                                    .timeout = 500ms});
      EXPECT_FALSE(mesh.is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Each tells more than the connections hold, and none looks before all is told: 16 MB on each connection and way.
TEST(Mesh, RunnersThatTellAtOnceTakeWhatComes) {
  constexpr int kRunners = 3;
  constexpr std::uint64_t kPages = 8000;
  const auto secret = tcp::draw_secret();
  const auto meeting = tcp::listen_on("127.0.0.1");
  ASSERT_TRUE(secret.is_ok() && meeting.is_ok());
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int index = 0; index < kRunners; ++index) {
    threads.emplace_back([&, index] {
      const auto joined = Mesh::join({.runner = index,
                                      .machines = {0, 1, 2},
                                      .key = secret.value(),
                                      .interface = "127.0.0.1",
                                      .address = meeting.value().address,
                                      .listener = index == 0 ? meeting.value().socket.get() : -1,
                                      .timeout = 10s});
      ASSERT_TRUE(joined.is_ok()) << joined.status().message();
      Mesh& mesh = *joined.value();
      const BoardMemory board(kRunners);
      for (std::uint64_t page = 1; page <= kPages; ++page) {
        board.board().page(index).sequence.store(page);
        mesh.tell(board.board(), index, Exchange::Part::page);
      }
      ++told;
      const auto has_all = [&] {
        for (int other = 0; other < kRunners; ++other) {
          if (other != index && mesh.seen(board.board(), other).page(other).sequence.load() != kPages) return false;
        }
        return told == kRunners;
      };
      for (const auto end = std::chrono::steady_clock::now() + 30s;
           !has_all() && std::chrono::steady_clock::now() < end;) {
        mesh.look(board.board());
      }
      EXPECT_TRUE(has_all()) << "runner " << index << " lacks what another one told";
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Comes as runner 1 of two, and says something that is no message of it.
void be_garbled(const MeshPlace& place) {
  const auto listener = tcp::listen_on("127.0.0.1");
  ASSERT_TRUE(listener.is_ok());
  const auto met = tcp::meet({.key = place.key,
                              .role = tcp::Role::meeting_of_exchange,
                              .process = 1,
                              .processes = 2,
                              .text = listener.value().address,
                              .address = place.address});
  ASSERT_TRUE(met.is_ok()) << met.status().message();
  Descriptor socket;
  while (!socket.is_open()) socket = tcp::accept_from(listener.value().socket.get());
  auto greeting = tcp::Greeting::of_server(place.key, tcp::draw_nonce().value(), tcp::Role::exchange);
  while (greeting.step(socket.get()) == tcp::Greeting::State::going) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(greeting.state(), tcp::Greeting::State::claimed);
  greeting.answer(tcp::Verdict::welcome);
  ASSERT_EQ(greeting.step(socket.get()), tcp::Greeting::State::done);
  const std::string words(100, 'x');
  ASSERT_EQ(::send(socket.get(), words.data(), words.size(), 0), 100);
  std::array<char, 4096> bytes;
  pollfd until_gone{.fd = socket.get(), .events = POLLIN, .revents = 0};
  while (::poll(&until_gone, 1, 20'000) == 1 && ::recv(socket.get(), bytes.data(), bytes.size(), 0) > 0) {
  }
}

TEST(Mesh, BytesThatAreChangedOnTheWayEndItByName) {
  const auto meeting = tcp::listen_on("127.0.0.1");
  ASSERT_TRUE(meeting.is_ok());
  const MeshPlace place{.runner = 0,
                        .machines = {0, 1},
                        .key = tcp::draw_secret().value(),
                        .interface = "127.0.0.1",
                        .address = meeting.value().address,
                        .listener = meeting.value().socket.get(),
                        .timeout = 20s};
  std::thread other([&] { be_garbled(place); });
  {
    auto mesh = Mesh::join(place);
    ASSERT_TRUE(mesh.is_ok()) << mesh.status().message();
    const BoardMemory board(2);
    RunnerOptions options = runner_options(0, 2);
    options.exchange = mesh.value().get();
    Runner runner(board.board(), options);
    const Status why = runner.exchange(char{}).status();
    EXPECT_EQ(why.code(), Code::io);
    EXPECT_THAT(why.message(), testing::AllOf(testing::HasSubstr("rank 1: bytes of the connection to 127.0.0.1:"),
                                              testing::HasSubstr("changed on the way")));
  }
  other.join();
}

}  // namespace
}  // namespace tutti::harness::measure

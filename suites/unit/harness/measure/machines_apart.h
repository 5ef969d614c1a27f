// SPDX-License-Identifier: Apache-2.0
// Hosts on several machines that share no board: each a thread here, over 127.0.0.1, with a clock of its own.
#pragma once

#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "harness/measure/mesh.h"
#include "harness/measure/runner.h"
#include "impl/tcp/socket.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {

inline constexpr std::int64_t kLeadNs = 1'000'000'000;
inline constexpr double kDrift = 100e-6;

inline RunnerClock clock_of_machine(int machine, std::int64_t since_ns, double drift) {
  RunnerClock clock;
  if (machine == 0) return clock;
  clock.lead_ns = machine * kLeadNs;
  clock.lead_drift = machine * drift;
  clock.lead_since_ns = since_ns;
  return clock;
}

struct Apart {
  std::vector<bool> are_crowded = {};  ///< by machine: its ranks outnumber its cores; empty: on all
  double drift = kDrift;               ///< of the clock of machine 1
};
/// Runs `body` on a runner for each entry of `machines`; runners of one machine share a board and nothing else.
template <class Body>
void on_machines(const std::vector<int>& machines, Body body, const Apart& apart = {}) {
  const int runners = static_cast<int>(machines.size());
  std::deque<BoardMemory> boards;
  for (int machine = 0; machine <= machines.back(); ++machine) boards.emplace_back(runners);
  const auto secret = tcp::draw_secret();
  const auto meeting = tcp::listen_on("127.0.0.1");
  ASSERT_TRUE(secret.is_ok() && meeting.is_ok());
  const std::int64_t since_ns = monotonic_ns();
  std::vector<std::thread> threads;
  for (int index = 0; index < runners; ++index) {
    threads.emplace_back([&, index] {
      const int machine = machines[static_cast<std::size_t>(index)];
      const MeshPlace place{.runner = index,
                            .machines = machines,
                            .key = secret.value(),
                            .interface = "127.0.0.1",
                            .address = meeting.value().address,
                            .listener = index == 0 ? meeting.value().socket.get() : -1,
                            .timeout = std::chrono::seconds(20)};
      auto mesh = Mesh::join(place);
      ASSERT_TRUE(mesh.is_ok()) << mesh.status().message();
      RunnerOptions options{.runner = index, .runners = runners, .job_ranks = runners, .ranks = {index}};
      options.clock = clock_of_machine(machine, since_ns, apart.drift);
      options.exchange = mesh.value().get();
      options.yields = apart.are_crowded.empty() || apart.are_crowded[static_cast<std::size_t>(machine)];
      options.timeout = place.timeout;
      Runner runner(boards[static_cast<std::size_t>(machine)].board(), options);
      mesh.value()->answer_clock(&runner.clock());
      body(runner, place);
      // Nobody leaves while another one may still ask.
      ASSERT_TRUE(runner.exchange(char{}).is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::harness::measure

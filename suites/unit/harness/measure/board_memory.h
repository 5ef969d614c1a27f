// SPDX-License-Identifier: Apache-2.0
// A board in this process's memory, and hosts on it as threads.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "harness/measure/host.h"

namespace tutti::harness::measure {

/// Memory of a board as the launcher gives it: zeroed.
class BoardMemory {
 public:
  explicit BoardMemory(int ranks)
      : ranks_(ranks), base_(std::aligned_alloc(4096, (Board::bytes(ranks) + 4095) / 4096 * 4096)) {
    std::memset(base_, 0, Board::bytes(ranks));
  }
  ~BoardMemory() { std::free(base_); }
  BoardMemory(const BoardMemory&) = delete;
  BoardMemory& operator=(const BoardMemory&) = delete;
  [[nodiscard]] Board board() const { return Board(base_, ranks_); }

 private:
  int ranks_;
  void* base_;
};

/// Host `index` of `hosts`, with one rank each.
[[nodiscard]] inline HostOptions host_options(int index, int hosts) {
  return {.host = index,
          .hosts = hosts,
          .job_ranks = hosts,
          .ranks = {index},
          .yields = true,
          .timeout = std::chrono::seconds(30)};
}

/// Runs `body(host)` on `hosts` hosts, one thread each. `on_start`, where there is one, is told the host's index.
inline void on_hosts(const Board& board, int hosts, const std::function<void(Host&)>& body,
                     const std::function<void(int)>& on_start = {}) {
  std::vector<std::thread> threads;
  for (int index = 0; index < hosts; ++index) {
    threads.emplace_back([&, index] {
      HostOptions options = host_options(index, hosts);
      if (on_start) options.on_start = [&, index] { on_start(index); };
      Host host(board, std::move(options));
      body(host);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::harness::measure

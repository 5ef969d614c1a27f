// SPDX-License-Identifier: Apache-2.0
// A board in this process's memory, and runners on it as threads.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "harness/measure/runner.h"

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

/// Runner `index` of `runners`, with one rank each.
[[nodiscard]] inline RunnerOptions runner_options(int index, int runners) {
  return {.runner = index,
          .runners = runners,
          .job_ranks = runners,
          .ranks = {index},
          .yields = true,
          .timeout = std::chrono::seconds(30)};
}

/// Runs `body(runner)` on `runners` runners, one thread each. `on_start`, where there is one, is told the runner's
/// index.
inline void on_runners(const Board& board, int runners, const std::function<void(Runner&)>& body,
                       const std::function<void(int)>& on_start = {}) {
  std::vector<std::thread> threads;
  for (int index = 0; index < runners; ++index) {
    threads.emplace_back([&, index] {
      RunnerOptions options = runner_options(index, runners);
      if (on_start) options.on_start = [&, index] { on_start(index); };
      Runner runner(board, std::move(options));
      body(runner);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::harness::measure

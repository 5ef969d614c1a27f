// SPDX-License-Identifier: Apache-2.0
// A crowd is busy threads beside the ranks of a machine, as `--crowd` asks for: what ranks meet when other work has
// their cores too. The process of a machine's first runner has them, so they end when it does, whatever ends it.
#pragma once

#include <atomic>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

class Crowd {
 public:
  /// This many threads, which compute in registers until the crowd ends, on any of `cores`. Errors: unavailable with
  /// the kernel's reason.
  [[nodiscard]] static Result<std::unique_ptr<Crowd>> start(int threads, const std::vector<int>& cores);
  ~Crowd() { has_ended_.store(true, std::memory_order_relaxed); }

  /// Seconds of cores that they have had so far.
  [[nodiscard]] double used_s() const;

 private:
  std::atomic<bool> has_ended_ = false;
  std::vector<clockid_t> clocks_;  ///< of each thread
  std::vector<std::jthread> threads_;
};

}  // namespace tutti::harness::measure

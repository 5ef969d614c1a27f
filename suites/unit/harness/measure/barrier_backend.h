// SPDX-License-Identifier: Apache-2.0
// A system under test whose one operation is a barrier of two threads.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include <gtest/gtest.h>

#include "harness/measure/variant.h"
#include "harness/verify/check.h"
#include "suites/unit/harness/measure/plain_backend.h"

namespace tutti::harness::measure {

/// Barriers of the ranks of a board: what a library's own one does.
class BarrierBackend final : public PlainBackend {
 public:
  BarrierBackend() : PlainBackend("barrier") {}
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> /*buffers*/) override {
    return std::unique_ptr<Prepared>(new Waits(*this, one.ranks));
  }

 private:
  class Waits final : public Prepared {
   public:
    Waits(BarrierBackend& backend, int ranks) : backend_(backend), ranks_(ranks) {}
    Status post(std::size_t /*index*/) override {
      all_ = (backend_.arrived_.fetch_add(1) / ranks_ + 1) * ranks_;
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return backend_.arrived_.load() >= all_; }

   private:
    BarrierBackend& backend_;
    int ranks_;
    int all_ = 0;
  };
  std::atomic<int> arrived_ = 0;
};

[[nodiscard]] inline Case barrier_of_two() {
  Case one;
  one.collective = Collective::barrier;
  one.ranks = 2;
  one.ranks_as = RanksAs::threads;
  return one;
}

[[nodiscard]] inline Variant made_on(Runner& runner, Backend& backend) {
  auto variant = Variant::create(runner, {.backend = backend,
                                          .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                          .instance = barrier_of_two()});
  EXPECT_TRUE(variant.is_ok()) << variant.status().message();
  return std::move(variant).value();
}

}  // namespace tutti::harness::measure

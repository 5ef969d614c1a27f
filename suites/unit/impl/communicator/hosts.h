// SPDX-License-Identifier: Apache-2.0
// For tests of ranks on pretended hosts: a world of them in this process.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/communicator.h"
#include "impl/transports/hosts.h"

namespace tutti {

/// The communicators of all ranks of a domain, which it owns.
class RanksOn {
 public:
  explicit RanksOn(std::unique_ptr<Domain> domain, std::chrono::nanoseconds timeout = std::chrono::seconds(60))
      : domain_(std::move(domain)) {
    const CommunicatorOptions options{.waiting = Waiting::yield, .timeout = timeout, .prove_plans = false};
    for (int rank = 0; rank < ranks(); ++rank) {
      communicators_.push_back(Communicator::create(*domain_, rank, options).value());
    }
  }
  [[nodiscard]] int ranks() const { return domain_->shape().ranks; }
  [[nodiscard]] Communicator& on(int rank) { return *communicators_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Domain& domain() { return *domain_; }
  void leave(int rank) { communicators_[static_cast<std::size_t>(rank)].reset(); }

  /// `act` of each rank in a thread of its own.
  void in_threads(const std::function<void(int rank)>& act) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks(); ++rank) threads.emplace_back(act, rank);
    for (std::thread& thread : threads) thread.join();
  }
  /// Lets ranks take turns as the seed says; whether all works are done then.
  bool go(std::vector<Work>& works, std::uint64_t seed, int turns = 400'000) {
    std::mt19937_64 random(seed);
    std::vector<bool> is_done(works.size());
    for (std::size_t left = works.size(); left > 0 && turns > 0; --turns) {
      const auto one = random() % works.size();
      if (is_done[one]) continue;
      const Result<bool> done = works[one].test();
      EXPECT_TRUE(done.is_ok()) << done.status().message();
      if (!done.is_ok()) return false;
      is_done[one] = done.value();
      left -= done.value() ? 1 : 0;
    }
    return std::ranges::all_of(is_done, std::identity());
  }

 private:
  std::unique_ptr<Domain> domain_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

inline Schedule schedule_named(Collective collective, std::string_view algorithm, int ranks) {
  return schedule_of(*find_algorithm(collective, algorithm).value(), {.collective = collective, .ranks = ranks});
}

/// Element i of every rank's result is the sum of what the ranks have there.
class Sums {
 public:
  Sums(int ranks, Count count, int salt) : count_(count), salt_(salt) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::int32_t>& input = inputs_.emplace_back();
      for (Count i = 0; i < count; ++i) input.push_back(element(rank, i));
      outputs_.emplace_back(static_cast<std::size_t>(count), -1);
    }
  }
  /// Without a schedule `auto` chooses.
  [[nodiscard]] Call call(int rank, const Schedule* schedule) {
    const auto r = static_cast<std::size_t>(rank);
    return {.collective = Collective::all_reduce,
            .dtype = Dtype::i32,
            .op = Op::sum,
            .count = count_,
            .input = inputs_[r].data(),
            .output = outputs_[r].data(),
            .schedule = schedule};
  }
  [[nodiscard]] bool is_right(int rank) const {
    const auto& output = outputs_[static_cast<std::size_t>(rank)];
    for (Count i = 0; i < count_; ++i) {
      std::int32_t sum = 0;
      for (std::size_t other = 0; other < inputs_.size(); ++other) sum += element(static_cast<int>(other), i);
      if (output[static_cast<std::size_t>(i)] != sum) return false;
    }
    return true;
  }
  [[nodiscard]] bool are_right() const {
    for (int rank = 0; rank < static_cast<int>(inputs_.size()); ++rank) {
      if (!is_right(rank)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::int32_t element(int rank, Count i) const {
    return static_cast<std::int32_t>((rank + 1) * 10007 + i * 31 + salt_);
  }
  Count count_;
  int salt_;
  std::vector<std::vector<std::int32_t>> inputs_, outputs_;
};

}  // namespace tutti

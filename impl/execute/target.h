// SPDX-License-Identifier: Apache-2.0
// What the threads of a team have to work with. A team walks one rank's plan together: on a GPU it is a thread block,
// where there is no GPU some threads of the host. device_machine.h is written against a Target, so that one text runs
// on both.
//
// A Target has these members; `word` is a std::uint64_t*, `value` a std::uint64_t.
//
// The team:
//   int thread() const, int threads() const   The number of this thread in its team. How many threads the team has.
//   void barrier()                            Returns once all threads have come. What they wrote before is seen.
//   bool any(bool vote)                       A barrier that says whether any thread passed true.
// Words that teams of one device, or with `_afar` of several, tell each other by (static):
//   load_acquire(word), load_acquire_afar(word)
//   store_release(word, value), store_release_afar(word, value)
// Words of packets (static):
//   load_relaxed(word), store_relaxed(word, value)
// Words at which the host looks meanwhile (static):
//   load_relaxed(word), store_release_to_host(word, value)
//   bool swap_if(word, expected, value)       Stores where the word is as expected. Says whether it was.
// The rest (static):
//   std::uint64_t now_ns()                    A clock that only rises.
//   void pause()                              For the time between two looks at a word.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>

namespace tutti {

/// Where the threads of a team of the host meet. Votes alternate between two words: nobody is left reading the one that
/// is written next.
class TeamBarrier {
 public:
  explicit TeamBarrier(int threads = 1) : threads_(threads) {}

  /// Whether any thread of the team passed true.
  bool pass(bool vote) {
    if (threads_ == 1) return vote;
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (vote) votes_[turn % 2].store(true, std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      votes_[(turn + 1) % 2].store(false, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
    } else {
      while (turn_.load(std::memory_order_acquire) == turn) sched_yield();
    }
    return votes_[turn % 2].load(std::memory_order_relaxed);
  }

 private:
  int threads_;
  std::atomic<int> arrived_ = 0;
  std::atomic<std::uint32_t> turn_ = 0;
  std::atomic<bool> votes_[2] = {false, false};
};

/// One thread of a team of the host.
class HostTarget {
 public:
  HostTarget(TeamBarrier& barrier, int thread, int threads) : barrier_(barrier), thread_(thread), threads_(threads) {}

  [[nodiscard]] int thread() const { return thread_; }
  [[nodiscard]] int threads() const { return threads_; }
  void barrier() { barrier_.pass(false); }
  bool any(bool vote) { return barrier_.pass(vote); }

  static std::uint64_t load_acquire(std::uint64_t* word) { return reference(word).load(std::memory_order_acquire); }
  static std::uint64_t load_relaxed(std::uint64_t* word) { return reference(word).load(std::memory_order_relaxed); }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, std::memory_order_relaxed);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, std::memory_order_release);
  }
  static std::uint64_t load_acquire_afar(std::uint64_t* word) { return load_acquire(word); }
  static void store_release_afar(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static void store_release_to_host(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  /// Stores `value` where the word is `expected`; says whether it was.
  static bool swap_if(std::uint64_t* word, std::uint64_t expected, std::uint64_t value) {
    return reference(word).compare_exchange_strong(expected, value, std::memory_order_acq_rel);
  }
  static std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
  static void pause() { sched_yield(); }

 private:
  static std::atomic_ref<std::uint64_t> reference(std::uint64_t* word) { return std::atomic_ref(*word); }

  TeamBarrier& barrier_;
  int thread_;
  int threads_;
};

}  // namespace tutti

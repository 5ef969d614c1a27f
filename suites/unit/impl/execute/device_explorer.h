// SPDX-License-Identifier: Apache-2.0
// The device's machine itself in every interleaving of its teams, each a fiber of one thread. A step is what a team
// does between two looks at, or stores to, words that others see, or the data of one MOVE. A look that fails is none:
// the team can take it again when the word is another. Stores are seen at once; where that matters is the thread
// sanitizer's side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "impl/execute/device_machine.h"
#include "suites/unit/impl/execute/fibers.h"

namespace tutti::fibers {

/// A team of one thread that lets the explorer choose before it touches what others see.
class FiberTarget {
 public:
  [[nodiscard]] static int thread() { return 0; }
  [[nodiscard]] static int threads() { return 1; }
  static void barrier() {}
  static bool any(bool vote) { return vote; }

  static std::uint64_t load_acquire(const std::uint64_t* word) {
    Fiber::stop(Stop::ready);
    return *word;
  }
  static std::uint64_t load_relaxed(const std::uint64_t* word) { return load_acquire(word); }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    Fiber::stop(Stop::ready);
    *word = value;
  }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static std::uint64_t load_acquire_afar(const std::uint64_t* word) { return load_acquire(word); }
  static void store_release_afar(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static void store_release_to_host(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static bool swap_if(std::uint64_t* word, std::uint64_t expected, std::uint64_t value) {
    Fiber::stop(Stop::ready);
    if (*word != expected) return false;
    *word = value;
    return true;
  }
  static std::uint64_t now_ns() { return 1; }  // no wait is too long
  static void pause() { Fiber::stop(Stop::paused); }
};

struct Exploration {
  std::size_t states = 0;
  std::size_t ends = 0;   ///< in which all fibers are over
  std::string violation;  ///< empty: nothing is wrong
  std::string path;       ///< the fibers that took the steps until then
};

class FiberExplorer {
 public:
  /// `memory` is all that fibers share and own but for their stacks. `check` says what is wrong now, `is_end`: where
  /// all are over.
  using Check = std::function<std::string(bool is_end)>;
  FiberExplorer(std::span<std::byte> memory, std::vector<std::unique_ptr<Fiber>>& fibers, Check check)
      : memory_(memory), fibers_(fibers), check_(std::move(check)) {}

  [[nodiscard]] Exploration explore() {
    visit();
    found_.states = known_.size();
    return found_;
  }

 private:
  static constexpr std::size_t kMostStates = 3'000'000;

  struct State {
    std::vector<std::byte> memory;
    std::vector<Fiber::Position> positions;

    [[nodiscard]] std::size_t hash() const {
      std::size_t all = std::hash<std::string_view>()({reinterpret_cast<const char*>(memory.data()), memory.size()});
      for (const Fiber::Position& one : positions) all = (all ^ Fiber::hash_of(one)) * 0x9e3779b97f4a7c15ULL;
      return all;
    }
  };
  [[nodiscard]] State state() const {
    State now{.memory = {memory_.begin(), memory_.end()}, .positions = {}};
    for (const auto& fiber : fibers_) now.positions.push_back(fiber->position());
    return now;
  }
  void go_back(const State& then) {
    std::memcpy(memory_.data(), then.memory.data(), then.memory.size());
    for (std::size_t i = 0; i < fibers_.size(); ++i) fibers_[i]->go_back(then.positions[i]);
  }

  /// False once something wrong was found.
  bool visit() {
    const State here = state();
    if (!known_.insert(here.hash()).second) return true;
    if (known_.size() > kMostStates) return stop("more states than the explorer takes");
    std::size_t over = 0, steps = 0;
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (here.positions[i].stop == Stop::over) {
        ++over;
        continue;
      }
      go_back(here);
      if (fibers_[i]->resume() == Stop::paused) continue;
      ++steps;
      path_ += static_cast<char>('0' + i);
      const std::string wrong = check_(false);
      if (!wrong.empty()) return stop(wrong);
      if (!visit()) return false;
      path_.pop_back();
    }
    if (steps > 0) return true;
    go_back(here);
    if (over < fibers_.size()) return stop("deadlock: no rank can go on");
    ++found_.ends;
    const std::string wrong = check_(true);
    return wrong.empty() || stop(wrong);
  }

  bool stop(const std::string& violation) {
    found_.violation = violation;
    found_.path = path_;
    return false;
  }

  std::span<std::byte> memory_;
  std::vector<std::unique_ptr<Fiber>>& fibers_;
  Check check_;
  std::unordered_set<std::size_t> known_;
  std::string path_;
  Exploration found_;
};

}  // namespace tutti::fibers

// SPDX-License-Identifier: Apache-2.0
// Order: which rank takes the next step where all ranks are tasks of one thread, drawn from a seed.
//
// Round robin lets every rank come almost at once. So a fault that needs a rank to be late, or ahead of the others,
// never shows. Order holds a rank back for any time, from not at all to until no other rank can go on. Its policies
// change as the run goes. A rank may stop at any wait, also at one that is over. Nothing else is drawn, so the same
// seed gives the same steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/execute/pace.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// The pace of all ranks of its runner. One thread.
class Order final : public Pace {
 public:
  /// How the next rank is chosen among those that can go on.
  enum class Policy : std::uint8_t {
    random,
    reversed,    ///< in turn, from the last rank to the first
    starved,     ///< at random, but one rank only where nobody else can go on
    priorities,  ///< the first in a list that is drawn; now and then the chosen one becomes its last
    persistent,  ///< the same one until it cannot go on
  };
  static constexpr int kPolicies = 5;

  Order(std::uint64_t seed, int ranks);

  /// What follows is a function of the seed and `what` alone: a case has the same order by itself as among others.
  void begin(std::string_view what);

  struct Actions {
    /// One look at a rank of the runner, by index; true where it has nothing more to do.
    std::function<Result<bool>(std::size_t index)> step;
    /// For messages: where a rank stands that is not done.
    std::function<std::string(std::size_t index)> position;
    /// Now and then. An error ends it all.
    std::function<Status()> look_around;
  };
  /// Takes steps until all ranks are done. Errors: those of the actions; timeout, at once, where no rank can go on.
  Status drive(const Actions& actions);

  /// Of all steps so far: how many, and a hash of which ranks took them and what came of them.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

  [[nodiscard]] bool holds_back() override;
  void went_on() override { has_gone_on_ = true; }

 private:
  void draw_policy();
  /// The rank that takes the next step, by index; empty where no rank can go on.
  [[nodiscard]] std::optional<std::size_t> choose();
  void take_note(std::size_t index, bool is_done);
  [[nodiscard]] std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  std::uint64_t seed_;
  std::size_t ranks_;
  std::mt19937_64 random_;
  std::uint64_t steps_ = 0;
  std::uint64_t trace_ = 0;

  Policy policy_ = Policy::random;
  std::uint64_t steps_of_policy_ = 0;    ///< that are left
  std::uint64_t held_eighths_ = 0;       ///< of the waits that are over, on the way of most ranks
  std::size_t victim_ = 0;               ///< the starved one
  std::vector<std::size_t> priorities_;  ///< indices, the first one first

  std::vector<bool> is_done_;
  std::vector<bool> is_stuck_;     ///< could not go on, and nobody has gone on since
  std::vector<std::size_t> able_;  ///< those that are neither
  std::size_t last_ = 0;
  bool has_gone_on_ = false;  ///< in this step
  bool was_held_ = false;
};

}  // namespace tutti::harness::measure

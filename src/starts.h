// SPDX-License-Identifier: Apache-2.0
// Starts: the starts of the ranks that a request takes, one after the other, and what is left of them once a reference
// cannot be started.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "src/references.h"

namespace tutti::program {

using Cells = std::vector<std::vector<harness::Case>>;

/// Whether it is a case of tutti, or of its twin.
[[nodiscard]] bool is_own(const harness::Case& one);

/// One start of the ranks.
struct Start {
  int number = 1;         ///< among all starts, from 1
  std::size_t first = 0;  ///< of its cells, among those of all starts
  Starter starter;
  Cells cells;  ///< of one number of ranks and transport
};

/// Each launch starts each number of ranks on each transport with each starter. A starter runs all own cases and those
/// of its references.
class Starts {
 public:
  /// `cells` are sorted by ranks. From two launches on, each has them in another order, drawn from `seed`.
  Starts(std::span<const std::vector<harness::Case>> cells, int launches, std::uint64_t seed,
         std::vector<Starter> starters);

  /// Goes to the next start; the first call to the first one. Empty: there are no more.
  [[nodiscard]] std::optional<Start> next();
  /// How many starts there are, those that were left out included.
  [[nodiscard]] int count() const { return static_cast<int>(all_.size()); }
  /// The cells of all starts that are over, at hand and to come.
  [[nodiscard]] std::size_t cells() const { return cells_; }
  /// The cells of the starts to come.
  [[nodiscard]] std::size_t cells_after() const { return cells_ - first_ - at_hand_; }

  /// The starter at hand is used no more.
  void leave_out_starter();
  /// The starter at hand goes on without `references`, and its start is repeated. A starter without any reference left
  /// is used no more. If no other one is left, tutti itself starts the ranks in its place. Returns how many cases of
  /// these references are not run.
  std::size_t give_up(const std::vector<std::string>& references);

 private:
  struct Position {
    std::size_t place = 0;    ///< index
    std::size_t starter = 0;  ///< index
  };
  [[nodiscard]] Cells share_of(const Position& at) const;
  [[nodiscard]] std::size_t size_of(const Position& at) const;
  [[nodiscard]] bool has_other_starter(std::size_t than) const;
  void count_again();

  std::vector<Starter> starters_;
  std::vector<bool> is_over_;  ///< [starter]
  std::vector<Cells> places_;  ///< cells of one launch, number of ranks and transport
  std::vector<Position> all_;
  std::size_t next_ = 0;     ///< index in all_
  std::size_t first_ = 0;    ///< cell of the start at hand
  std::size_t at_hand_ = 0;  ///< cells of the start at hand
  std::size_t cells_ = 0;
};

}  // namespace tutti::program

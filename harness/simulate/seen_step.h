// SPDX-License-Identifier: Apache-2.0
// A step as its rank sees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::simulate {

/// What a step costs and whom it concerns, seen from its rank. Two steps that are equal here take equally long.
struct SeenStep {
  Verb verb = Verb::move;
  int phase = 0;
  RankSet ranks;  ///< `first` counts from the rank
  std::int64_t length = 0;
  int operands = 0, remote = 0, stores = 0, stores_elsewhere = 0;
  std::array<int, 4> from{}, to{};  ///< channels, as distances; 0: none

  bool operator==(const SeenStep&) const = default;
};

/// Sees the steps of one schedule.
class Viewer {
 public:
  explicit Viewer(const Schedule& schedule) : schedule_(schedule), ranks_(schedule.problem.ranks) {}

  [[nodiscard]] SeenStep seen(int rank, int index) const {
    const Step step = schedule_.step(rank, index);
    SeenStep seen{.verb = step.verb, .phase = step.phase};
    if (step.verb != Verb::move) {
      seen.ranks = step.ranks;
      seen.ranks.first = distance(rank, step.ranks.first);
      return seen;
    }
    std::size_t channels = 0;
    for (const Operand& source : step.sources) {
      seen.operands += source.ranks.n;
      if (source.space == Space::channel) {
        seen.from[channels++] = distance(rank, source.ranks.first);
        continue;
      }
      seen.remote += source.ranks.n - (contains(source.ranks, rank) ? 1 : 0);
    }
    channels = 0;
    for (const Operand& destination : step.destinations) {
      if (destination.space == Space::channel) {
        seen.to[channels++] = distance(rank, destination.ranks.first);
        continue;
      }
      seen.stores += destination.ranks.n;
      seen.stores_elsewhere += destination.ranks.n - (contains(destination.ranks, rank) ? 1 : 0);
    }
    seen.length = length_of(step);
    return seen;
  }

  [[nodiscard]] int distance(int from, int to) const { return to >= from ? to - from : to - from + ranks_; }

 private:
  [[nodiscard]] bool contains(const RankSet& set, int rank) const {
    if (set.n == ranks_ && set.stride == 1) return true;
    for (int i = 0; i < set.n; ++i) {
      if (set.at(i, ranks_) == rank) return true;
    }
    return false;
  }

  const Schedule& schedule_;
  int ranks_;
};

}  // namespace tutti::harness::simulate

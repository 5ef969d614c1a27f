// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/symmetry.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::simulate {
namespace {

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
    std::int64_t length = -1;
    std::size_t channels = 0;
    for (const Operand& source : step.sources) {
      seen.operands += source.ranks.n;
      if (source.space == Space::channel) {
        seen.from[channels++] = distance(rank, source.ranks.first);
        continue;
      }
      length = std::max(length, count_of(source.units));
      seen.remote += source.ranks.n - (contains(source.ranks, rank) ? 1 : 0);
    }
    channels = 0;
    for (const Operand& destination : step.destinations) {
      if (destination.space == Space::channel) {
        seen.to[channels++] = distance(rank, destination.ranks.first);
        continue;
      }
      length = std::max(length, count_of(destination.units));
      seen.stores += destination.ranks.n;
      seen.stores_elsewhere += destination.ranks.n - (contains(destination.ranks, rank) ? 1 : 0);
    }
    seen.length = length >= 0 ? length : count_of(step.as_long_as.units);
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

class Comparison {
 public:
  explicit Comparison(const Schedule& schedule)
      : schedule_(schedule), viewer_(schedule), ranks_(schedule.problem.ranks) {}

  /// Whether rank r + `period` seems to do what rank r does, for all of them.
  bool repeats(int period) {
    // Few steps of every rank first: most schedules that do not repeat differ there.
    statistics::SplitMix random(1);
    for (int rank = period; rank < ranks_; ++rank) {
      const int stands_for = rank % period, steps = schedule_.step_count(rank);
      if (steps != schedule_.step_count(stands_for)) return false;
      if (steps == 0) continue;
      for (const int index :
           {0, steps - 1, steps / 2, static_cast<int>(random.below(static_cast<std::size_t>(steps)))}) {
        if (viewer_.seen(rank, index) != viewer_.seen(stands_for, index)) return false;
      }
    }
    const int blocks = ranks_ / period;
    for (const int block : {1, blocks / 2, blocks - 1}) {
      for (int rank = 0; rank < period; ++rank) {
        for (int index = 0; index < schedule_.step_count(rank); ++index) {
          if (viewer_.seen(block * period + rank, index) != viewer_.seen(rank, index)) return false;
        }
      }
    }
    return true;
  }

 private:
  const Schedule& schedule_;
  Viewer viewer_;
  int ranks_;
};

}  // namespace

int period_of(const Schedule& schedule, const Machine& machine) {
  const int ranks = schedule.problem.ranks;
  // Near and far ranks lie alike from each rank of the same place on its node; on one node all are near.
  const bool is_one_node = ranks <= machine.ranks_per_node;
  const Network& network = machine.network;
  if (!machine.faults.empty()) return 0;
  if (!is_one_node && (network.placing != Placing::contiguous || network.shape == Shape::torus)) return 0;
  const int leaf = network.has_leaves() ? network.leaf : 1;
  if (!is_one_node && network.nodes > 0 && network.shape == Shape::dragonfly &&
      network.nodes * machine.ranks_per_node != ranks) {
    return 0;  // groups without ranks: not every distance between groups is there from each of them
  }
  const int of_machine = is_one_node ? 1 : machine.ranks_per_node * leaf;
  if (ranks % of_machine != 0 || of_machine == ranks) return 0;
  Comparison comparison(schedule);
  // What repeats after one rank repeats after any number of them, and is compared sooner.
  if (comparison.repeats(1)) return of_machine;
  const int node = is_one_node ? 1 : machine.ranks_per_node;
  return node > 1 && comparison.repeats(node) ? of_machine : 0;
}

}  // namespace tutti::harness::simulate

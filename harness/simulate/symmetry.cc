// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/symmetry.h"

#include <algorithm>

#include "harness/simulate/seen_step.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::simulate {
namespace {

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

Symmetry symmetry_of(const Schedule& schedule, const Machine& machine) {
  const int ranks = schedule.problem.ranks;
  const bool is_one_node = ranks <= machine.ranks_per_node;
  const Network& network = machine.network;
  if (!machine.faults.empty()) return {};
  if (!is_one_node && (network.placing != Placing::contiguous || network.shape == Shape::torus)) return {};
  const int leaf = network.has_leaves() ? network.leaf : 1;
  if (!is_one_node && network.nodes > 0 && network.shape == Shape::dragonfly &&
      network.nodes * machine.ranks_per_node != ranks) {
    return {};  // groups without ranks: not every distance between groups is there from each of them
  }
  const bool has_caches = is_one_node && machine.ranks_per_cache > 0 && machine.ranks_per_cache < ranks;
  const int node = has_caches ? machine.ranks_per_cache : is_one_node ? 1 : machine.ranks_per_node;
  const int period = is_one_node ? node : node * leaf;
  if (ranks % period != 0 || period == ranks) return {};
  Comparison comparison(schedule);
  // What repeats after one rank repeats after any number of them, and is compared sooner.
  if (comparison.repeats(1)) return {.period = period, .alike = 1};
  if (node > 1 && comparison.repeats(node)) return {.period = period, .alike = node};
  return {};
}

}  // namespace tutti::harness::simulate

// SPDX-License-Identifier: Apache-2.0
// Two stages in which all nodes send and receive at once. In *shifts* every node sends to the one that is D further on,
// for many D. In *rings* the nodes stand in orders that are drawn. A slow node is slow in every order. What its
// neighbours lose with it moves on with the next order.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/accept/schedule.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// The rounds of a stage: [visit][round] is a list of rings that play at once.
using RingVisits = std::vector<std::vector<std::vector<Group>>>;

/// Visits of shifts: each distance at least once, or 63 of them if there are more. They are dealt to two visits by
/// `seed`; each visit has eight rounds at least. Requires three nodes.
[[nodiscard]] RingVisits visits_of_shifts(const std::vector<int>& nodes, std::uint64_t seed);
/// Visits of rings: two, of eight orders. Requires three nodes.
[[nodiscard]] RingVisits visits_of_rings(std::vector<int> nodes, std::uint64_t seed);

class Rings {
 public:
  /// `stage` names it to the observer and in findings. All outlive it.
  Rings(Crew& crew, const PairsPlan& plan, std::string stage, Observer& observer);
  /// Plays all visits. Ends early if the observer is stopped, or once a round fails.
  void run(const RingVisits& visits);
  /// Adds nodes and uplinks that are slow only when all play, and rings that failed.
  void add_to(Findings& findings) const;

 private:
  void take(const std::vector<Group>& rings, const std::vector<std::vector<Outcome>>& outcomes);
  void add_slow(Findings& findings) const;

  Crew& crew_;
  const PairsPlan& plan_;
  std::string stage_;
  Observer& observer_;
  std::vector<std::vector<std::vector<double>>> visits_;  ///< [node][visit]
  std::vector<Finding> failed_;
};

}  // namespace tutti::harness::accept

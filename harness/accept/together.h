// SPDX-License-Identifier: Apache-2.0
// The stage in which all nodes play at once, each with a partner, both ways, in orders that are drawn. A slow node is
// slow with every partner; what a partner loses with it moves on with the next order.
#pragma once

#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/accept/schedule.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class Together {
 public:
  static constexpr int kVisits = 2;
  static constexpr int kOrders = 8;  ///< of a visit

  /// `nodes` play: at least 3 (asserted). All outlive it.
  Together(Crew& crew, const PairsPlan& plan, std::vector<int> nodes, Observer& observer);
  /// Plays all visits. Ends early if the observer is stopped, or once a round fails.
  void run();
  /// Adds nodes and uplinks that are slow only when all play, and a round that failed.
  void add_to(Findings& findings) const;

 private:
  void take(const Group& group, const Outcome& outcome);
  void add_slow(Findings& findings) const;

  Crew& crew_;
  const PairsPlan& plan_;
  std::vector<int> nodes_;
  Observer& observer_;
  std::vector<std::vector<std::vector<double>>> visits_;  ///< [node][visit]
  std::vector<Finding> failed_;
  int rounds_ = 0;
};

}  // namespace tutti::harness::accept

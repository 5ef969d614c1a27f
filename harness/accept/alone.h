// SPDX-License-Identifier: Apache-2.0
// The stage in which each node plays by itself, all at once. It plays before the pairs, so that a node that computes
// wrongly or does not answer stays out of them, and once more after the other stages.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class Alone {
 public:
  static constexpr int kVisits = 2;
  static constexpr int kRepeats = 8;  ///< rounds of a visit

  /// `sizes`: of all_reduces within a node, in bytes. The largest is judged. All outlive it.
  Alone(Crew& crew, const PairsPlan& plan, std::vector<std::size_t> sizes, Observer& observer);
  /// Several rounds in which all nodes play at once. A difference is to the median of the others in the round.
  void visit();
  /// Nodes that must not play on: they did not answer, hung or computed wrongly.
  [[nodiscard]] std::vector<int> lost() const;
  /// Those of them that have sent no wrong data.
  [[nodiscard]] std::vector<int> dead() const;
  /// The findings have `configuration` in place of the loss of its members, which stay lost.
  void acquit(Finding configuration) { acquitted_ = std::move(configuration); }
  /// What each node plays; the one that is judged is the last.
  [[nodiscard]] const std::vector<Test>& tests() const { return tests_; }
  /// Adds what this stage found to what the others say.
  void add_to(Findings& findings) const;

 private:
  /// Plays the groups, and returns a failure of each, or else what is judged. One that fails plays a second time, and
  /// that counts.
  [[nodiscard]] std::vector<Outcome> play(const std::vector<Group>& groups);
  [[nodiscard]] std::vector<Outcome> play_once(const std::vector<Group>& groups);
  void take(const std::vector<Group>& groups, const std::vector<Outcome>& outcomes);
  /// Whether they are so many that speeds alone cannot say which nodes are right. Faults differ, and are few.
  [[nodiscard]] bool are_a_kind(const std::map<int, Judgement>& slow) const;

  Crew& crew_;
  const PairsPlan& plan_;
  std::vector<Test> tests_;
  Observer& observer_;
  std::vector<int> there_;
  std::vector<std::vector<std::vector<double>>> visits_;  ///< [node][visit]
  std::map<int, Finding> lost_;
  std::optional<Finding> acquitted_;  ///< of those that are not to blame
  int rounds_ = 0;
};

}  // namespace tutti::harness::accept

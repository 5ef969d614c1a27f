// SPDX-License-Identifier: Apache-2.0
// Plays pairs, and keeps who is lost: nodes that do not answer, pairs that hang or send wrong data. What is lost plays
// no more. Who failed once is tried with nodes that never failed, to tell a dead node from a pair that hangs.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class PairPlayer {
 public:
  /// `crew` outlives it. `is_stopped` is asked before each play.
  PairPlayer(Crew& crew, const PairsPlan& plan, std::function<bool()> is_stopped);

  /// Nodes that play, in their order: those that are there and not skipped.
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<int>& leaves() const { return leaves_; }  ///< by node of the crew
  void set_leaves(std::vector<int> leaves) { leaves_ = std::move(leaves); }
  [[nodiscard]] bool is_far(int one, int other) const {
    return leaves_[static_cast<std::size_t>(one)] != leaves_[static_cast<std::size_t>(other)];
  }

  /// The logarithms of the speeds, [pair][test], or NaN of a pair that is lost. Pairs are disjoint.
  [[nodiscard]] std::vector<std::vector<double>> play(const Round& pairs, const std::vector<Test>& tests);
  /// In both directions: {bandwidth, back} of each pair.
  [[nodiscard]] std::vector<std::vector<double>> play_both_ways(const Round& pairs);
  void pause() { crew_.pause(); }
  /// The speeds of nodes by themselves; NaN if it did not end well.
  [[nodiscard]] std::vector<double> play_alone(const std::vector<int>& nodes, std::size_t bytes);

  [[nodiscard]] bool is_stopped() const { return is_stopped_(); }
  [[nodiscard]] int plays() const { return plays_; }
  /// A node that does not answer.
  [[nodiscard]] bool is_lost(int node) const { return lost_.contains(node); }
  [[nodiscard]] bool has_failed(int node) const { return failed_with_.contains(node); }
  [[nodiscard]] bool is_lost(int one, int other) const;

  /// Dead nodes, pairs that hang, and wrong data.
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  using Pair = std::pair<int, int>;  ///< the smaller node first

  [[nodiscard]] std::vector<std::vector<Outcome>> play_groups(const Round& pairs, const std::vector<Test>& tests);
  void take_failure(const Transfer& pair, const Test& test, const Outcome& outcome);
  void try_with_thirds();
  /// A pair that failed, with nodes that are not dead, plays once more.
  void try_again();

  Crew& crew_;
  const PairsPlan& plan_;
  std::function<bool()> is_stopped_;
  std::vector<int> nodes_;
  std::vector<int> leaves_;
  std::set<int> lost_;
  std::set<Pair> lost_pairs_;
  std::map<int, std::set<int>> failed_with_;  ///< by node
  std::map<int, std::vector<int>> thirds_;    ///< by node: with whom it was tried then
  std::map<Pair, bool> works_again_;          ///< of those that failed: whether it did when it played once more
  std::map<Pair, std::string> wrong_;         ///< by sender and receiver
  std::map<int, std::string> details_;        ///< by node: the last error
  int plays_ = 0;
};

}  // namespace tutti::harness::accept

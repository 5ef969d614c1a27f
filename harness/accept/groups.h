// SPDX-License-Identifier: Apache-2.0
// Three stages on groups of nodes, in which every result is verified. *groups* plays all_reduce and all_to_all on 2, 4,
// 8, ... and all nodes, and on each leaf. *soak* plays drawn mixes of operations on all nodes, for some time. *job*
// trains a small network on all nodes, or runs a command of the user's. If a group fails, parts of it play: the finding
// names the smallest group that still fails.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// What the groups of one size came to in one test.
struct SizeFigures {
  int nodes = 0;         ///< of a group
  Test test = {};        ///< all_reduce or all_to_all
  double log_speed = 0;  ///< the median over groups and rounds
  int groups = 0;        ///< that were measured
};

class GroupsStage {
 public:
  static constexpr int kVisits = 2;
  static constexpr int kOrders = 4;  ///< of a visit: the nodes of a group are drawn anew

  /// `nodes` play: at least 2 (asserted). All outlive it.
  GroupsStage(Crew& crew, const PairsPlan& plan, std::vector<int> nodes, Observer& observer);
  /// Plays all sizes and leaves, each through `tests`. Ends early if the observer is stopped, or once a group fails.
  void run(const std::vector<Test>& tests);
  /// Plays mixes on all nodes until they have taken `seconds`, once at least.
  void soak(double seconds);
  /// Trains a network on all nodes, three times.
  void train();
  /// Runs the user's command on all nodes, once.
  void run_command();
  /// Adds groups that failed, and nodes that are slow in groups.
  void add_to(Findings& findings) const;
  /// By size, the smallest first, and test.
  [[nodiscard]] std::vector<SizeFigures> figures() const;
  /// Operations of soaks that were verified.
  [[nodiscard]] long long soaked_operations() const { return soaked_operations_; }
  /// The median of the trainings; 0: there was none.
  [[nodiscard]] double steps_per_second() const { return steps_per_second_; }
  /// How long the command took; 0: there was none, or it failed.
  [[nodiscard]] double command_seconds() const { return command_seconds_; }

 private:
  using Outcomes = std::vector<std::vector<Outcome>>;

  void play_round(const std::vector<Group>& groups, const std::vector<Test>& tests);
  /// Keeps failures; returns whether there is one.
  bool take_failures(const std::vector<Group>& groups, const std::vector<Test>& tests, const Outcomes& outcomes);
  void take_speeds(const std::vector<Group>& groups, const std::vector<Test>& tests, const Outcomes& outcomes);
  /// A small group within `group` that fails in `test` too. Source: Zeller & Hildebrandt, Simplifying and isolating
  /// failure-inducing input, IEEE Transactions on Software Engineering 28, 2002 (ddmin).
  [[nodiscard]] Finding narrowed(Group group, const Test& test, Outcome outcome);

  Crew& crew_;
  const PairsPlan& plan_;
  std::vector<int> nodes_;
  Observer& observer_;
  std::vector<std::vector<std::vector<double>>> visits_;  ///< [node][visit]
  std::vector<std::vector<double>> speeds_;               ///< by figures
  std::vector<SizeFigures> figures_;
  std::vector<Finding> failed_;
  long long soaked_operations_ = 0;
  double steps_per_second_ = 0;
  double command_seconds_ = 0;
  std::size_t least_bytes_ = 0;  ///< of an all_reduce whose speed is judged
};

/// Short ones, of one message of `bytes`, and of sixteen: a small group that fails is found before all nodes wait for
/// it.
[[nodiscard]] std::vector<Test> usual_group_tests(std::size_t bytes);

/// The sizes of groups of `nodes` nodes: 2, 4, 8, ... and all.
[[nodiscard]] std::vector<int> group_sizes(int nodes);

}  // namespace tutti::harness::accept

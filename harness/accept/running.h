// SPDX-License-Identifier: Apache-2.0
// What the tests of an acceptance look like while it goes on: how each compares with those that were alike, which node
// is slow so far, which pairs have failed. No verdict comes of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class Running {
 public:
  /// `margin`: a test is slow that is slower than those alike by more. `crew` outlives it.
  Running(const Crew& crew, double margin);

  /// By [group][test], the logarithm of the ratio to the median of those alike: of this play if there are three, else
  /// of all plays so far. Empty: there are too few, or nothing was measured.
  [[nodiscard]] std::vector<std::vector<std::optional<double>>> add(const std::vector<Group>& groups,
                                                                    const std::vector<Test>& tests,
                                                                    const std::vector<std::vector<Outcome>>& outcomes);
  [[nodiscard]] bool is_slow(double of_alike) const;

  /// "; node17 sends slowly in 9 of 9 tests so far (no verdict); node22 - node40 failed, goes on"; empty: all looks
  /// well.
  [[nodiscard]] std::string news() const;

 private:
  /// Measure, bytes, rail, whether it is bare, nodes of the group, whether they are of several leaves.
  using Kind = std::tuple<Measure, std::size_t, int, bool, std::size_t, bool>;

  [[nodiscard]] Kind kind_of(const Group& group, const Test& test) const;
  void count(const Group& group, const Test& test, double of_alike);
  /// What a node does: it sends, receives or plays alone.
  enum class Way { out, in, alone };

  struct Tests {
    int slow = 0, all = 0;
  };
  const Crew& crew_;
  double least_;                                      ///< the logarithm of a ratio that is not slow
  std::map<Kind, std::vector<double>> so_far_;        ///< log_speeds
  std::map<std::tuple<int, Way, int>, Tests> tests_;  ///< by node, what it does, and rail
  std::set<Group> failed_;  ///< that did not end, or had wrong data; their nodes in rising order
};

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
// Whether a library is slow, or fails, where the bare transport between the same nodes is well: then its configuration
// is to blame, and no hardware. Both play the same groups in turns, beside good nodes, so that what a moment costs hits
// both alike.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/findings.h"
#include "harness/accept/verdict.h"
#include "harness/floors.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::accept {

/// The speed of the library over that of the bare transport, in an all_reduce on all nodes.
struct LibraryRatio {
  /// `fail`: the whole interval is below half of the bare transport's speed. Libraries differ by less without a
  /// mistake.
  Judgement judgement;
  std::size_t bytes = 0;
  std::vector<int> nodes = {};
};

class Configuration {
 public:
  static constexpr int kLeastVisits = 2, kMostVisits = 4;
  static constexpr int kTurns = 12;  ///< of a visit

  /// `good` nodes play beside those of a finding. All outlive it.
  Configuration(Crew& crew, const PairsPlan& plan, std::vector<int> good, Observer& observer);
  /// What the library failed in is a matter of configuration if the library fails again and the bare transport passes.
  /// Empty: it is not, or nothing can be said.
  [[nodiscard]] std::optional<Finding> of(const Finding& finding);
  /// As `of`, of nodes that fail by themselves in one of `tests`. The members are those that are well without the
  /// library. All play at once.
  [[nodiscard]] std::optional<Finding> of_alone(const std::vector<int>& nodes, const std::vector<Test>& tests);
  /// The speeds of the library and the bare transport on all good nodes. Empty: there are fewer than two, or one of
  /// both failed.
  [[nodiscard]] std::optional<LibraryRatio> ratio();
  [[nodiscard]] static Finding finding_of(const LibraryRatio& ratio);

 private:
  /// The outcomes of both systems, of all groups at once, one system after the other.
  struct Both {
    std::vector<Outcome> library, bare;
  };
  [[nodiscard]] Both play(const std::vector<Group>& groups, Test test);
  [[nodiscard]] Test test_of(const Finding& finding) const;
  [[nodiscard]] std::optional<Finding> of_slow(const Finding& finding);
  [[nodiscard]] std::optional<Finding> of_failed(const Finding& finding);
  /// The group of the suspects, completed to two nodes, and then groups of two good nodes to compare it with: within a
  /// leaf if that is, between leaves if it is not. Empty: there are too few nodes.
  [[nodiscard]] std::vector<Group> beside(const Group& suspects);

  Crew& crew_;
  const PairsPlan& plan_;
  std::vector<int> good_;
  Observer& observer_;
  SplitMix random_;
  int turns_ = 0;  ///< so far; the one that begins changes
};

}  // namespace tutti::harness::accept

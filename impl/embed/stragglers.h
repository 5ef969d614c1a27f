// SPDX-License-Identifier: Apache-2.0
// Which ranks the others wait for. A straggler comes last to operations more often than its share of the ranks, and the
// waits for it cost a part of the time. Both are needed: of ranks that come a little apart, one is always last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "impl/types/visibility.h"

namespace tutti::embed {

/// What operations have shown of one rank.
struct TUTTI_API RankArrivals {
  std::int64_t last = 0;  ///< operations to which it came last
  double waited = 0;      ///< in these, how long another rank waited for it: the mean of the others, added up
};

/// The rank that came last to an operation.
struct LastRank {
  int rank = 0;
  double waited = 0;  ///< how long another rank waited for it: the mean of the others
};

/// What operations have shown of all ranks. All times have one unit, which their user chooses.
struct TUTTI_API Arrivals {
  std::int64_t operations = 0;
  double time = 0;  ///< of all operations
  std::vector<RankArrivals> ranks = {};

  /// Counts an operation that took `took`. `came` holds when each rank came, by rank, on one clock. Ranks whose mean
  /// wait for the last one is at most `apart` came together: no rank was last. Returns the rank that was. Requires: as
  /// many ranks as before.
  std::optional<LastRank> add(std::span<const double> came, double took, double apart = 0);
  /// Counts the operations of `other` as well. Requires: the same number of ranks, or none here or there.
  void add(const Arrivals& other);
};

/// A rank in the order of what it cost.
struct TUTTI_API Straggler {
  int rank = 0;
  std::int64_t last = 0;  ///< operations to which it came last
  double share = 0;       ///< of the time, that another rank waited for it
  double chance = 1;      ///< that a rank is last so often if all are alike
  bool is_one = false;    ///< chance is below kStragglerChance and share above kStragglerShare
};
inline constexpr double kStragglerChance = 0.001;
inline constexpr double kStragglerShare = 0.02;

/// All ranks, the costliest first; of equal ones the lower rank first.
[[nodiscard]] TUTTI_API std::vector<Straggler> stragglers_of(const Arrivals& arrivals);

/// P(X >= least) of a binomial distribution of `trials` with probability `share` each, from 0 to 1.
[[nodiscard]] TUTTI_API double binomial_tail(std::int64_t trials, std::int64_t least, double share);

}  // namespace tutti::embed

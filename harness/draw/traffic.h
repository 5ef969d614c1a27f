// SPDX-License-Identifier: Apache-2.0
// What many ranks send, counted: how far, in which round, and between which parts of the ranks.
#pragma once

#include <vector>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::draw {

inline constexpr int kMostTiles = 64;  ///< on a side of the map
inline constexpr int kMostBins = 64;   ///< of rounds

struct Traffic {
  Problem problem;
  int rounds = 0;
  int bins = 0;      ///< rounds lie in so many columns
  int tiles = 0;     ///< on a side of the map
  int followed = 0;  ///< ranks: all, or one of each tile's row if there are too many steps
  /// [distance class][bin]: units a round. Class c is of distances 2^c to 2^(c+1) - 1, the shorter kind around.
  std::vector<std::vector<double>> by_distance;
  std::vector<std::vector<double>> map;  ///< [tile of the sender][tile of the receiver]: units
  double units = 0;
  double messages = 0;
};

/// Follows all ranks, or, beyond some millions of steps, every rank of a sample in the order of its own program.
/// Errors: refuted if a rank never gets on.
[[nodiscard]] Result<Traffic> traffic_of(const Schedule& schedule);

}  // namespace tutti::harness::draw

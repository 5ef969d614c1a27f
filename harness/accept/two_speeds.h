// SPDX-License-Identifier: Apache-2.0
// Whether a fleet has nodes of two speeds, as two generations of hardware have. A pair is as fast as its slower node:
// pairs of two fast nodes are at one level, all others at a lower one. A nic, a link or an uplink makes no such
// picture.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/pair_player.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Levels are logarithms of ratios to pairs of two fast nodes.
struct TwoSpeeds {
  std::vector<int> slower;  ///< nodes, ascending; at least one
  int faster = 0;           ///< how many; at least two
  double difference = 0;    ///< below 0
  double out = 0, in = 0;   ///< what slower nodes send to faster ones, and receive from them: medians
  double spread = 0;        ///< of the slower nodes: a standard deviation
  double doubt = 0;         ///< the standard error of one node's level, from what the groups leave unexplained
  double gap = 0;  ///< between the groups, as a share of the difference: two halves of one distribution have 0.16
};

/// The two groups that explain the cells best. Nothing if there are fewer than four nodes, or no difference. Nodes that
/// are lost do not count, nor do those of `without`.
[[nodiscard]] std::optional<TwoSpeeds> two_speeds_of(const Matrix& cells, const PairPlayer& player,
                                                     const std::set<int>& without = {});

}  // namespace tutti::harness::accept

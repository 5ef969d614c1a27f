// SPDX-License-Identifier: Apache-2.0
// A fleet of two speeds is no fault of its slower nodes.
#pragma once

#include <optional>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/findings.h"
#include "harness/accept/pair_player.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// The fleet has two speeds: speeds alone do not say which of them is right.
struct Split {
  Finding finding;
  std::vector<int> outliers = {};  ///< nodes that are slower than both kinds
  bool is_sure = false;            ///< they differ by more than the margin; else it is a split if it explains a culprit
};
[[nodiscard]] std::optional<Split> split_of(const Matrix& cells, const PairPlayer& player, const Limits& limits);

/// The outliers, undecided: no repeats tell their class. `relative`: cells less the fleet's level.
[[nodiscard]] std::vector<Finding> outliers_of(const Split& split, const Matrix& relative, const Limits& limits);

/// Takes out the culprits that are no slower than their group, if one of these has failed. Returns whether it has.
[[nodiscard]] bool explains(const Split& split, std::vector<Finding>& culprits, const PairPlayer& player,
                            const Limits& limits);

}  // namespace tutti::harness::accept

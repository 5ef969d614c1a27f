// SPDX-License-Identifier: Apache-2.0
// Finds the nodes of each leaf switch if nobody has told them. Pairs within a leaf may be faster than others.
#pragma once

#include <optional>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/verdict.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// The leaf of each node, numbered in the order of the nodes. `cells`: of bandwidths, or of latencies. None: the cells
/// show no leaves. They do if they have two levels, further apart than the margin; if the pairs of the faster level
/// make groups of two nodes and more, with few exceptions; and if two groups are slower with each other than each of
/// them within. Two kinds of nodes are not: the slower kind is slow within as well.
[[nodiscard]] std::optional<std::vector<int>> leaves_by_speed(const Matrix& cells, const std::vector<int>& nodes,
                                                              const Limits& limits);

}  // namespace tutti::harness::accept

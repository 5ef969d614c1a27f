// SPDX-License-Identifier: Apache-2.0
// Which parts the first pass makes suspects. Coarse parts come first: uplinks, then nodes, then links. Each is judged
// by cells whose other parts are good, since what is slow twice is not slower.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/findings.h"
#include "harness/accept/schedule.h"
#include "harness/accept/verdict.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Which way a suspect is slow.
enum class Way { out, in };
inline constexpr std::array kWays{Way::out, Way::in};

/// A number for each way.
struct BothWays {
  double out = 0, in = 0;
  [[nodiscard]] double& of(Way way) { return way == Way::out ? out : in; }
  [[nodiscard]] double of(Way way) const { return way == Way::out ? out : in; }
  [[nodiscard]] bool are_good() const { return out == 0 && in == 0; }
};

struct Suspects {
  explicit Suspects(int count) : relative(count) {}
  std::vector<BothWays> nodes;             ///< by node: how slow at first sight, as a logarithm; 0: it is good
  std::vector<BothWays> uplinks;           ///< by leaf
  std::vector<Transfer> links;             ///< slow or too fast in this direction
  Matrix relative;                         ///< cells, less the level of near or far ones
  double near = kNothing, far = kNothing;  ///< levels
  double far_back = kNothing;              ///< of two leaves: from the second to the first; `far` is the other way
  [[nodiscard]] double level(int sender_leaf, int receiver_leaf) const {
    if (sender_leaf == receiver_leaf) return near;
    return std::isnan(far_back) || sender_leaf < receiver_leaf ? far : far_back;
  }
};

/// `nodes`: how many play. `right`: the levels, if they are known; else they are those of most cells.
[[nodiscard]] Suspects suspects_in(const Matrix& cells, const std::vector<int>& leaves, int nodes, const Limits& limits,
                                   const Baseline* right = nullptr);

/// Slower than this at first sight is a suspect.
[[nodiscard]] double suspicion(const Limits& limits);

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
// The numbers that `tutti explain` runs a collective on: small, told apart by rank and place, and, where
// torch.distributed's tutorial and documentation have an example, theirs.
//
// An algorithm deals in units of whole cache lines. Where it cuts a block into units, each number that is shown stands
// for a line of equal elements, so that every unit holds something; where it does not, for one element.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "impl/algorithms/algorithm.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::harness {

/// Numbers of one buffer as they are shown; empty: nobody has written there.
using Numbers = std::vector<std::optional<double>>;

/// A rank's two buffers; no numbers where it has none, or where the collective does not look at it.
struct Pair {
  Numbers input;
  Numbers output;
};

struct Example {
  Problem problem;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int units = 1;               ///< of one block, by the algorithm
  int shown = 1;               ///< numbers of one block: a multiple of units
  Count scale = 1;             ///< elements that a number stands for
  std::vector<Numbers> input;  ///< [rank]
  std::vector<int> factors;    ///< [rank], of premul_sum; empty for the other ops

  [[nodiscard]] Count count() const { return shown * scale; }
};

/// Units of the largest buffer of any rank.
[[nodiscard]] int units_of(const Example& example);

inline constexpr int kMostExplained = 8;  ///< ranks: as many as fit beside each other

/// In a few words, for a reader who has never seen it: "Every rank gives ...". Empty: there is no example of it.
[[nodiscard]] std::string_view meaning_of(Collective collective);

/// The example for an algorithm on `problem`. Requires: the collective has data. Errors: invalid_argument where
/// the dtype does not hold the numbers and their result exactly, so that the order of adding would show.
[[nodiscard]] Result<Example> example_of(const Algorithm& algorithm, const Problem& problem, Dtype dtype, Op op);

}  // namespace tutti::harness

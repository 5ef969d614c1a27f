// SPDX-License-Identifier: Apache-2.0
// The numbers that `tutti explain` runs a collective on: small, told apart by rank and place, and, where
// torch.distributed's tutorial and documentation have an example, theirs.
//
// An algorithm deals in units of whole cache lines. Where it cuts a block into units, each number that is shown stands
// for a line of equal elements, so that every unit holds something. Elsewhere it stands for one element. The blocks of
// a v form have 2, 0, 3, 1, 2, 0, ... numbers, in order, with a gap of one between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/algorithms/algorithm.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::harness::explain {

enum class BufferSide : std::uint8_t { input, output };
/// Numbers [first, first + count) of a buffer.
struct Stretch {
  int first = 0;
  int count = 0;
};

/// Numbers of one buffer as they are shown; empty: nobody has written there.
using Numbers = std::vector<std::optional<double>>;

/// A rank's two buffers; no numbers where it has no such buffer, or where the collective does not look at it.
struct Pair {
  Numbers input;
  Numbers output;
};

struct Example {
  Problem problem;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int units = 1;               ///< of one block, by the algorithm
  int shown = 1;               ///< numbers of one block: a multiple of units; unused in a v form
  Count scale = 1;             ///< elements that a number stands for
  std::vector<Numbers> input;  ///< [rank]
  std::vector<int> factors;    ///< [rank], of premul_sum; empty for the other ops
  std::vector<int> lengths;    ///< of a v form: the numbers of each block; of all_to_all_v: see length_of

  [[nodiscard]] Count count() const { return shown * scale; }
  /// Numbers of a block of a buffer that is divided. Of all_to_all_v the blocks of rank r begin with number r, so that
  /// each rank gets from another one as much as it gives.
  [[nodiscard]] int length_of(int rank, int block) const;
  /// Where a unit of the input (output) of `rank` lies among its numbers.
  [[nodiscard]] Stretch place(BufferSide side, int rank, int unit) const;
  /// Units of that buffer, and numbers, with gaps.
  [[nodiscard]] int units_in(BufferSide side, int rank) const;
  [[nodiscard]] int numbers_in(BufferSide side, int rank) const;
};

/// Units of the largest buffer of any rank.
[[nodiscard]] int units_of(const Example& example);

inline constexpr int kMostExplained = 8;  ///< ranks: as many as fit beside each other

/// In a few words, for a reader who has never seen it: "Every rank gives ...".
[[nodiscard]] std::string_view meaning_of(Collective collective);

/// The example for an algorithm on `problem`. Requires: the collective has data. Errors: invalid_argument where
/// the dtype does not hold the numbers and their result exactly, so that the order of adding would show.
[[nodiscard]] Result<Example> example_of(const Algorithm& algorithm, const Problem& problem, Dtype dtype, Op op);

}  // namespace tutti::harness::explain

// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/lengths.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tutti::harness::draw {
namespace {

/// The elements of a block's units: unit u of n ends at element count (u + 1) / n.
void append_units(std::vector<Count>& list, Count count, int units) {
  for (int unit = 0; unit < units; ++unit) list.push_back(count * (unit + 1) / units - count * unit / units);
}

}  // namespace

Lengths::Lengths(const Problem& problem, const CellBlocks& blocks, int units) {
  const auto add = [&](std::vector<std::vector<Count>>& list, int rank, int count, bool is_input) {
    list.emplace_back();
    for (int block = 0; block < count; ++block) {
      const Count elements = (is_input ? blocks.input(rank, block) : blocks.output(rank, block)).count;
      append_units(list.back(), elements, units);
      has_empty_ |= elements == 0;
    }
    longest_ = std::max(longest_, std::accumulate(list.back().begin(), list.back().end(), Count{0}));
  };
  for (int rank = 0; rank < problem.ranks; ++rank) {
    add(given_, rank, input_blocks(problem, rank), true);
    add(held_, rank, output_blocks(problem, rank), false);
  }
}

Count Lengths::of(const Parts& parts) const {
  Count sum = 0;
  for (const Part& part : parts) {
    if (part.is_empty()) continue;
    sum += given(std::countr_zero(part.ranks))[static_cast<std::size_t>(part.unit)];
  }
  return sum;
}

}  // namespace tutti::harness::draw

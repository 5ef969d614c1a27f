// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/turning.h"

namespace tutti {

Turner::Turner(const Problem& problem, const Shape& shape, Turning turning) : ranks_(problem.ranks), turning_(turning) {
  units_ = {input_blocks(problem, 0) * shape.units_per_block, output_blocks(problem, 0) * shape.units_per_block,
            shape.scratch_units};
  if (turning == Turning::columns) units_[0] = units_[1] = shape.units_per_block;
  for (std::size_t space = 0; space < 2; ++space) {
    if (units_[space] % ranks_ == 0) per_rank_[space] = units_[space] / ranks_;
  }
}

void Turner::turn(RankSet& set, int rank) const {
  if (set.n == ranks_ && set.stride == 1) return;  // everyone, in the same order on every rank
  const int first = set.first + rank;
  set.first = first < ranks_ ? first : first - ranks_;
}

void Turner::turn(Space space, UnitSet& set, int rank) const {
  const auto at = static_cast<std::size_t>(space);
  if (per_rank_[at] == 0) return;
  set.start = static_cast<int>((set.start + static_cast<std::int64_t>(rank) * per_rank_[at]) % units_[at]);
}

void Turner::turn(Operand& operand, int rank) const {
  const bool is_user = operand.space == Space::input || operand.space == Space::output;
  if (!is_user || turning_ == Turning::around) turn(operand.ranks, rank);
  if (is_user) turn(operand.space, operand.units, rank);
}

/// Target t of rank 0 is target t + g of rank g: what it sees begins g times `per_target` units further on anyway.
void Turner::turn(Exposure& exposure, int rank) const {
  if (exposure.is_empty() || exposure.space == Space::channel) return;
  const int count = units_[static_cast<std::size_t>(exposure.space)];
  if (count == 0) return;
  if (exposure.space != Space::scratch) turn(exposure.space, exposure.units, rank);
  const std::int64_t back = static_cast<std::int64_t>(rank) * exposure.per_target % count;
  exposure.units.start = static_cast<int>((exposure.units.start + count - back) % count);
}

Step Turner::turned(Step first, int rank) const {
  if (rank == 0) return first;
  if (first.verb != Verb::move) {
    turn(first.ranks, rank);
    turn(first.read, rank);
    turn(first.write, rank);
    return first;
  }
  for (int i = 0; i < first.destinations.size; ++i) turn(first.destinations.items[static_cast<std::size_t>(i)], rank);
  for (int i = 0; i < first.sources.size; ++i) turn(first.sources.items[static_cast<std::size_t>(i)], rank);
  if (first.as_long_as.units.length > 0) turn(first.as_long_as, rank);
  return first;
}

}  // namespace tutti

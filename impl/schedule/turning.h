// SPDX-License-Identifier: Apache-2.0
// One rank's steps taken to every rank. A generator that is turned writes rank 0's program only: so no rank can do
// anything else, and the prover need not compare the ranks (prove/symmetry.h).
//
// Around: rank r becomes rank r + g. The units of a user's space that has P parts go around with the ranks. All other
// units stay.
//
// Columns: every rank works on unit r of everybody's buffers, which have one block of P units. The buffers' owners
// stay, the unit becomes unit r + g, and scratch is the working rank's own. What a SIGNAL exposes is each rank's own.
#pragma once

#include <array>

#include "impl/schedule/schedule.h"

namespace tutti {

class Turner {
 public:
  Turner(const Problem& problem, const Shape& shape, Turning turning);

  /// Step `first` of rank 0 as rank `rank` does it. Requires: a set of ranks is one rank, all ranks, or `others`.
  [[nodiscard]] Step turned(Step first, int rank) const;

  /// Whether the units of `space` go around with the ranks.
  [[nodiscard]] bool goes_around(Space space) const { return per_rank_[static_cast<std::size_t>(space)] > 0; }

 private:
  void turn(RankSet& set, int rank) const;
  void turn(Space space, UnitSet& set, int rank) const;
  void turn(Operand& operand, int rank) const;
  void turn(Exposure& exposure, int rank) const;

  int ranks_;
  Turning turning_;
  std::array<int, 3> units_{};     ///< by Space: input, output, scratch
  std::array<int, 3> per_rank_{};  ///< units that go with one rank; 0: they stay
};

}  // namespace tutti

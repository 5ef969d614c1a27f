// SPDX-License-Identifier: Apache-2.0
// How long the blocks of a v form are, in elements. A schedule names units, whatever their lengths are; a picture shows
// both.
#pragma once

#include <vector>

#include "harness/cases/counts.h"
#include "harness/draw/story.h"

namespace tutti::harness::draw {

class Lengths {
 public:
  Lengths() = default;
  /// Of the v form `problem`, whose blocks are of `units` units each.
  Lengths(const Problem& problem, const CellBlocks& blocks, int units);

  /// No lengths are known: all units look alike.
  [[nodiscard]] bool is_empty() const { return given_.empty(); }
  /// Elements of each unit of the input (output) of `rank`. Requires: not is_empty.
  [[nodiscard]] const std::vector<Count>& given(int rank) const { return given_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::vector<Count>& held(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
  /// Elements of the units of these parts together.
  [[nodiscard]] Count of(const Parts& parts) const;
  /// Elements of the longest buffer of a rank, at least 1.
  [[nodiscard]] Count longest() const { return longest_; }
  /// Some block has no element.
  [[nodiscard]] bool has_empty() const { return has_empty_; }

 private:
  std::vector<std::vector<Count>> given_, held_;  ///< [rank][unit]
  Count longest_ = 1;
  bool has_empty_ = false;
};

}  // namespace tutti::harness::draw

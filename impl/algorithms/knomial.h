// SPDX-License-Identifier: Apache-2.0
// The k-nomial tree, k = 4, in relative ranks v = (rank - root) mod P. Let m be the largest power of 4 that divides v,
// and any for the root. The parent of v is v with that digit cleared. Its children are v + j * 4^i for 4^i < m,
// j = 1..3, and its subtree is [v, v + m).
//
// P = 8:   0 - 1, 2, 3, 4        4 - 5, 6, 7
#pragma once

#include <algorithm>
#include <array>

#include "impl/algorithms/algorithm.h"

namespace tutti::knomial {

inline constexpr int kRadix = 4;
inline constexpr int kMost = 3 * 16;  ///< children of one rank: 3 per base-4 digit of a 32-bit rank

/// Of one rank, in relative ranks.
struct Children {
  std::array<int, kMost> relative{};
  int size = 0;

  [[nodiscard]] const int* begin() const { return relative.data(); }
  [[nodiscard]] const int* end() const { return relative.data() + size; }
};

[[nodiscard]] inline int relative_rank(const Problem& problem, int rank) {
  return (rank - problem.root + problem.ranks) % problem.ranks;
}
[[nodiscard]] inline int absolute_rank(const Problem& problem, int relative) {
  return (relative + problem.root) % problem.ranks;
}

/// The largest power of the radix that divides `relative`; for the root, the first that is not below P.
[[nodiscard]] inline std::int64_t width_of(int ranks, int relative) {
  std::int64_t width = 1;
  while (width < ranks && relative % (kRadix * width) == 0) width *= kRadix;
  return width;
}

/// Requires: not the root.
[[nodiscard]] inline int parent_of(int ranks, int relative) {
  const std::int64_t width = width_of(ranks, relative);
  return static_cast<int>(relative - relative / width % kRadix * width);
}

/// How many ranks the subtree has: [relative, relative + size).
[[nodiscard]] inline int subtree_size(int ranks, int relative) {
  return static_cast<int>(std::min<std::int64_t>(width_of(ranks, relative), ranks - relative));
}

/// Those with the smallest subtrees first, which is in order of their ranks.
[[nodiscard]] inline Children children_of(int ranks, int relative) {
  const std::int64_t width = width_of(ranks, relative);
  Children children;
  for (std::int64_t digit = 1; digit < width; digit *= kRadix) {
    for (int j = 1; j < kRadix && relative + j * digit < ranks; ++j) {
      children.relative[static_cast<std::size_t>(children.size++)] = static_cast<int>(relative + j * digit);
    }
  }
  return children;
}

/// The child of `relative` whose subtree holds `below`. Requires: below is another rank of relative's subtree.
[[nodiscard]] inline int child_towards(int relative, int below) {
  std::int64_t width = 1;  // of the child: the leading digit of the way
  while ((below - relative) / width >= kRadix) width *= kRadix;
  return static_cast<int>(relative + (below - relative) / width * width);
}

// A broadcast over the tree. A rank's first MOVE serves three children beside the output, those with the largest
// subtrees first; each further MOVE serves four.
inline constexpr int kFirst = 3;
inline constexpr int kFurther = 4;

[[nodiscard]] inline int moves_for(int children) {
  return 1 + std::max(0, children - kFirst + kFurther - 1) / kFurther;
}
[[nodiscard]] inline int move_of_child(int index) { return index < kFirst ? 0 : 1 + (index - kFirst) / kFurther; }

/// MOVEs and transfers from the start to the end of the first MOVE of relative rank v.
[[nodiscard]] inline int depth_of(int ranks, int relative) {
  if (relative == 0) return 1;
  const int parent = parent_of(ranks, relative);
  const Children siblings = children_of(ranks, parent);
  const auto place = siblings.end() - 1 - std::find(siblings.begin(), siblings.end(), relative);
  return depth_of(ranks, parent) + move_of_child(static_cast<int>(place)) + 2;
}

/// To the end of the last MOVE of all. Every rank's cost asks for it, so that the last answer is kept.
[[nodiscard]] inline int broadcast_depth(int ranks) {
  thread_local int asked = 0;
  thread_local int depth = 0;
  if (asked == ranks) return depth;
  asked = ranks;
  depth = 0;
  for (int v = 0; v < ranks; ++v) {
    depth = std::max(depth, depth_of(ranks, v) + moves_for(children_of(ranks, v).size) - 1);
  }
  return depth;
}

}  // namespace tutti::knomial

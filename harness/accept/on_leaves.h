// SPDX-License-Identifier: Apache-2.0
// The nodes of another crew on other leaves.
#pragma once

#include <utility>
#include <vector>

#include "harness/accept/crew_around.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class OnLeaves final : public CrewAround {
 public:
  /// `crew` outlives it. `leaves`: by node.
  OnLeaves(Crew& crew, std::vector<int> leaves) : CrewAround(crew), leaves_(std::move(leaves)) {}
  [[nodiscard]] int leaf_of(int node) const override { return leaves_.at(static_cast<std::size_t>(node)); }

 private:
  std::vector<int> leaves_;
};

}  // namespace tutti::harness::accept

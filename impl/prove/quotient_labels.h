// SPDX-License-Identifier: Apache-2.0
// Whether every rank reduces in the order of ranks, and whether all get the same bits, where one rank stands for all.
// That rank g reduces what rank 0 does, taken there, says nothing of its order: sources are compared in any order. So
// the order is read off the steps of rank g itself. What takes too long, or cannot be told from the steps, is not
// derived.
#pragma once

#include <span>
#include <vector>

#include "impl/prove/quotient_values.h"

namespace tutti {

struct QuotientNodes {
  const Schedule& schedule;
  const Symmetry& symmetry;
  int inputs;  ///< units of rank 0's input; the first nodes
  std::span<const QuotientValues::Node> nodes;
  std::span<const Taken> children;
  std::span<const QuotientValues::Place> places;
};

[[nodiscard]] steps::ValueLabels quotient_labels(const QuotientNodes& nodes, std::span<const Taken> outputs);

}  // namespace tutti

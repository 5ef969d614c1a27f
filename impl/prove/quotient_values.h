// SPDX-License-Identifier: Apache-2.0
// Values where one rank stands for all: a value is a node, with the element by which it was taken. A node is a
// reduction of values. Each output is evaluated where its node was made, with random inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/steps.h"
#include "impl/prove/symmetry.h"

namespace tutti {

/// A value: what `node` is, its contributions taken by `element`. Nodes below the number of input units are those.
struct Taken {
  int node = -1;  ///< -1: nothing was written
  int element = 0;
};

/// One of what a MOVE reduces, and where rank 0 read it: the memory or the channel of `rank`.
struct Term {
  Taken value;
  Space space = Space::input;
  int rank = 0;
};

class QuotientValues {
 public:
  struct Node {
    std::size_t first;  ///< in children_
    int count;
    int finals;
    int step;
    bool is_final;
  };
  /// Where rank 0 read a child.
  struct Place {
    Space space;
    int rank;
  };

  QuotientValues(const Schedule& schedule, const Symmetry& symmetry)
      : problem_(schedule.problem),
        symmetry_(symmetry),
        per_block_(schedule.shape.units_per_block),
        inputs_(symmetry.units(Space::input)) {}

  /// What step `index`, a MOVE, makes of `terms`: a copy stays what it is.
  Taken of(const std::vector<Term>& terms, bool is_final, int index);
  /// What of the labels can be derived. Requires: the outputs are right.
  [[nodiscard]] steps::ValueLabels labels(const Schedule& schedule, std::span<const Taken> outputs) const;
  /// Times that the node was made final.
  [[nodiscard]] int finals_of(int number) const { return number < inputs_ ? 0 : node(number).finals; }
  /// Whether rank 0's outputs hold what they should.
  void check_outputs(std::span<const Taken> outputs, Findings& findings);

 private:
  [[nodiscard]] const Node& node(int number) const { return nodes_[static_cast<std::size_t>(number - inputs_)]; }
  [[nodiscard]] std::uint64_t worth_of_input(Taken value) const;
  std::uint64_t worth_of(Taken top);
  [[nodiscard]] std::string difference(Taken output, int unit) const;

  const Problem& problem_;
  const Symmetry& symmetry_;
  int per_block_;
  int inputs_;  ///< units of rank 0's input; the first nodes
  std::vector<Node> nodes_;
  std::vector<Taken> children_;
  std::vector<Place> places_;  ///< of children_, where the collective reduces
  std::unordered_map<std::uint64_t, std::uint64_t> worth_;
};

}  // namespace tutti

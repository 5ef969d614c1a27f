// SPDX-License-Identifier: Apache-2.0
// The nodes of another crew on other leaves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class OnLeaves final : public Crew {
 public:
  /// `crew` outlives it. `leaves`: by node.
  OnLeaves(Crew& crew, std::vector<int> leaves) : crew_(crew), leaves_(std::move(leaves)) {}
  [[nodiscard]] int nodes() const override { return crew_.nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_.name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return leaves_.at(static_cast<std::size_t>(node)); }
  [[nodiscard]] std::string absence_of(int node) const override { return crew_.absence_of(node); }
  [[nodiscard]] std::vector<std::string> rails() const override { return crew_.rails(); }
  [[nodiscard]] std::string library() const override { return crew_.library(); }
  [[nodiscard]] bool plays_library(Measure measure) const override { return crew_.plays_library(measure); }
  [[nodiscard]] std::string bare_system() const override { return crew_.bare_system(); }
  [[nodiscard]] std::string absence_of_rail(int node, int rail) const override {
    return crew_.absence_of_rail(node, rail);
  }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    return crew_.play(groups, tests);
  }
  void pause() override { crew_.pause(); }

 private:
  Crew& crew_;
  std::vector<int> leaves_;
};

}  // namespace tutti::harness::accept

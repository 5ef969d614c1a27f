// SPDX-License-Identifier: Apache-2.0
// A crew that plays with another one, and differs from it in a few things.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Forwards each call to `crew`. A class that derives from it overrides what is different.
class CrewAround : public Crew {
 public:
  /// `crew` outlives it.
  explicit CrewAround(Crew& crew) : crew_(crew) {}
  [[nodiscard]] int nodes() const override { return crew_.nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_.name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return crew_.leaf_of(node); }
  [[nodiscard]] std::string absence_of(int node) const override { return crew_.absence_of(node); }
  [[nodiscard]] std::vector<std::string> rails() const override { return crew_.rails(); }
  [[nodiscard]] std::string absence_of_rail(int node, int rail) const override {
    return crew_.absence_of_rail(node, rail);
  }
  [[nodiscard]] std::string library() const override { return crew_.library(); }
  [[nodiscard]] bool plays_library(Measure measure) const override { return crew_.plays_library(measure); }
  [[nodiscard]] std::string bare_system() const override { return crew_.bare_system(); }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    return crew_.play(groups, tests);
  }
  void pause() override { crew_.pause(); }

 protected:
  Crew& crew_;
};

}  // namespace tutti::harness::accept

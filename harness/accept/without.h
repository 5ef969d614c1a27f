// SPDX-License-Identifier: Apache-2.0
// A crew some of whose nodes must not play.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "harness/accept/crew_around.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

class Without final : public CrewAround {
 public:
  /// `crew` outlives it. `why`: by the name of a node.
  Without(Crew& crew, std::map<std::string, std::string> why) : CrewAround(crew), why_(std::move(why)) {}
  [[nodiscard]] std::string absence_of(int node) const override {
    const std::string own = crew_.absence_of(node);
    const auto kept_out = why_.find(crew_.name_of(node));
    return own.empty() && kept_out != why_.end() ? kept_out->second : own;
  }

 private:
  std::map<std::string, std::string> why_;
};

}  // namespace tutti::harness::accept

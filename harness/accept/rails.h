// SPDX-License-Identifier: Apache-2.0
// Rails: interfaces that all nodes have, each in a network of its own. Pairs and shifts play on each rail by itself,
// and nodes are compared on the same rail. A node that is slow on one rail has a slow NIC there; one that is slow on
// all rails is a slow node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/crew_around.h"
#include "harness/accept/findings.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

inline constexpr std::size_t kMostRails = 16;

/// An interface's name, or a network such as 192.0.2.0/24. An address is of one host. Errors: invalid_argument.
[[nodiscard]] Status check_rail(std::string_view text);
/// "ib0,ib1". Errors: invalid_argument: of check_rail; a rail that is there twice; more than kMostRails.
[[nodiscard]] Result<std::vector<std::string>> parse_rails(std::string_view text);

/// `crew`, all tests of which go over one of its rails. A node without that rail is absent.
class OnRail final : public CrewAround {
 public:
  /// `crew` outlives it.
  OnRail(Crew& crew, int rail) : CrewAround(crew), rail_(rail) {}
  [[nodiscard]] std::string absence_of(int node) const override;
  [[nodiscard]] std::vector<std::string> rails() const override { return {}; }
  [[nodiscard]] std::string absence_of_rail(int /*node*/, int /*rail*/) const override { return {}; }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override;

 private:
  int rail_;
};

/// What was measured on one rail. Its parts are among those of the whole.
struct RailReport {
  std::string name;
  Findings findings = {};
};

/// Takes what pairs on one rail have shown into the whole: figures of a node are those of its worst rail.
void add_rail(Findings& all, const Findings& of_rail, int rail);
/// What was found on every rail alike is about the node, or the pair, itself: dead, hung, and slow nodes. A node that
/// is slow on some rails only has a slow NIC there, whatever it is alone. `names` of all rails; parts are of one stage.
void merge_rails(std::vector<Finding>& parts, const std::vector<std::string>& names);
/// Whether the finding says something of this rail.
[[nodiscard]] inline bool is_on_rail(const Finding& finding, int rail) {
  return finding.rail == kNoRail || finding.rail == rail;
}

}  // namespace tutti::harness::accept

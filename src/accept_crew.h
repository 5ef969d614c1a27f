// SPDX-License-Identifier: Apache-2.0
// HostsCrew: the crew of `tutti accept` on hosts that an agent reaches. A group is a job of its own: it has its own
// key, memory, ports, deadline and end. Groups of one play run at once.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/process/interrupts.h"
#include "impl/types/host_list.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

class HostsCrew final : public harness::accept::Crew {
 public:
  /// Looks at each host of `places`. One that cannot be reached, or has another build, is absent. Errors: those of this
  /// machine.
  [[nodiscard]] static Result<std::unique_ptr<HostsCrew>> start(const Settings& places);

  [[nodiscard]] int nodes() const override { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] std::string name_of(int node) const override { return hosts_.at(static_cast<std::size_t>(node)).name; }
  [[nodiscard]] int leaf_of(int /*node*/) const override { return 0; }
  [[nodiscard]] std::string absence_of(int node) const override { return absences_.at(static_cast<std::size_t>(node)); }
  [[nodiscard]] std::vector<std::vector<harness::accept::Outcome>> play(
      const std::vector<harness::accept::Group>& groups, const std::vector<harness::accept::Test>& tests) override;
  void pause() override;

 private:
  explicit HostsCrew(const Settings& places);
  /// Plays the tests that `is_theirs` allows, in groups of `order`, and sets their outcomes.
  void play_part(const std::vector<harness::accept::Group>& groups, const std::vector<harness::accept::Test>& tests,
                 bool is_back, std::vector<std::vector<harness::accept::Outcome>>& outcomes);

  Settings places_;
  std::vector<NamedHost> hosts_;
  std::vector<std::string> absences_;
  std::vector<double> seconds_;  ///< that jobs took
  harness::Interrupts interrupts_;
};

}  // namespace tutti::program

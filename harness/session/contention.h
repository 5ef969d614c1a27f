// SPDX-License-Identifier: Apache-2.0
// A session whose cells are contentions (harness/measure/contention.h): the ranks enter their groups once, and each
// cell is measured on all groups.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cases/groups.h"
#include "harness/measure/contention.h"
#include "harness/session/measuring.h"
#include "harness/session/spec.h"
#include "harness/session/systems.h"

namespace tutti::harness::session {

/// Whether the cells of the session are contentions.
[[nodiscard]] bool has_groups(const SessionSpec& spec);

class Contention {
 public:
  /// All of them outlive it.
  struct Place {
    const SessionSpec& spec;
    Runner& runner;  ///< among all runners
    Systems& systems;
    Measuring& measuring;
  };
  Contention(const Contention&) = delete;
  Contention& operator=(const Contention&) = delete;

  /// The ranks enter their groups, and so do the systems. All runners call it, as all that follows. Errors: those of
  /// the systems.
  [[nodiscard]] static Result<std::unique_ptr<Contention>> open(const Place& place);

  /// The rows of the session's cell `index`, on runner 0: by system and group, alone and then together. A system that
  /// some rank cannot run has rows with the reason. `refusal`: why no case of the cell can be begun. Errors: those
  /// after which the job is over.
  [[nodiscard]] Result<std::vector<Row>> rows_of(std::size_t index, const Status& refusal);

 private:
  /// The cases of one system in one cell: of each group, alone and together.
  using OfSystem = std::vector<Case>;

  Contention(const Place& place, const Groups& groups);
  [[nodiscard]] std::vector<OfSystem> systems_of(std::size_t index) const;
  [[nodiscard]] Result<Variant> make_ready(const Case& alone, std::uint32_t number);
  /// The rows of all groups, on all runners: by group the lines of its rows.
  [[nodiscard]] Result<std::vector<std::vector<Row>>> collect(const std::vector<Row>& mine);

  Place place_;
  Groups groups_;
  int group_ = 0;                          ///< of this runner
  std::vector<int> group_of_all_;          ///< by runner
  std::vector<std::vector<int>> members_;  ///< by group
  Runner in_group_;
};

}  // namespace tutti::harness::session

// SPDX-License-Identifier: Apache-2.0
// A recorded run as the other side of the gate. What was recorded cannot be measured again, so its doubt stays: a
// ratio's interval is wider by the interval of the recorded times. One launch says nothing of the next. So where fewer
// than six launches were recorded, the interval is wider also by how far the launches of this side lie apart. A cell
// that was recorded in another state of the machine, on another machine or under other conditions (unusual.h) is
// invalid. So is a cell with unchecked results.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/gate/judge.h"
#include "harness/gate/plan.h"
#include "harness/machine/machine.h"
#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::gate {

class Baseline {
 public:
  /// `here`: the fingerprint of this machine; empty: whatever the rows say of theirs will do.
  explicit Baseline(std::vector<Row> rows, std::string other_machine = {}, std::string here = {})
      : rows_(std::move(rows)), other_machine_(std::move(other_machine)), here_(std::move(here)) {}
  /// The hosts that the gate measures on, as --hosts has them: rows of others are not comparable. Without it: this one.
  /// Whether their machines are those of the rows is known once there are rows of the gate's own:
  /// difference_of_machines.
  void set_hosts(std::string hosts);
  /// A CSV, or a JSON record, which also names its machine. Errors: invalid_argument naming what is wrong where;
  /// a time or an interval that no run can have measured is.
  [[nodiscard]] static Result<Baseline> from_text(std::string_view text);
  /// The same of a file. Errors: invalid_argument naming the path and the reason.
  [[nodiscard]] static Result<Baseline> read(const std::string& path);

  /// Whether it says which machine it is of: an older file does not.
  [[nodiscard]] bool names_machine() const;

  /// One row in place of those of all launches: the median of their medians. Notes in `evidence` how sure that is, or
  /// why there is no row to compare with.
  [[nodiscard]] std::optional<Row> row_for(const Case& one, Evidence& evidence) const;

 private:
  /// Its launches in one state of the machine; where there are no such launches, notes why.
  [[nodiscard]] std::vector<Row> launches_of(const Case& one, Evidence& evidence) const;

  std::vector<Row> rows_;
  std::string other_machine_;  ///< empty: this one, as far as is known
  std::string here_;
  std::string hosts_;
};

/// The same by fingerprints, each empty where it is not said.
[[nodiscard]] std::string difference_of_machines(const std::string& recorded, const std::string& here);

/// Why times of two machines cannot be compared; empty: they can, as far as is known.
[[nodiscard]] std::string difference_of(std::string_view recorded_machine_json, const Machine& here);

}  // namespace tutti::harness::gate

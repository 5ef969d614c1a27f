// SPDX-License-Identifier: Apache-2.0
// Measures what `auto` should take on this machine: what it takes now, in one cell with what else there is. The cells
// are measured as those of guidelines are: pairs of blocks, an exact interval, and again in a fresh launch. What else
// there is takes the place of what is taken now only if both intervals say so; of several the one whose gain has the
// highest lower end.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/expand.h"
#include "harness/gate/report.h"
#include "harness/guidelines/guidelines.h"
#include "impl/communicator/selection_table.h"

namespace tutti::harness::tune {

/// Of this many bytes on, tunings of what is taken are tried, too.
inline constexpr std::int64_t kLeastTunedBytes = std::int64_t{64} << 10;

/// What `auto` takes for a case: "two_shot+64K".
using TakenOf = std::function<std::string(const Case&)>;

/// Collectives of which there is a choice that the size has a say in.
[[nodiscard]] std::span<const Collective> collectives();

/// The first case of each cell is what is taken; every other one is compared with it. A cell without a choice is left
/// out. `sweep` has tutti as its backend, and collectives of the list above. Errors: those of expand.
[[nodiscard]] Result<guidelines::Plan> plan_of(const Sweep& sweep, const TakenOf& taken_of);

/// How many times as fast something is, of both passes: the middle of the first one, and the wider ends.
struct Gain {
  double middle = 1;
  double low = 1;
  double high = 1;
};
/// A gain below is none: on another day it is something else's.
inline constexpr double kLeastGain = 1.03;
/// Whether what is taken was slower in a first pass, by more than that.
[[nodiscard]] bool may_be_better(const guidelines::Found& found);

/// What was found of a cell.
struct Finding {
  Case taken;                            ///< what `auto` takes now
  Case chosen;                           ///< what it should take
  bool is_measured = false;              ///< every comparison of the cell has an interval
  std::string lack = {};                 ///< why it is not; empty if it is
  std::optional<Gain> gain = {};         ///< of what is chosen; nothing if that is what is taken
  std::optional<double> chosen_us = {};  ///< median time in the first pass
};
/// By cell. `again`: of the comparisons that `first` found slower.
[[nodiscard]] std::vector<Finding> findings_of(const guidelines::Plan& plan, const guidelines::Measured& first,
                                               const guidelines::Measured& again);

/// What the rows of a table say beside the findings.
struct TableOf {
  std::vector<int> ranks = {};  ///< that were measured, rising
  int cores = 1;                ///< that the ranks may use together
  std::string record = {};      ///< name of the file that has the rows of all cells; empty: there is none
};
/// A row for each finding that is measured: for sizes as cover_bytes has them, and ranks as cover_ranks has them.
[[nodiscard]] std::vector<TableRow> rows_of(const guidelines::Plan& plan, std::span<const Finding> findings,
                                            const TableOf& of);

/// Of each cell the gravest judgement of its comparisons: whether what is taken still fits.
[[nodiscard]] std::vector<gate::GateCell> fits_of(const guidelines::Plan& plan, const guidelines::Measured& first,
                                                  const guidelines::Measured& again);

}  // namespace tutti::harness::tune

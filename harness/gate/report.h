// SPDX-License-Identifier: Apache-2.0
// What a gate or a comparison found, for people and for the pages of a CI server. It is a table, JUnit XML with one
// case per cell, a summary in Markdown, and JSON, of which `tutti report` makes a page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/gate/judge.h"

namespace tutti::harness::gate {

struct GateCell {
  Evidence evidence;
  Judgement judgement;
};

struct GateReport {
  /// Launches in turn, two recorded results, native calls against what they are compared with, or what a selection
  /// table takes against what else there is.
  enum class Kind : std::uint8_t { gate, compare, guidelines, tune };

  Kind kind = Kind::gate;
  std::string mine = "this build";
  std::string other;                      ///< what it was compared with
  std::string command;                    ///< that repeats it
  std::string counted;                    ///< what was compared without a clock; empty: nothing
  std::vector<std::string> remarks = {};  ///< what else one should know: what was not compared, and why
  std::string unfinished = {};            ///< why it ended early; empty: it did not
  std::uint64_t seed = 1;
  std::vector<GateCell> cells;
  std::optional<std::string> host = {};  ///< rank 0's, where the ranks are on several; empty: this one
  bool requires_times = false;           ///< what is too short to be judged does not pass
  std::vector<std::string> wrong = {};   ///< of a comparison: cells of which this side has a wrong result
  std::vector<std::string> lost = {};    ///< the same: right on the other side, and not comparable on this one

  [[nodiscard]] int count(Opinion opinion) const;
};

/// "1 slower, 3 same": opinions that there are, the gravest first; and that it is not finished, where it is not.
[[nodiscard]] std::string counts_text(const GateReport& report);

[[nodiscard]] std::string gate_table(const GateReport& report);
/// Failures are slower and wrong, errors are missing and invalid. Undecided is skipped, or an error where the gate is
/// not finished; too short is skipped, or an error where times are required. None of these passes.
[[nodiscard]] std::string gate_junit(const GateReport& report);
[[nodiscard]] std::string gate_markdown(const GateReport& report);
/// One document: `kind`, the sides, counts by verdict, and for each cell its verdict, ratio, interval, floor and
/// reason.
[[nodiscard]] std::string gate_json(const GateReport& report);

}  // namespace tutti::harness::gate

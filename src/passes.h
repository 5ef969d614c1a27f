// SPDX-License-Identifier: Apache-2.0
// Passes through cells whose systems are compared in pairs of blocks, as `tutti guidelines` and `tutti tune` make them:
// a first one through all, and one in fresh launches through what is to be confirmed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/gate/report.h"
#include "harness/guidelines/guidelines.h"
#include "harness/record/csv.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"

namespace tutti::program {

struct TwoPasses {
  harness::guidelines::Measured first;
  harness::guidelines::Measured again;  ///< of what is to be confirmed
};

/// Runs passes through cells, and keeps their rows in the CSV that the settings name.
class Passes {
 public:
  /// `settings` outlives it. `blocks` of each system in a cell. `end_ns`: by which all should be over; 0: there is no
  /// budget. Errors: invalid_argument for a CSV that cannot be written.
  static Result<Passes> open(const Settings& settings, int blocks, std::int64_t end_ns);

  /// `end_ns`: by which this should be over. The exit code of the job is kept.
  harness::guidelines::Measured run(std::vector<std::vector<harness::Case>> cells, std::int64_t end_ns);
  using IsToConfirm = bool (*)(const harness::guidelines::Found&);
  /// Both passes, within that time: the second one through what the predicate says of the first.
  TwoPasses run_twice(const harness::guidelines::Plan& plan, std::int64_t end_ns, IsToConfirm is_to_confirm);

  /// The exit code of the first job that failed.
  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] bool is_interrupted() const { return code_ == exit_interrupted; }
  [[nodiscard]] const std::vector<harness::Row>& rows() const { return rows_; }
  [[nodiscard]] const Status& csv_failure() const { return csv_failure_; }

 private:
  Passes(const Settings& settings, int blocks, std::int64_t end_ns)
      : settings_(settings), blocks_(blocks), progress_(end_ns) {}

  void keep(harness::guidelines::Measured& measured, const std::string& cell, const harness::Row& row);

  const Settings& settings_;
  int blocks_;
  Progress progress_;
  std::optional<harness::CsvFile> csv_;
  Status csv_failure_;
  std::vector<harness::Row> rows_;
  int code_ = exit_ok;
};

/// An instant before `end_ns` that leaves a share of what there is; 0 where there is no budget.
[[nodiscard]] std::int64_t share_of_budget(std::int64_t end_ns, double share);

/// "interrupted", or that a job failed; empty of exit_ok.
[[nodiscard]] std::string unfinished_text_of(int code);

/// Whether the native side was slower.
[[nodiscard]] bool was_slower(const harness::guidelines::Found& found);

/// What a gate ends with, and `tutti tune --check`.
[[nodiscard]] int exit_code_of_gate(const harness::GateReport& report, bool has_crashed);

}  // namespace tutti::program

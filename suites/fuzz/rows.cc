// SPDX-License-Identifier: Apache-2.0
// Rows as CSV and as JSON: both end up in the same rows, and those in a baseline.
#include <algorithm>

#include "harness/gate/baseline.h"
#include "harness/record/csv.h"
#include "harness/record/csv_reader.h"
#include "harness/record/row_json.h"
#include "harness/report/json.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

using harness::Row;

/// The gate's look at a cell of the file: whatever is recorded there, there is a judgement.
void judge_against(const harness::Baseline& baseline, const std::string& case_id) {
  const auto one = harness::parse_case_id(case_id);
  if (!one.is_ok()) return;
  harness::Evidence evidence{.cell = case_id, .collective = "", .bytes = one.value().bytes};
  const auto row = baseline.row_for(one.value(), evidence);
  TUTTI_ASSERT(row || !evidence.invalid.empty() || !evidence.missing.empty(), "no row of '{}', and no reason", case_id);
  if (row) {
    TUTTI_ASSERT(*row->time_ci_low <= *row->time_median && *row->time_median <= *row->time_ci_high,
                 "a median of {} in {} to {}", *row->time_median, *row->time_ci_low, *row->time_ci_high);
    TUTTI_ASSERT(evidence.doubt_below >= 0 && evidence.doubt_above >= 0, "doubts of {} and {}", evidence.doubt_below,
                 evidence.doubt_above);
    evidence.other_us = {*row->time_median};
    evidence.this_us = {1};
    evidence.log_ratios.assign(8, 0.0);
  }
  static_cast<void>(judge(evidence));
}

void read_baseline(std::string_view text, const std::vector<Row>& rows) {
  const auto baseline = harness::Baseline::from_text(text);
  if (!baseline.is_ok()) return check_message(baseline.status());
  constexpr std::size_t kMost = 4;
  for (std::size_t i = 0; i < std::min(rows.size(), kMost); ++i) judge_against(baseline.value(), rows[i].case_id);
}

}  // namespace

void csv(std::string_view input) {
  const auto rows = harness::rows_from_csv(input);
  if (!rows.is_ok()) return check_message(rows.status());
  std::string text = harness::csv_header() + "\n";
  for (const Row& row : rows.value()) text += harness::csv_row(row) + "\n";
  const auto again = harness::rows_from_csv(text);
  TUTTI_ASSERT(again.is_ok() && again.value() == rows.value(), "it is printed as\n{}", text);
  read_baseline(text, rows.value());
}

void json(std::string_view input) {
  std::vector<Row> rows;
  if (const auto row = harness::row_from_json(input); row.is_ok()) {
    const std::string text = harness::row_to_json(row.value());
    const auto again = harness::row_from_json(text);
    TUTTI_ASSERT(again.is_ok() && again.value() == row.value(), "it is printed as\n{}", text);
    rows.push_back(row.value());
    read_baseline("{\"rows\": [" + text + "]}", rows);
  } else {
    check_message(row.status());
  }
  if (input.starts_with('{')) read_baseline(input, rows);
}

}  // namespace tutti::fuzz

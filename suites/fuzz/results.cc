// SPDX-License-Identifier: Apache-2.0
// Results as `tutti report` and `tutti compare` read them, and what both make of them.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "harness/gate/compare.h"
#include "harness/report/bundle.h"
#include "harness/report/exports.h"
#include "harness/report/result_file.h"
#include "harness/text/json_reader.h"
#include "impl/types/printable.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

using harness::ResultFile;
using harness::Row;

void check_text(std::string_view text) {
  TUTTI_ASSERT(printable(text) == text, "a character that steers a terminal in: {}", text);
}

nlohmann::json checked_json(std::string_view text) {
  check_text(text);
  nlohmann::json json = harness::parse_json(text);
  TUTTI_ASSERT(!json.is_discarded(), "no JSON: {}", text);
  return json;
}

void check_exports(const ResultFile& result) {
  const std::vector<Row> rows = harness::rows_for_export(result);
  check_text(harness::prometheus_of(rows));
  const nlohmann::json list = checked_json(harness::github_action_benchmark_of(rows));
  const nlohmann::json all = checked_json(harness::bencher_of(rows));
  const auto timed = static_cast<std::size_t>(std::ranges::count_if(rows, harness::has_time));
  TUTTI_ASSERT(list.is_array() && all.is_object() && list.size() <= timed && all.size() <= list.size(),
               "{} entries and {} of {} rows with a time", list.size(), all.size(), timed);
}

void check_bundle(const std::string& text) {
  const nlohmann::json bundle = nlohmann::json::parse(text, nullptr, false);
  for (const char* name : {"sources", "rows", "cells", "judged", "samples", "omitted"}) {
    TUTTI_ASSERT(bundle.is_object() && bundle.contains(name) && bundle[name].is_array(), "no list '{}': {}", name,
                 text);
  }
}

void check_comparison(const ResultFile& result) {
  const harness::ResultSide side{.name = "a", .rows = result.rows};
  const harness::GateReport report = compare_results(side, side);
  for (const std::string& text : {gate_table(report), gate_markdown(report), gate_junit(report)}) check_text(text);
  const std::string json = gate_json(report);
  static_cast<void>(checked_json(json));
  const auto again = harness::result_from_text("b", json);
  TUTTI_ASSERT(again.is_ok() && again.value().kind == ResultFile::Kind::judged, "not read again: {}", json);
  check_exports(again.value());
}

}  // namespace

void results(std::string_view input) {
  constexpr std::size_t kMostRows = 64;  // what is made of more takes longer, and is the same
  const auto read = harness::result_from_text("a", input);
  if (!read.is_ok()) return check_message(read.status());
  const ResultFile& result = read.value();
  if (result.rows.size() > kMostRows) return;
  const std::array<ResultFile, 1> all{result};
  if (const Status one = harness::check_one_machine(all); !one.is_ok()) return check_message(one);
  check_exports(result);
  check_bundle(harness::bundle_of(all, {.made_by = "tutti", .made = "now"}));
  if (result.kind == ResultFile::Kind::rows) {
    check_bundle(harness::history_bundle_of({result}, {.made_by = "tutti", .made = "now"}, {}));
    check_comparison(result);
  }
}

}  // namespace tutti::fuzz

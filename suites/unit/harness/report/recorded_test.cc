// SPDX-License-Identifier: Apache-2.0
// What an earlier version wrote stays readable: recorded/<commit>.csv and .json are one run of that commit, of every
// kind of row. They are never written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/csv_reader.h"
#include "harness/record/row_json.h"
#include "harness/report/json.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::report {
namespace {

std::string recorded(const std::string& name) {
  return std::string(TUTTI_SOURCE_DIR) + "/suites/unit/harness/report/recorded/" + name;
}

std::vector<Row> rows_of_json(const std::string& name) {
  std::vector<Row> rows;
  const auto document = nlohmann::json::parse(content_of(recorded(name)));
  for (const auto& one : document["rows"]) {
    auto row = row_from_json(one.dump());
    EXPECT_TRUE(row.is_ok()) << row.status().message();
    if (row.is_ok()) rows.push_back(std::move(row).value());
  }
  return rows;
}

TEST(Recorded, CsvOf7f2ec82IsRead) {
  const auto rows = read_csv(recorded("7f2ec82.csv"));
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  ASSERT_EQ(rows.value().size(), 100U);
  const auto count = [&](Verdict verdict) { return std::ranges::count(rows.value(), verdict, &Row::verdict); };
  EXPECT_EQ(count(Verdict::ok), 84);
  EXPECT_EQ(count(Verdict::skipped), 16);
}

TEST(Recorded, JsonOf7f2ec82HasTheSameRows) {
  const auto rows = read_csv(recorded("7f2ec82.csv"));
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  EXPECT_EQ(rows_of_json("7f2ec82.json"), rows.value());
}

}  // namespace
}  // namespace tutti::harness::report

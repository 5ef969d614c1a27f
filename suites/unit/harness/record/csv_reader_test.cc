// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/csv.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::record {
namespace {

using ::testing::HasSubstr;

TEST(CsvReader, GivesBackWhatTheWriterWrote) {
  const std::string text = csv_header() + "\n" + csv_row(measured_row()) + "\n" + csv_row(skipped_row()) + "\n";
  const auto rows = rows_from_csv(text);
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  ASSERT_EQ(rows.value().size(), 2U);
  EXPECT_EQ(rows.value()[0], measured_row());
  EXPECT_EQ(rows.value()[1], skipped_row());
}

TEST(CsvReader, GoesByNameAndPassesOverWhatItDoesNotKnow) {
  const auto rows = rows_from_csv("time_median,of a later version,case\r\n2.5,\"a, \"\"b\"\"\n\",x/y\r\n");
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  ASSERT_EQ(rows.value().size(), 1U);
  EXPECT_EQ(rows.value()[0].case_id, "x/y");
  EXPECT_EQ(rows.value()[0].time_median, 2.5);
  EXPECT_EQ(rows.value()[0].verdict, Verdict::unchecked) << "nobody said that it is right";
}

TEST(CsvReader, NamesTheLineAndTheColumn) {
  const auto message = [](const char* text) { return rows_from_csv(text).status().message(); };
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("a,b\n1,2\n"), HasSubstr("no column 'case'"));
  EXPECT_EQ(message("case,ranks\nx,2\ny,two\n"), "line 3: column 'ranks' cannot be 'two'");
  EXPECT_EQ(message("case,ranks\nx,\n"), "line 2: column 'ranks' cannot be ''");
  EXPECT_EQ(message("case,verdict\nx,good\n"), "line 2: column 'verdict' cannot be 'good'");
  EXPECT_EQ(message("case,line_ns\nx,nan\n"), "line 2: column 'line_ns' cannot be 'nan'");
  EXPECT_EQ(message("case,skew\nx,inf\n"), "line 2: column 'skew' cannot be 'inf'");
  EXPECT_EQ(message("case,overlap_calls\nx,1.5\n"), "line 2: column 'overlap_calls' cannot be '1.5'");
  EXPECT_EQ(message("case,ranks\n\"x\ny\",2\nz\n"), "line 4 has 1 fields, the first line names 2 columns");
  EXPECT_EQ(message("case,ranks\nx,2"), "line 2 is not complete");
  EXPECT_EQ(message("case,ranks\n\"x,2\n"), "line 2: a quote is not closed");
  EXPECT_EQ(message("case,ranks\n\"x\"y,2\n"), "line 2: 'y' follows a closing quote");
}

TEST(CsvReader, NamesTheFile) {
  EXPECT_EQ(read_csv("/nowhere/at/all.csv").status().message(),
            "cannot read '/nowhere/at/all.csv': No such file or directory");
  EXPECT_EQ(read_csv("/").status().message(), "cannot read '/': Is a directory");
}

}  // namespace
}  // namespace tutti::harness::record

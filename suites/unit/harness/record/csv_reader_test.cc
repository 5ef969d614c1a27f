// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/csv.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::record {
namespace {

using ::testing::ElementsAre;
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

TEST(CsvReader, PassesOverEmptyLinesAtTheEndOnly) {
  for (const char* text : {"case,ranks\nx,2\n\n", "case,ranks\nx,2\n\r\n\n"}) {
    const auto rows = rows_from_csv(text);
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    ASSERT_EQ(rows.value().size(), 1U);
    EXPECT_EQ(rows.value()[0].case_id, "x");
  }
  EXPECT_EQ(rows_from_csv("case,ranks\n\nx,2\n").status().message(),
            "line 2 has 1 field, the first line names 2 columns");
  EXPECT_FALSE(rows_from_csv("case,ranks\nx,2").is_ok());
}

TEST(CsvReader, BytesThatAreNoUtf8AreWrittenOut) {
  Row row = measured_row();
  row.host = "h\xff";
  const auto rows = rows_from_csv(csv_header() + "\n" + csv_row(row) + "\n");
  EXPECT_THAT(csv_row(row), HasSubstr(",h\\xff,"));
  EXPECT_EQ(rows.value()[0].host, "h\\xff");
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
  EXPECT_EQ(message("case,ranks\n\"x\ny\",2\nz\n"), "line 4 has 1 field, the first line names 2 columns");
  EXPECT_EQ(message("case,ranks\nx,2"), "line 2 is not complete");
  EXPECT_EQ(message("case,ranks\n\"x,2\n"), "line 2: a quote is not closed");
  EXPECT_EQ(message("case,ranks\n\"x\"y,2\n"), "line 2: 'y' follows a closing quote");
}

TEST(CsvReader, CountsTheLinesWithinQuotes) {
  const std::string text = "ranks,\"of\na later version\",case\n2,\"\n,\n\",\"a\r\nb\"\n";
  const auto rows = rows_from_csv(text);
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  ASSERT_EQ(rows.value().size(), 1U);
  EXPECT_EQ(rows.value()[0].case_id, "a\nb");
  EXPECT_THAT(column_names_of_csv(text).value(), ElementsAre("ranks", "of\na later version", "case"));
  const auto message = [&](const char* more) { return rows_from_csv(text + more).status().message(); };
  EXPECT_EQ(message("two,,x\n"), "line 7: column 'ranks' cannot be 'two'");
  EXPECT_EQ(message("2,\"\n\n\",\"x\"y\n"), "line 9: 'y' follows a closing quote");
  EXPECT_EQ(message("2,\"\n\n\",\"x\n"), "line 9: a quote is not closed");
  EXPECT_EQ(message("2,\"\n\n\",x"), "line 7 is not complete");
}

TEST(CsvReader, TakesFieldsAsTheyStandButForControlCharacters) {
  const auto ids = [](std::string_view text) {
    const auto rows = rows_from_csv(text);
    EXPECT_TRUE(rows.is_ok()) << rows.status().message();
    std::vector<std::string> result;
    for (const Row& row : rows.is_ok() ? rows.value() : std::vector<Row>()) result.push_back(row.case_id);
    return result;
  };
  EXPECT_THAT(ids("case\n x\t\n\" y \"\n"), ElementsAre(" x\t", " y ")) << "blanks belong to a field";
  EXPECT_THAT(ids("case,reason\r\na,\r\n\"b\r\n\",\"\"\r\n"), ElementsAre("a", "b\n")) << "line ends of an editor";
  EXPECT_THAT(ids("case\na\rb\n"), ElementsAre("a\\x0db")) << "no line end";
  EXPECT_THAT(ids("case\n\"\"\"\"\n\"a\"\"\"\"b\"\n"), ElementsAre("\"", "a\"\"b"));
  EXPECT_THAT(ids("case\n\n\r\n"), ElementsAre("", "")) << "no line is passed over";
  EXPECT_THAT(ids(std::string_view("case\na\0b\n\"\0\"\n", 13)), ElementsAre("a\\x00b", "\\x00"));
  EXPECT_THAT(ids("case\n\x1b[31m\xc2\x9b\xff\n"), ElementsAre("\\x1b[31m\\u009b\\xff")) << "what steers a terminal";
  const std::string lengthy(100'000, 'x');
  EXPECT_THAT(ids("case\n\"" + lengthy + "\"\n" + lengthy + "\n"), ElementsAre(lengthy, lengthy));
}

TEST(CsvReader, RefusesWhatIsHalfQuoted) {
  const auto message = [](std::string_view text) { return rows_from_csv(text).status().message(); };
  EXPECT_EQ(message("case,ranks\n\"x\" ,2\n"), "line 2: ' ' follows a closing quote");
  EXPECT_EQ(message(std::string_view("case\n\"x\"\0\n", 10)), "line 2: '\\x00' follows a closing quote");
  EXPECT_EQ(message("case\n\"x\"\r\"y\n"), "line 2: '\"' follows a closing quote");
  EXPECT_EQ(message("case,ranks\nab\"c\",2\n"),
            "line 2: '\"' follows 'ab': a field that holds quotes must begin with one");
  EXPECT_EQ(message("case\nx\n\"y\""), "line 3 is not complete");
  EXPECT_EQ(message("case\nx\n\r"), "line 3 is not complete");
  EXPECT_EQ(message("case\nx\n\"y\"\""), "line 3: a quote is not closed");
  EXPECT_EQ(column_names_of_csv("").status().message(), "line 1 is not complete");
  EXPECT_THAT(column_names_of_csv("a,b\n\"").value(), ElementsAre("a", "b")) << "the rest is not looked at";
}

TEST(CsvReader, NamesTheFile) {
  EXPECT_EQ(read_csv("/nowhere/at/all.csv").status().message(),
            "cannot read '/nowhere/at/all.csv': No such file or directory");
  EXPECT_EQ(read_csv("/").status().message(), "cannot read '/': Is a directory");
}

}  // namespace
}  // namespace tutti::harness::record

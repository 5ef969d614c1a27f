// SPDX-License-Identifier: Apache-2.0
#include "harness/report/json.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/machine/clock.h"
#include "harness/record/row_json.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::report {
namespace {

using ::testing::HasSubstr;

TEST(JsonRow, IsOneLineWithEveryColumn) {
  EXPECT_THAT(
      row_to_json(skipped_row()),
      ::testing::StartsWith(
          R"({"case":"broadcast/openmpi.none/shm/float/none/P4.processes/root1/8B/out/private/isolated",)"
          R"("collective":"broadcast","backend":"openmpi","algorithm":"none","transport":"shm","buffers":"private",)"
          R"("ranks":4,"dtype":"float","op":"none","root":1,"placement":"out","bytes":8,"count":2,)"
          R"("cadence":"isolated","launch":1,"launches":1,"samples":0,"time_median":null,"time_ci_low":null,)"
          R"("time_ci_high":null,"time_min":null,"time_p95":null,"time_p99":null,"time_max":null,"algbw":null,)"
          R"("busbw":null,"limit_fraction":null,"verdict":"skipped","wrong":null,"slowest_rank":null,)"
          R"("line_ns":null,"reason":"no out-of-place broadcast","ranks_as":"processes","operations":1,)"
          R"("checked_on":"","counts":"none","time_p90":null,"autocorrelation":null,"warm_up":0,)"
          R"("marks":"","limit_time":null,"cache":"","skew":null,)"
          R"("error_ulp":null,"error_ulp_mean":null,"same_on_ranks":"","same_on_repeats":"",)"
          R"("sync":"","invalid_share":null,"arrival_skew":null,"time_from_last":null,"last_rank":null,"buffer_sets":null,)"
          R"("overlap":null,"overlap_called":null,"overlap_calls":null,"time_pure":null,"time_computing":null,)"
          R"("time_overlapped":null,"time_overlapped_called":null,"disturbed":"","machine":"","host":"","timestamp":"",)"
          R"("window":null,"pair":"","message_rate":null,"rank_time_min":null,"rank_time_mean":null,"rank_time_max":null)"));
}

TEST(JsonRow, ReadsBackBitForBit) {
  for (const Row& row : {measured_row(), skipped_row()}) {
    const Result<Row> back = row_from_json(row_to_json(row));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(back.value(), row);
  }
}

TEST(JsonRow, HasTheNumbersOfTheCsvAsText) {
  const Row row = measured_row();
  const std::string text_of_row = row_to_json(row);
  for (const Column& column : columns()) {
    const auto text = field_text(row, column);
    if (column.is_text()) continue;
    EXPECT_THAT(text_of_row, HasSubstr("\"" + std::string(column.name) + "\":" + text.value_or("null")));
  }
}

TEST(JsonRow, IgnoresColumnsOfANewerWriter) {
  const std::string text = row_to_json(skipped_row());
  EXPECT_TRUE(row_from_json(R"({"moon":"full",)" + text.substr(1)).is_ok());
}

TEST(JsonRow, AnOlderWriterHasFewerColumns) {
  const std::string text = row_to_json(measured_row());
  const auto without = [&](const std::string& last) { return text.substr(0, text.find(",\"" + last)) + "}"; };
  const Result<Row> older = row_from_json(without("machine"));
  ASSERT_TRUE(older.is_ok()) << older.status().message();
  EXPECT_EQ(older.value(), measured_row());
  EXPECT_TRUE(row_from_json(without("reason")).is_ok()) << "the first of those that were appended";
  EXPECT_EQ(row_from_json(without("line_ns")).status().message(), "a row without its column 'line_ns'");
}

TEST(JsonRow, NamesTheColumnThatIsWrong) {
  EXPECT_THAT(row_from_json("[1]").status().message(), HasSubstr("must be a JSON object"));
  EXPECT_THAT(row_from_json("{").status().message(), HasSubstr("must be a JSON object"));
  EXPECT_EQ(row_from_json("{}").status().message(), "a row without its column 'case'");
  const std::string text = row_to_json(skipped_row());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return row_from_json(copy).status().message();
  };
  EXPECT_EQ(changed("\"ranks\":4", "\"ranks\":null"), "column 'ranks' of a row cannot be null");
  EXPECT_EQ(changed("\"ranks\":4", "\"ranks\":4.5"), "column 'ranks' of a row cannot be 4.5");
  EXPECT_EQ(changed("\"ranks\":4", "\"ranks\":9223372036854775808"),
            "column 'ranks' of a row cannot be 9223372036854775808");
  EXPECT_EQ(changed("\"time_min\":null", "\"time_min\":\"fast\""), "column 'time_min' of a row cannot be \"fast\"");
  EXPECT_EQ(changed("\"skipped\"", "\"fine\""), "column 'verdict' of a row cannot be \"fine\"");
}

TEST(JsonRow, NestedWithoutEndIsRefused) {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_THAT(row_from_json(nested).status().message(), HasSubstr("must be a JSON object"));
  EXPECT_THAT(row_from_json("{\"case\":" + nested + "}").status().message(), HasSubstr("must be a JSON object"));
}

TEST(JsonRow, TextThatIsNotUtf8StaysValidJson) {
  Row row = skipped_row();
  row.reason = "byte \xff";
  EXPECT_FALSE(nlohmann::json::parse(row_to_json(row), nullptr, false).is_discarded());
}

class JsonFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  [[nodiscard]] nlohmann::json document() const { return nlohmann::json::parse(content_of(path_)); }

  std::string path_ = temporary_path(".json");
};

TEST_F(JsonFileTest, IsValidBeforeTheFirstRowAndAfterEach) {
  RunInfo info;
  info.machine_json = R"({"cpu_model":"abacus"})";
  info.versions = {{"tutti", "0.1.0"}};
  info.command = "tutti run \"all\"";
  info.seed = 18446744073709551615U;
  info.started = "2025-01-31T12:00:00Z";
  info.left_out = {{.cells = 2, .reason = "root 3 on 2 ranks"}};
  info.environment = {{"UCX_TLS", "sm,\"self\""}};
  Result<JsonFile> file = JsonFile::open(path_, info);
  ASSERT_TRUE(file.is_ok()) << file.status().message();

  nlohmann::json before = document();
  EXPECT_EQ(before["schema_version"], 1);
  EXPECT_EQ(before["machine"]["cpu_model"], "abacus");
  EXPECT_EQ(before["versions"]["tutti"], "0.1.0");
  EXPECT_EQ(before["command"], "tutti run \"all\"");
  EXPECT_EQ(before["seed"], 18446744073709551615U);
  EXPECT_EQ(before["started"], "2025-01-31T12:00:00Z");
  EXPECT_EQ(before["left_out"][0]["cells"], 2);
  EXPECT_EQ(before["finished"], false);
  EXPECT_EQ(before["environment"]["UCX_TLS"], "sm,\"self\"");
  EXPECT_EQ(before["rows"], nlohmann::json::array());

  ASSERT_TRUE(file.value().write(std::vector{measured_row(), skipped_row()}).is_ok());
  EXPECT_EQ(document()["rows"].size(), 2U);
  ASSERT_TRUE(file.value().write(std::vector{skipped_row()}).is_ok());
  ASSERT_TRUE(file.value().set_measurement("floor_us", 0.05).is_ok());
  EXPECT_EQ(document()["rows"].size(), 3U);
  EXPECT_EQ(document()["rows"][0]["time_min"], 0.1 + 0.2);
  EXPECT_EQ(document()["rows"][2]["verdict"], "skipped");
  EXPECT_EQ(document()["measurement"]["floor_us"], 0.05);
  EXPECT_EQ(document()["bound"], nlohmann::json::object());
  ASSERT_TRUE(file.value().set_bound("P2", "[[0],[1,3]]").is_ok());
  EXPECT_EQ(document()["bound"]["P2"], nlohmann::json({{0}, {1, 3}}));
  EXPECT_EQ(document()["ranks"], nlohmann::json::object());
  ASSERT_TRUE(file.value().set_ranks("P2", R"([{"rank":1}])").is_ok());
  EXPECT_EQ(document()["ranks"]["P2"][0]["rank"], 1);
  EXPECT_EQ(document()["finished"], false);
  ASSERT_TRUE(file.value().finish().is_ok());
  EXPECT_EQ(document()["finished"], true);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
}

TEST_F(JsonFileTest, ThatCannotBeWrittenIsRefusedWhenOpened) {
  EXPECT_EQ(JsonFile::open("/nowhere/r.json", {}).status().message(),
            "cannot write '/nowhere/r.json': the directory '/nowhere' does not exist");
  EXPECT_EQ(JsonFile::open("/dev/full", {}).status().message(), "cannot write '/dev/full': No space left on device");
  EXPECT_THAT(JsonFile::open(testing::TempDir(), {}).status().message(), HasSubstr("Is a directory"));
}

TEST_F(JsonFileTest, OfADeviceIsWrittenOnce) {
  Result<JsonFile> file = JsonFile::open("/dev/null", {});
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_TRUE(file.value().write(std::vector{skipped_row()}).is_ok());
  EXPECT_TRUE(file.value().end().is_ok());
}

TEST_F(JsonFileTest, KeepsTheLastDocumentWhenItCanNoLongerBeWritten) {
  Result<JsonFile> file = JsonFile::open(path_, {});
  ASSERT_TRUE(file.is_ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{.rlim_cur = 100, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status status = file.value().write(std::vector{skipped_row()});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.message(), "cannot write '" + path_ + "': File too large");
  EXPECT_EQ(document()["rows"].size(), 0U);
}

TEST(UtcNow, IsIso8601) { EXPECT_THAT(utc_now(), testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z")); }

TEST(JsonFile, NamesTheMachinesOfTheMostHosts) {
  auto file = JsonFile::open("", {});
  ASSERT_TRUE(file.is_ok());
  EXPECT_FALSE(nlohmann::json::parse(file.value().text()).contains("machines")) << "there are no hosts";
  const std::string one = R"({"cores_allowed":2})", other = R"({"cores_allowed":3})";
  ASSERT_TRUE(file.value().set_machines({{"a", one}, {"b", other}}).is_ok());
  ASSERT_TRUE(file.value().set_machines({{"a", other}}).is_ok());
  const auto document = nlohmann::json::parse(file.value().text());
  EXPECT_EQ(document["machine"].dump(), one);
  EXPECT_EQ(document["machines"].dump(), R"([{"cores_allowed":2,"host":"a"},{"cores_allowed":3,"host":"b"}])");
}

}  // namespace
}  // namespace tutti::harness::report

// SPDX-License-Identifier: Apache-2.0
#include "harness/report/schema.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/report/json.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::report {
namespace {

std::filesystem::path project_root() { return TUTTI_SOURCE_DIR; }

std::filesystem::path committed_schema() { return project_root() / "harness" / "report" / "schema.json"; }

TEST(Schema, TheDocumentationHasTheTableThatTheColumnsGenerate) {
  EXPECT_THAT(content_of(project_root() / "results" / "README.md"), testing::HasSubstr(columns_markdown()));
}

TEST(Schema, CommittedFileIsWhatTheColumnsGenerate) {
  const std::string generated = temporary_path(".schema.json");
  std::ofstream(generated) << schema_json();
  const bool is_same = content_of(committed_schema()) == schema_json();
  EXPECT_TRUE(is_same) << "if the change is meant: cp " << generated << " " << committed_schema().string();
  if (is_same) std::filesystem::remove(generated);
}

constexpr const char* kValidate = R"(
import json, sys, jsonschema
schema, document = (json.load(open(path)) for path in sys.argv[1:])
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
sys.exit(1 if list(validator(schema).iter_errors(document)) else 0)
)";

/// The exit status of python3 with `arguments`.
int python(const std::string& arguments) { return std::system(("python3 " + arguments + " 2>/dev/null").c_str()); }

class SchemaValidation : public testing::Test {
 protected:
  void SetUp() override {
    if (python("-c 'import jsonschema'") != 0) GTEST_SKIP() << "python3-jsonschema is not installed";
    std::ofstream(script_) << kValidate;
    RunInfo info;
    info.machine_json = machine_to_json(describe_machine());
    info.versions = {{"tutti", "0.1.0"}};
    info.started = utc_now();
    info.measurement = {{"floor_us", 0.05}};
    info.environment = {{"FI_PROVIDER", "shm"}};
    info.left_out = {{.cells = 2, .reason = "root 3 on 2 ranks"}};
    Result<JsonFile> file = JsonFile::open(document_, info);
    ASSERT_TRUE(file.is_ok());
    ASSERT_TRUE(file.value().write(std::vector{measured_row(), skipped_row()}).is_ok());
  }
  void TearDown() override {
    std::filesystem::remove(script_);
    std::filesystem::remove(document_);
  }

  [[nodiscard]] bool is_valid() const { return is_valid(document_); }
  [[nodiscard]] bool is_valid(const std::string& document) const {
    return python(script_ + " " + committed_schema().string() + " " + document) == 0;
  }
  void replace(const std::string& from, const std::string& to) const {
    std::string text = content_of(document_);
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(document_) << text;
  }

  std::string script_ = temporary_path(".py");
  std::string document_ = temporary_path(".json");
};

TEST_F(SchemaValidation, AcceptsADocumentThatWasWritten) { EXPECT_TRUE(is_valid()); }

TEST_F(SchemaValidation, AcceptsADocumentOfAnEarlierVersion) {
  EXPECT_TRUE(is_valid(project_root() / "suites/unit/harness/report/recorded/7f2ec82.json"));
}

TEST_F(SchemaValidation, RefusesAMissingColumn) {
  replace("\"busbw\":8,", "");
  EXPECT_FALSE(is_valid());
}

TEST_F(SchemaValidation, RefusesAMisspeltColumn) {
  replace("\"busbw\":8,", "\"busbw\":8,\"bandwidith\":8,");
  EXPECT_FALSE(is_valid());
}

TEST_F(SchemaValidation, RefusesAnUnknownVerdict) {
  replace("\"verdict\":\"wrong\"", "\"verdict\":\"fine\"");
  EXPECT_FALSE(is_valid());
}

TEST_F(SchemaValidation, RefusesAnEmptyCount) {
  replace("\"count\":1024", "\"count\":null");
  EXPECT_FALSE(is_valid());
}

TEST_F(SchemaValidation, RefusesADocumentWithoutItsSeed) {
  replace("\"seed\"", "\"sead\"");
  EXPECT_FALSE(is_valid());
}

TEST(ColumnsMarkdown, HasALinePerColumn) {
  EXPECT_THAT(columns_markdown(), testing::HasSubstr("| `algbw` | 1e9 bytes/s | bytes / time_median |\n"));
  const std::string table = columns_markdown();
  EXPECT_EQ(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')), columns().size() + 2);
}

}  // namespace
}  // namespace tutti::harness::report

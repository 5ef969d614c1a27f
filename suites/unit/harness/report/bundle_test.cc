// SPDX-License-Identifier: Apache-2.0
#include "harness/report/bundle.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/csv.h"
#include "harness/record/launches.h"
#include "harness/record/row_json.h"

namespace tutti::harness::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A right row of all_reduce on two ranks, with an interval of 2 % to either side.
Row row_with(const std::string& backend, std::int64_t bytes, double time_us, std::int64_t launch = 1) {
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  one.bytes = bytes;
  one.count = bytes / 4;
  one.backend = backend;
  one.algorithm = backend == kOwnBackend ? "ring" : "none";
  Row row = row_of(one);
  row.verdict = Verdict::ok;
  row.launch = launch;
  row.time_median = time_us;
  row.time_ci_low = time_us * 0.98;
  row.time_ci_high = time_us * 1.02;
  row.starter = kOwnSpawn;
  row.machine = "m1";
  row.timestamp = "2026-11-24T04:00:0" + std::to_string(launch) + "Z";
  return row;
}

ResultFile result_of(std::vector<Row> rows, const std::string& file = "a.csv") {
  return {.file = file, .rows = std::move(rows)};
}

json bundle(const std::vector<ResultFile>& results) {
  return json::parse(bundle_of(results, {.made_by = "tutti", .made = "now"}));
}

TEST(Bundle, OneLaunchHasTheRowsIntervalAndARatioBetweenTheExtremes) {
  const json made = bundle({result_of({row_with("tutti", 64, 1), row_with("openmpi", 64, 2)})});
  ASSERT_THAT(made["cells"], SizeIs(1));
  const json& cell = made["cells"][0];
  EXPECT_EQ(cell["cell"], "all_reduce/shm/float/sum/P2.processes/none/64B/out/private/isolated");
  EXPECT_EQ(cell["series"], "all_reduce/shm/float/sum/P2.processes/none/out/private/isolated");
  EXPECT_EQ(cell["systems"][0]["interval_of"], "samples");
  EXPECT_EQ(cell["systems"][1]["curve"], "openmpi");
  ASSERT_THAT(cell["ratios"], SizeIs(1));
  const json& ratio = cell["ratios"][0];
  EXPECT_EQ(ratio["reference"], "openmpi");
  EXPECT_DOUBLE_EQ(ratio["ratio"], 0.5);
  EXPECT_DOUBLE_EQ(ratio["low"], 0.98 / 2.04);
  EXPECT_DOUBLE_EQ(ratio["high"], 1.02 / 1.96);
}

TEST(Bundle, LaunchesAreJoinedAndTheRatioIsThatOfEachLaunch) {
  std::vector<Row> rows;
  for (int launch = 1; launch <= 6; ++launch) {
    rows.push_back(row_with("tutti", 64, 1.0 * launch, launch));
    rows.push_back(row_with("openmpi", 64, 2.0 * launch, launch));
  }
  const json made = bundle({result_of(rows)});
  const json& cell = made["cells"][0];
  EXPECT_DOUBLE_EQ(cell["systems"][0]["time"], 3.5);
  EXPECT_EQ(cell["systems"][0]["interval_of"], "launches");
  EXPECT_EQ(cell["systems"][0]["rows"], json({0, 2, 4, 6, 8, 10}));
  EXPECT_DOUBLE_EQ(cell["ratios"][0]["ratio"], 0.5);
  EXPECT_DOUBLE_EQ(cell["ratios"][0]["low"], 0.5);
  EXPECT_DOUBLE_EQ(cell["ratios"][0]["high"], 0.5);
}

TEST(Bundle, FewLaunchesHaveNoInterval) {
  const json made = bundle({result_of({row_with("tutti", 64, 1, 1), row_with("tutti", 64, 2, 2)})});
  const json& system = made["cells"][0]["systems"][0];
  EXPECT_TRUE(system["low"].is_null());
  EXPECT_TRUE(system["interval_of"].is_null());
}

TEST(Bundle, ARowOfTwoFilesCountsOnce) {
  const std::vector<Row> rows{row_with("tutti", 64, 1), row_with("tutti", 128, 1)};
  const json made = bundle({result_of(rows, "a.json"), result_of(rows, "a.csv")});
  EXPECT_THAT(made["rows"], SizeIs(2));
  EXPECT_THAT(made["cells"], SizeIs(2));
  EXPECT_THAT(made["omitted"].dump(), HasSubstr("2 rows of 'a.csv' stand in it or in a file before it already"));
}

TEST(Bundle, LaunchesOfAnotherStarterAreACellOfTheirOwn) {
  Row under_mpirun = row_with("tutti", 64, 3);
  under_mpirun.starter = "openmpi";
  const json made = bundle({result_of({row_with("tutti", 64, 1), under_mpirun})});
  ASSERT_THAT(made["cells"], SizeIs(2));
  EXPECT_EQ(made["cells"][1]["starter"], "openmpi");
  EXPECT_DOUBLE_EQ(made["cells"][1]["systems"][0]["time"], 3);
}

TEST(Bundle, ACurveNamesTheAlgorithmWhereACellHasSeveral) {
  Row other = row_with("tutti", 64, 2);
  other.algorithm = "two_shot";
  other.case_id = "all_reduce/tutti.two_shot/shm/float/sum/P2.processes/none/64B/out/private/isolated";
  const json made = bundle({result_of({row_with("tutti", 64, 1), other, row_with("openmpi", 64, 2)})});
  const json& systems = made["cells"][0]["systems"];
  EXPECT_EQ(systems[0]["curve"], "tutti.ring");
  EXPECT_EQ(systems[1]["curve"], "tutti.two_shot");
  EXPECT_EQ(systems[2]["curve"], "openmpi");
}

TEST(Bundle, ManySamplesAreThinnedAndTold) {
  SampledCase one{{.case_id = row_with("tutti", 64, 1).case_id}, {}};
  for (int i = 0; i < 10000; ++i) one.samples.push_back({.global_us = 1.0 * i, .is_valid = i % 2 == 0});
  ResultFile file{.file = "s.csv", .kind = ResultFile::Kind::samples};
  file.samples.push_back(one);
  const json made = bundle({file});
  const json& shown = made["samples"][0];
  EXPECT_EQ(shown["taken"], 10000);
  EXPECT_THAT(shown["time"], SizeIs(2000));
  EXPECT_DOUBLE_EQ(shown["time"][1999], 9995);
  EXPECT_EQ(shown["mark"][1999], "late");
  EXPECT_EQ(shown["cell"], "all_reduce/shm/float/sum/P2.processes/none/64B/out/private/isolated");
  EXPECT_EQ(shown["algorithm"], "ring");
}

TEST(Bundle, SamplesOfManyCellsAreThoseOfSomeEvenlyOverAll) {
  ResultFile file{.file = "s.csv", .kind = ResultFile::Kind::samples};
  for (std::int64_t bytes = 1; bytes <= 48; ++bytes) {
    for (const char* backend : {"tutti", "limit"}) {
      for (const std::int64_t launch : {1, 2}) {
        const std::string name = row_with(backend, bytes, 1).case_id;
        file.samples.push_back({{.case_id = name, .launch = launch}, {{.global_us = 1}}});
      }
    }
  }
  file.samples.push_back({{.case_id = row_with("limit", 1000, 1).case_id}, {{.global_us = 1}}});  // alone
  const json made = bundle({file});
  std::map<std::string, int> cells;
  for (const json& one : made["samples"]) ++cells[one["cell"]];
  EXPECT_THAT(cells, SizeIs(12));
  for (const auto& [cell, count] : cells) EXPECT_EQ(count, 4) << cell;
  const auto has = [&](int bytes) { return cells.contains(cell_of_case(row_with("tutti", bytes, 1).case_id)); };
  EXPECT_TRUE(has(1) && has(45));
  EXPECT_EQ(made["omitted"][0], "samples of 48 cells: those of 12 are shown, evenly over all");
}

TEST(Bundle, SamplesOfSeveralStartersAreToldApart) {
  Row mine = row_with("tutti", 64, 1), theirs = row_with("tutti", 64, 3);
  mine.starter = "mpirun";
  mine.launch = 1;
  theirs.starter = "mpiexec";
  theirs.launch = 2;
  ResultFile file{.file = "s.csv", .kind = ResultFile::Kind::samples};
  file.samples.push_back({{.case_id = mine.case_id, .launch = 1}, {{.global_us = 1}}});  // it does not name the starter
  file.samples.push_back({{.case_id = mine.case_id, .launch = 2, .starter = "mpiexec"}, {{.global_us = 2}}});
  const json made = bundle({result_of({mine, theirs}), file});
  ASSERT_THAT(made["samples"], SizeIs(2));
  EXPECT_EQ(made["samples"][0]["starter"], "mpirun");
  EXPECT_EQ(made["samples"][1]["starter"], "mpiexec");
}

TEST(Bundle, WhatWasJudgedComesWithItsSource) {
  auto judged = result_from_text("g.json", R"({"schema_version":1,"kind":"gate","this":"this build","other":"main",)"
                                           R"("counts": {"same": 1},"cells":[{"cell":"c","verdict":"same"}]})");
  ASSERT_TRUE(judged.is_ok()) << judged.status().message();
  const json made = bundle({judged.value()});
  EXPECT_EQ(made["sources"][0]["kind"], "gate");
  EXPECT_EQ(made["sources"][0]["other"], "main");
  EXPECT_EQ(made["judged"][0]["source"], 0);
  EXPECT_EQ(made["judged"][0]["verdict"], "same");
}

TEST(HistoryBundle, HasCommitsAndWhatDisturbedTheRows) {
  std::vector<Row> rows{row_with("tutti", 64, 1), row_with("tutti", 128, 1)};
  rows[0].disturbed = "load; steal";
  rows[1].disturbed = "load";
  ResultFile old = result_of(rows, "old.json");
  old.document = R"({"machine":{"commit":"abc123"}})";
  const json made = json::parse(history_bundle_of({old}, {}, {}));
  const json& result = made["history"]["results"][0];
  EXPECT_EQ(result["commit"], "abc123");
  EXPECT_EQ(result["rows"], 2);
  EXPECT_EQ(result["disturbed"], json({{"load", 2}, {"steal", 1}}));
  EXPECT_EQ(made["history"]["series"][0]["points"][0]["disturbed"], json({"load", "steal"}));
}

TEST(HistoryBundle, IsOfTheNewestMachineOldestFirst) {
  Row newer = row_with("tutti", 64, 2);
  newer.timestamp = "2026-11-25T00:00:00Z";
  Row elsewhere = row_with("tutti", 64, 9);
  elsewhere.machine = "m2";
  elsewhere.timestamp = "2026-11-23T00:00:00Z";
  const json made =
      json::parse(history_bundle_of({result_of({newer}, "new.csv"), result_of({row_with("tutti", 64, 1)}, "old.csv"),
                                     result_of({elsewhere}, "x.csv")},
                                    {}, {"left out: 'd.csv'"}));
  const json& history = made["history"];
  ASSERT_THAT(history["results"], SizeIs(2));
  EXPECT_EQ(history["results"][0]["file"], "old.csv");
  ASSERT_THAT(history["series"], SizeIs(1));
  EXPECT_DOUBLE_EQ(history["series"][0]["points"][0]["time"], 1);
  EXPECT_EQ(history["series"][0]["points"][1]["result"], 1);
  EXPECT_THAT(made["omitted"].dump(), HasSubstr("'x.csv' is left out: it is of the machine 'm2'"));
}

TEST(ResultFile, SaysWhatIsWrongInAFile) {
  const auto said = [](std::string_view text) { return result_from_text("f", text).status().message(); };
  EXPECT_EQ(said(" \n"), "'f': it is empty");
  EXPECT_THAT(said("{\"rows\": ["), HasSubstr("'f': it is damaged"));
  EXPECT_THAT(said("{\"rows\": []}"), HasSubstr("no schema_version"));
  EXPECT_THAT(said("{\"schema_version\": 7, \"rows\": []}"), HasSubstr("schema_version is 7: this build reads 1"));
  EXPECT_THAT(said("{\"schema_version\": 1}"), HasSubstr("neither rows nor judged cells"));
  EXPECT_THAT(said("{\"schema_version\": 1, \"rows\": [{\"case\": 1}]}"), HasSubstr("row 1: "));
  EXPECT_THAT(said("a,b\n1,2\n"), HasSubstr("no column 'case'"));
  EXPECT_THAT(said("case,launch,index,valid,global_us\nx,1\n"), HasSubstr("line 2 has 2 fields"));
}

TEST(ResultFile, RefusesTwoMachines) {
  Row elsewhere = row_with("tutti", 64, 9);
  elsewhere.machine = "m2";
  const std::vector<ResultFile> results{result_of({row_with("tutti", 64, 1)}), result_of({elsewhere}, "b.csv")};
  EXPECT_TRUE(check_one_machine(std::span(results.data(), 1)).is_ok());
  EXPECT_THAT(check_one_machine(results).message(), HasSubstr("'b.csv' is of the machine 'm2', and 'a.csv' of 'm1'"));
}

TEST(ResultFile, RowsOnHostsAreOfTheMachinesOfTheirRanks) {
  const auto on_hosts = [](std::int64_t ranks, const char* machine) {
    Row row = row_with("tutti", 64, 1);
    row.ranks = ranks;
    row.machine = machine;
    row.conditions["hosts"] = "a:1,b:1";
    return row;
  };
  std::vector<ResultFile> results{result_of({on_hosts(1, "a"), on_hosts(2, "a+b")}),
                                  result_of({on_hosts(2, "a+b"), on_hosts(1, "a")}, "b.csv")};
  EXPECT_TRUE(check_one_machine(results).is_ok()) << "one rank is on one of the hosts";
  EXPECT_EQ(machine_of(results[0]), "a+b");
  EXPECT_EQ(machine_of(results[1]), "a+b");
  results[1] = result_of({on_hosts(2, "a+c")}, "b.csv");
  EXPECT_THAT(check_one_machine(results).message(), HasSubstr("'b.csv' is of the machine 'a+c', and 'a.csv' of 'a+b'"));
}

}  // namespace
}  // namespace tutti::harness::report

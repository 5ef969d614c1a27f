// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/fit.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/simulate/walk.h"

namespace tutti::harness::simulate {
namespace {

using testing::HasSubstr;

Row row(std::string_view algorithm, std::int64_t bytes, double us, std::string_view transport = "shm") {
  Row one;
  one.collective = "all_reduce";
  one.backend = "tutti";
  one.algorithm = algorithm;
  one.transport = transport;
  one.ranks = 4;
  one.dtype = "float";
  one.bytes = bytes;
  one.cadence = "isolated";
  one.time_median = us;
  one.verdict = Verdict::ok;
  return one;
}

/// What a machine would measure: the model's own times.
std::vector<Row> rows_of(const Machine& machine, std::string_view transport) {
  std::vector<Row> rows;
  for (const std::string_view name : {"ring", "recursive_doubling", "halving"}) {
    for (std::int64_t bytes = 64; bytes <= 1 << 24; bytes *= 8) {
      const Problem problem{.collective = Collective::all_reduce,
                            .ranks = 4,
                            .ranks_per_host = machine.ranks_per_node < 4 ? machine.ranks_per_node : 0};
      const Schedule schedule = schedule_of(*find_algorithm(Collective::all_reduce, name).value(), problem);
      rows.push_back(
          row(name, bytes, walk(schedule, static_cast<double>(bytes), machine).value().ns / 1000, transport));
    }
  }
  return rows;
}

TEST(Fit, FindsAMachineThatGivesTheSameTimes) {
  Machine machine = example_machine();
  machine.model.near = {
      .latency = 700, .send = SizeTable{{0, 150}}, .receive = SizeTable{{0, 150}}, .wire = SizeTable::line(0, 0.2)};
  machine.model.reduce = machine.model.copy = SizeTable::line(0, 0.08);
  const auto run = measured_run(rows_of(machine, "shm"));
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_EQ(run.value().ranks_per_node, 4);
  const auto found = fit(run.value(), "found");
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_TRUE(found.value().machine.has_near);
  EXPECT_FALSE(found.value().machine.has_far);
  EXPECT_LT(median_error(found.value(), false), 0.02);
  EXPECT_LT(median_error(found.value(), true), 0.05);
  EXPECT_THAT(found.value().kept, testing::Contains("flag")) << "no such algorithm has one";
}

TEST(Fit, BetweenNodesFindsTheFarCosts) {
  Machine machine = example_machine();
  machine.ranks_per_node = 1;
  machine.model.eager_bytes = INFINITY;
  machine.model.far = {.latency = 20'000,
                       .send = SizeTable{{0, 5000}},
                       .receive = SizeTable{{0, 5000}},
                       .wire = SizeTable::line(0, 0.8)};
  const auto run = measured_run(rows_of(machine, "tcp"));
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_EQ(run.value().ranks_per_node, 1);
  const Fit found = fit(run.value(), "found").value();
  EXPECT_FALSE(found.machine.has_near);
  EXPECT_LT(median_error(found, true), 0.05);
  const LinkCosts& far = found.machine.model.far;
  EXPECT_NEAR((far.latency + far.send.at(0) + far.receive.at(0)) / 30'000, 1, 0.05);
  EXPECT_NEAR(far.wire.at(1 << 24) / (0.8 * (1 << 24)), 1, 0.1);
}

TEST(Fit, HoldsOutEveryOtherSize) {
  const Fit found = fit(measured_run(rows_of(example_machine(), "shm")).value(), "found").value();
  for (const FittedTime& one : found.times) {
    const bool is_odd = static_cast<int>(std::log2(one.time.bytes) - 6) / 3 % 2 == 1;
    EXPECT_EQ(one.is_held_out, is_odd && one.time.bytes < 1 << 24) << one.time.bytes;
  }
}

TEST(Fit, PredictsSizesFromTheOthersAlone) {
  const MeasuredRun run = measured_run(rows_of(example_machine(), "shm")).value();
  const Fit first = fit(run, "first").value();
  MeasuredRun slower = run;
  for (std::size_t i = 0; i < slower.times.size(); ++i) {
    if (first.times[i].is_held_out) slower.times[i].us *= 10;
  }
  const Fit second = fit(slower, "second").value();
  for (std::size_t i = 0; i < first.times.size(); ++i) EXPECT_EQ(second.times[i].us, first.times[i].us);
}

TEST(Fit, TakesUndisturbedTimesOfOwnAlgorithmsAlone) {
  std::vector<Row> rows{row("ring", 8, 1), row("ring", 8, 1), row("none", 8, 1), row("ring", 8, 1), row("ring", 8, 0)};
  rows[1].disturbed = "load; steal";
  rows[3].cadence = "streaming";
  const MeasuredRun run = measured_run(rows).value();
  EXPECT_EQ(run.times.size(), 1U);
  EXPECT_EQ(run.disturbed, 1U);
  EXPECT_EQ(run.others, 3U);
}

TEST(Fit, TakesTheMedianOfLaunches) {
  const MeasuredRun run =
      measured_run({row("ring", 8, 1), row("ring", 8, 5), row("ring", 8, 2), row("ring", 64, 7)}).value();
  ASSERT_EQ(run.times.size(), 2U);
  EXPECT_EQ(run.times[0].us, 2);
  EXPECT_EQ(run.times[1].us, 7);
}

TEST(Fit, RefusesWhatItCannotUse) {
  std::vector<Row> rows{row("ring", 8, 1)};
  rows[0].disturbed = "load";
  EXPECT_EQ(measured_run(rows).status().code(), Code::unavailable);
  EXPECT_THAT(measured_run(rows).status().message(), HasSubstr("each of its 1 rows of tutti was disturbed (load)"));
  EXPECT_THAT(measured_run({}).status().message(), HasSubstr("none of its 0 rows"));
  const auto few = fit(measured_run({row("ring", 8, 1), row("ring", 64, 1)}).value(), "few");
  EXPECT_THAT(few.status().message(), HasSubstr("2 sizes, and a fit needs 4"));
  std::vector<Row> mixed{row("ring", 8, 1, "tcp"), row("ring", 8, 1, "tcp")};
  mixed[1].conditions["pretended_hosts"] = "2";
  EXPECT_THAT(measured_run(mixed).status().message(), HasSubstr("how many ranks share a node"));
}

TEST(Fit, KnowsHowManyRanksShareANode) {
  std::vector<Row> rows{row("ring", 8, 1, "tcp")};
  EXPECT_EQ(measured_run(rows).value().ranks_per_node, 1);
  rows[0].conditions["pretended_hosts"] = "2";
  EXPECT_EQ(measured_run(rows).value().ranks_per_node, 2);
  rows[0].conditions.clear();
  rows[0].conditions["hosts"] = "a:2,b:2";
  EXPECT_EQ(measured_run(rows).value().ranks_per_node, 2);
}

}  // namespace
}  // namespace tutti::harness::simulate

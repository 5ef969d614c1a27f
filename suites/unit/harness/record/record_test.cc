// SPDX-License-Identifier: Apache-2.0
#include "harness/record/record.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::record {
namespace {

const Column& column(std::string_view name) {
  for (const Column& candidate : columns()) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no column " << name;
  return columns().front();
}

TEST(Record, EveryColumnHasANameOfItsOwnAndADescription) {
  std::set<std::string_view> names;
  for (const Column& one : columns()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.description.empty()) << one.name;
  }
}

TEST(Record, NoTwoColumnsShareAField) {
  for (const Column& one : columns()) {
    for (const Column& other : columns()) {
      EXPECT_TRUE(&one == &other || one.member != other.member) << one.name << " " << other.name;
    }
  }
}

TEST(Record, NumbersAreTheFewestDigitsThatReadBack) {
  Row row = measured_row();
  EXPECT_EQ(field_text(row, column("time_median")), "0.512");
  EXPECT_EQ(field_text(row, column("time_min")), "0.30000000000000004");
  EXPECT_EQ(field_text(row, column("time_p95")), "1");
  EXPECT_EQ(field_text(row, column("time_max")), "1e+21");
  EXPECT_EQ(field_text(row, column("bytes")), "4096");
  EXPECT_EQ(field_text(row, column("verdict")), "wrong");
}

TEST(Record, WhatIsNotMeasuredOrNotFiniteIsEmpty) {
  Row row = skipped_row();
  EXPECT_EQ(field_text(row, column("time_median")), std::nullopt);
  EXPECT_EQ(field_text(row, column("wrong")), std::nullopt);
  row.algbw = std::numeric_limits<double>::infinity();
  row.busbw = std::nan("");
  EXPECT_EQ(field_text(row, column("algbw")), std::nullopt);
  EXPECT_EQ(field_text(row, column("busbw")), std::nullopt);
}

TEST(Record, OfACaseIsUncheckedAndHasTheCasesFields) {
  Case one;
  one.collective = Collective::broadcast;
  one.dtype = Dtype::bf16;
  one.ranks = 4;
  one.root = 1;
  one.bytes = 1048576;
  one.count = 524288;
  one.is_in_place = true;
  one.algorithm = "knomial";
  const Row row = row_of(one);
  EXPECT_EQ(row.case_id, "broadcast/tutti.knomial/shm/bfloat16/none/P4.processes/root1/1048576B/in/private/isolated");
  EXPECT_EQ(row.collective, "broadcast");
  EXPECT_EQ(row.backend, "tutti");
  EXPECT_EQ(row.algorithm, "knomial");
  EXPECT_EQ(row.transport, "shm");
  EXPECT_EQ(row.buffers, "private");
  EXPECT_EQ(row.ranks, 4);
  EXPECT_EQ(row.ranks_as, "processes");
  EXPECT_EQ(row.dtype, "bfloat16");
  EXPECT_EQ(row.op, "none");
  EXPECT_EQ(row.root, 1);
  EXPECT_EQ(row.placement, "in");
  EXPECT_EQ(row.bytes, 1048576);
  EXPECT_EQ(row.count, 524288);
  EXPECT_EQ(row.cadence, "isolated");
  EXPECT_EQ(row.verdict, Verdict::unchecked);
  EXPECT_FALSE(row.time_median || row.algbw || row.wrong || row.line_ns);
}

TEST(Record, OfABarrierHasNeitherRootNorPlacement) {
  const Row row = row_of(Case{});
  EXPECT_FALSE(row.root.has_value());
  EXPECT_EQ(row.placement, "none");
  EXPECT_EQ(row.buffers, "none");
  EXPECT_EQ(row.dtype, "none");
}

TEST(Record, BandwidthsFollowFromTheMedian) {
  Row row = row_of(Case{});
  row.bytes = 1000000;
  const Summary summary{.samples = 9, .median = 100.0, .ci_low = 90.0, .ci_high = 110.0, .min = 80.0, .max = 200.0};
  set_times(row, summary, {.collective = Collective::all_reduce, .ranks = 4});
  EXPECT_EQ(row.samples, 9);
  EXPECT_EQ(row.time_median, 100.0);
  EXPECT_EQ(row.time_ci_low, 90.0);
  EXPECT_EQ(row.time_ci_high, 110.0);
  EXPECT_EQ(row.time_min, 80.0);
  EXPECT_FALSE(row.time_p95 || row.time_p99);
  EXPECT_EQ(row.time_max, 200.0);
  EXPECT_DOUBLE_EQ(row.algbw.value(), 10.0);
  EXPECT_DOUBLE_EQ(row.busbw.value(), 15.0);
}

TEST(Record, OfAWindowHasTheBandwidthAndTheRateOfAllItsMessages) {
  Case one;
  one.collective = Collective::bibandwidth;
  one.ranks = 5;
  one.bytes = 1000;
  one.pairing.window = 10;
  Row row = row_of(one);
  EXPECT_EQ(row.window, 10);
  EXPECT_EQ(row.pair, "neighbours");
  set_times(row, {.samples = 1, .median = 20.0}, one.problem());
  EXPECT_DOUBLE_EQ(row.algbw.value(), 0.5);
  EXPECT_DOUBLE_EQ(row.busbw.value(), 1.0) << "in both directions";
  EXPECT_DOUBLE_EQ(row.message_rate.value(), 2e6) << "ten messages of two pairs in both directions in 20 us";
  row.bytes = 0;
  row.algbw = row.busbw = row.message_rate = {};
  set_times(row, {.samples = 1, .median = 20.0}, one.problem());
  EXPECT_FALSE(row.algbw || row.busbw);
  EXPECT_DOUBLE_EQ(row.message_rate.value(), 2e6);
  one.pairing.first = 1;
  one.pairing.second = 4;
  EXPECT_EQ(row_of(one).pair, "1-4");
  one.collective = Collective::sendrecv;
  EXPECT_EQ(row_of(one).pair, "");
  EXPECT_FALSE(row_of(one).window);
}

TEST(Record, ABarrierHasTimesAndNoBandwidth) {
  Row row = row_of(Case{});
  set_times(row, {.samples = 1, .median = 0.5}, {.collective = Collective::barrier, .ranks = 2});
  EXPECT_EQ(row.time_median, 0.5);
  EXPECT_FALSE(row.algbw || row.busbw);
}

TEST(Disturbances, AreWholeWords) {
  std::string seen;
  add_disturbances(seen, "load on n10; quota on n10");
  add_disturbances(seen, "load on n1; quota");
  add_disturbances(seen, "quota on n10; load on n1");
  EXPECT_EQ(seen, "load on n10; quota on n10; load on n1; quota");
}

TEST(Disturbances, AreFoundOnAnyHost) {
  Row row;
  EXPECT_FALSE(is_disturbed_by(row, "load"));
  row.disturbed = "quota; load on n1";
  EXPECT_TRUE(is_disturbed_by(row, "load"));
  EXPECT_TRUE(is_disturbed_by(row, "quota"));
  row.disturbed = "quota on load; loader";
  EXPECT_FALSE(is_disturbed_by(row, "load")) << "a host has that name";
}

}  // namespace
}  // namespace tutti::harness::record

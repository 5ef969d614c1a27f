// SPDX-License-Identifier: Apache-2.0
// Overlap by IMB's definition, of calls that are verified as all others.
#include "harness/measure/overlap.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/measure/cell.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness {
namespace {

TEST(Overlap, IsTheShareOfTheShorterOneThatCostNothing) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 10), 100);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 20), 0);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 15), 50);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 8, 14), 50) << "4 of 8";
  EXPECT_DOUBLE_EQ(overlap_percent(8, 10, 14), 50) << "of the shorter one, whichever it is";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 25), 0) << "never below";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 8), 100) << "never above";
}

TEST(Overlap, PartsOfAComputationAreAllOfIt) {
  const Computation work = Computation::lasting(50);
  EXPECT_GT(work.turns(), 100);
  EXPECT_EQ(Computation::lasting(0).turns(), 1);
}

Case overlapped_case(const Backend& backend) {
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = backend.name();
  one.ranks_as = RanksAs::threads;
  set_bytes(one, 400);
  return one;
}

Variant variant_of(Host& host, LazyBackend& backend) {
  return Variant::create(host, {.backend = backend,
                                .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                .instance = overlapped_case(backend),
                                .is_asynchronous = true})
      .value();
}

HostOptions alone() { return {.host = 0, .hosts = 1, .job_ranks = 1, .ranks = {0}}; }

TEST(Overlap, RoundsHaveFourTimesAndOneCallInTenRoundsIsVerified) {
  const BoardMemory memory(1);
  Host host(memory.board(), alone());
  LazyBackend backend([](int) { return true; });
  Variant variant = variant_of(host, backend);
  const auto result = measure_overlap(host, variant, {.calls = 3, .pure_us = 1, .salt = 5, .end_ns = 1});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result.value().wrong, 0) << result.value().reason;
  for (const auto* times : {&result.value().pure_us, &result.value().computing_us, &result.value().overlapped_us,
                            &result.value().called_us}) {
    EXPECT_EQ(times->size(), 1U) << "there was no time for more";
  }
  EXPECT_EQ(backend.calls(), 3 + 1) << "of a round all but the computing alone, and the one that is verified";
  const auto full =
      measure_overlap(host, variant, {.calls = 3, .pure_us = 1, .salt = 5, .end_ns = monotonic_ns() + 60'000'000'000});
  EXPECT_EQ(full.value().pure_us.size(), 200U) << "enough, however much time there is";
}

TEST(Overlap, CatchesASystemThatDoesNotWorkInTheCallThatIsVerified) {
  const BoardMemory memory(1);
  Host host(memory.board(), alone());
  LazyBackend backend([](int number) { return number < 3; });
  Variant variant = variant_of(host, backend);
  const OverlapOptions options{.calls = 3, .pure_us = 1, .salt = 5, .end_ns = 1};
  EXPECT_GT(measure_overlap(host, variant, options).value().wrong, 0);
  OverlapOptions unchecked = options;
  unchecked.checking = Checking::none;
  EXPECT_EQ(measure_overlap(host, variant, unchecked).value().wrong, 0);
}

TEST(Overlap, IsPartOfTheRowWhereItIsAskedFor) {
  const BoardMemory memory(1);
  Host host(memory.board(), alone());
  for (const int calls : {0, 4}) {
    LazyBackend backend([](int) { return true; });
    std::vector<Variant> variants;
    variants.push_back(variant_of(host, backend));
    const auto rows =
        measure_cell(host, variants, {.most_time = std::chrono::milliseconds(40), .overlap_calls = calls});
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    const Row& row = rows.value().front();
    EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
    EXPECT_EQ(row.overlap_calls.value_or(0), calls);
    EXPECT_EQ(row.overlap.has_value(), calls > 0);
    if (calls == 0) continue;
    EXPECT_DOUBLE_EQ(*row.overlap, overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped));
    EXPECT_DOUBLE_EQ(*row.overlap_called,
                     overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped_called));
  }
}

}  // namespace
}  // namespace tutti::harness

// SPDX-License-Identifier: Apache-2.0
// Systems that add exactly, in another order on one rank, in another order each time, and in too narrow a type.
#include "harness/measure/precision.h"

#include <cstring>
#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/measure/cell.h"
#include "harness/measure/rows.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/plain_backend.h"

namespace tutti::harness::measure::precision {
namespace {

constexpr int kRanks = 5;
constexpr Count kCount = 3000;

/// The ranks in the order in which `rank` adds them in call `number`.
using OrderOf = std::function<std::vector<std::size_t>(std::size_t rank, int number)>;
std::vector<std::size_t> in_rank_order(std::size_t, int) {
  std::vector<std::size_t> order(kRanks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}
std::vector<std::size_t> backwards() {
  std::vector<std::size_t> order = in_rank_order(0, 0);
  std::ranges::reverse(order);
  return order;
}
float in_float(float sum) { return sum; }
float in_bfloat16(float sum) { return BFloat16::from_float(sum).to_float(); }

/// Sums floats, or wraps integers of 32 bits, of all ranks of one runner when the last of them posts.
class Adder final : public PlainBackend {
 public:
  explicit Adder(OrderOf order, float (*rounded)(float) = in_float)
      : PlainBackend("adder"), order_(std::move(order)), rounded_(rounded) {}

  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    return std::unique_ptr<Prepared>(new Sums(*this, one.dtype, {buffers.begin(), buffers.end()}));
  }

 private:
  class Sums final : public Prepared {
   public:
    Sums(Adder& adder, Dtype dtype, std::vector<RankBuffers> buffers)
        : adder_(adder), dtype_(dtype), buffers_(std::move(buffers)) {}
    Status post(std::size_t index) override {
      if (index + 1 < buffers_.size()) return {};
      for (std::size_t rank = 0; rank < buffers_.size(); ++rank) {
        dtype_ == Dtype::f32 ? add<float>(rank) : add<std::uint32_t>(rank);
      }
      ++number_;
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return true; }

   private:
    template <class T>
    void add(std::size_t rank) {
      for (Count i = 0; i < kCount; ++i) {
        T sum{};
        for (const std::size_t from : adder_.order_(rank, number_)) {
          sum += static_cast<const T*>(buffers_[from].input)[i];
          if constexpr (std::is_same_v<T, float>) sum = adder_.rounded_(sum);
        }
        static_cast<T*>(buffers_[rank].output)[i] = sum;
      }
    }
    Adder& adder_;
    Dtype dtype_;
    std::vector<RankBuffers> buffers_;
    int number_ = 0;
  };

  OrderOf order_;
  float (*rounded_)(float);
};

Row row_of_adder(OrderOf order, float (*rounded)(float) = in_float, Dtype dtype = Dtype::f32,
                 Checking checking = Checking::sample) {
  Adder adder(std::move(order), rounded);
  Case one;
  one.collective = Collective::all_reduce;
  one.backend = adder.name();
  one.dtype = dtype;
  one.op = Op::sum;
  one.ranks = kRanks;
  one.ranks_as = RanksAs::tasks;
  one.count = kCount;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  const BoardMemory memory(kRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kRanks, .ranks = {0, 1, 2, 3, 4}});
  std::vector<Variant> variants;
  variants.push_back(Variant::create(runner, {.backend = adder,
                                              .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                              .instance = one})
                         .value());
  auto rows =
      measure_cell(runner, variants, {.most_time = std::chrono::nanoseconds(0), .conditions = {.checking = checking}});
  EXPECT_TRUE(rows.is_ok()) << rows.status().message();
  EXPECT_EQ(variants.front().values(), Values::exact) << "as it was";
  return rows.value().front();
}

TEST(Precision, ARowSaysHowExactItsResultsAreAndThatTheyAreTheSame) {
  const Row row = row_of_adder(in_rank_order);
  EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  ASSERT_TRUE(row.error_ulp && row.error_ulp_mean);
  EXPECT_GT(*row.error_ulp, 0.5) << "four additions, and sums that cancel";
  EXPECT_GT(*row.error_ulp_mean, 0.1);
  EXPECT_LT(*row.error_ulp_mean, *row.error_ulp);
  EXPECT_EQ(row.same_on_ranks, "yes");
  EXPECT_EQ(row.same_on_repeats, "yes");
}

TEST(Precision, AnotherOrderOnOneRankIsRightAndOtherBits) {
  const Row row =
      row_of_adder([](std::size_t rank, int number) { return rank == 3 ? backwards() : in_rank_order(rank, number); });
  EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  EXPECT_EQ(row.same_on_ranks, "no");
  EXPECT_EQ(row.same_on_repeats, "yes");
}

TEST(Precision, AnotherOrderEachTimeIsRightAndOtherBitsTheNextTime) {
  const Row row = row_of_adder(
      [](std::size_t rank, int number) { return number % 2 == 0 ? backwards() : in_rank_order(rank, number); });
  EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  EXPECT_EQ(row.same_on_ranks, "yes");
  EXPECT_EQ(row.same_on_repeats, "no");
}

TEST(Precision, WhatIsRoundedToTooNarrowATypeIsWrong) {
  const Row row = row_of_adder(in_rank_order, in_bfloat16);
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_GT(row.error_ulp_mean.value_or(0), 100);
  EXPECT_EQ(row.same_on_ranks, "yes");
}

TEST(Precision, OfIntegersAndOfWhatIsNotCheckedIsEmpty) {
  for (const Row& row : {row_of_adder(in_rank_order, in_float, Dtype::u32),
                         row_of_adder(in_rank_order, in_float, Dtype::f32, Checking::none)}) {
    EXPECT_FALSE(row.error_ulp || row.error_ulp_mean);
    EXPECT_EQ(row.same_on_ranks + row.same_on_repeats, "");
  }
}

TEST(Precision, OfOtherCollectivesSaysWhereTheBitsCanBeCompared) {
  Cell cell;
  cell.dtype = Dtype::f16;
  for (const auto& [op, has] : {std::pair{Op::sum, true},
                                {Op::avg, true},
                                {Op::prod, true},
                                {Op::premul_sum, true},
                                {Op::max, false},
                                {Op::none, false}}) {
    cell.op = op;
    EXPECT_EQ(has_precision(cell), has) << to_string(op);
  }
}

TEST(Precision, AWrongResultOnRandomValuesMakesTheRowWrongAndSaysWhy) {
  Row row;
  row.verdict = Verdict::ok;
  row.wrong = 0;
  set_precision(row, {.accuracy = Accuracy{.elements = 10, .max_ulp = 3, .sum_ulp = 5},
                      .is_same_on_repeats = true,
                      .damage = {.wrong = 7, .text = "rank 1: output: too far"}});
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_EQ(row.wrong, 7);
  EXPECT_EQ(row.reason, "rank 1: output: too far, on random values");
  EXPECT_EQ(row.error_ulp_mean, 0.5);
  EXPECT_EQ(row.same_on_ranks, "") << "on one rank each";
}

}  // namespace
}  // namespace tutti::harness::measure::precision

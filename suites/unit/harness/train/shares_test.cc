// SPDX-License-Identifier: Apache-2.0
// Who learns from what, which gradients go together, and how a sum is judged.
#include "harness/train/shares.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/train/gradients.h"
#include "harness/train/network.h"
#include "harness/train/replay.h"

namespace tutti::harness::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Shares, EveryEpochDealsOutEveryImageOnce) {
  Shares shares({.images = 23, .ranks = 3, .batch = 9, .seed = 5});
  EXPECT_EQ(shares.images_of_rank(), 7U);
  EXPECT_EQ(shares.batch_of_rank(), 3U);
  ASSERT_EQ(shares.steps_of_epoch(), 3U);
  for (const std::size_t epoch : {0U, 1U}) {
    std::set<std::uint32_t> seen;
    for (std::size_t step = 0; step < 3; ++step) {
      for (int rank = 0; rank < 3; ++rank) {
        const auto batch = shares.batch(3 * epoch + step, rank);
        EXPECT_EQ(batch.size(), step == 2 ? 1U : 3U);
        for (const std::uint32_t image : batch) EXPECT_TRUE(seen.insert(image).second && image < 23U);
      }
    }
    EXPECT_EQ(seen.size(), 21U);
  }
}

TEST(Shares, SeedsAndEpochsHaveOrdersOfTheirOwn) {
  const auto order = [](std::uint64_t seed, std::size_t step) {
    Shares shares({.images = 40, .ranks = 2, .batch = 40, .seed = seed});
    const auto batch = shares.batch(step, 1);
    return std::vector<std::uint32_t>(batch.begin(), batch.end());
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  const auto sorted = [](std::vector<std::uint32_t> all) {
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(sorted(order(1, 0)), sorted(order(1, 1))) << "the share stays";
}

TEST(Pieces, AreTensorsOrBuckets) {
  EXPECT_EQ(pieces_of(Way::per_parameter, 1).size(), kTensors.size());
  EXPECT_THAT(pieces_of(Way::buckets, 32768), ElementsAre(Piece{0, 510}, Piece{510, 16000}, Piece{16510, 5330}));
  EXPECT_THAT(pieces_of(Way::overlapped, std::size_t{1} << 20), ElementsAre(Piece{0, kParameters}));
  EXPECT_EQ(pieces_of(Way::ring, 4).size(), kTensors.size());
}

TEST(Pieces, WaysByName) {
  EXPECT_THAT(parse_ways("ring,per_parameter,ring").value(), ElementsAre(Way::ring, Way::per_parameter));
  EXPECT_EQ(parse_ways("all").value().size(), 4U);
  EXPECT_THAT(std::string(parse_ways("overlaped").status().message()), HasSubstr("did you mean 'overlapped'?"));
}

TEST(AddsSerially, IsTheOrderAndTheGroupingOfALoop) {
  const auto adds = [](std::string_view name, int ranks) {
    return adds_serially(*find_algorithm(Collective::all_reduce, name).value(), ranks).value();
  };
  for (const char* const name : {"one_shot", "two_shot"}) EXPECT_TRUE(adds(name, 2) && adds(name, 5)) << name;
  for (const char* const name : {"ring", "recursive_doubling"}) EXPECT_TRUE(adds(name, 2) && !adds(name, 4)) << name;
}

/// The sums of a serial run over two shares.
struct Serial {
  Digits digits = draw_digits(1, 8);
  Shares shares{{.images = 8, .ranks = 2, .batch = 8, .seed = 1}};
  std::vector<float> parameters = first_parameters(1), sums = std::vector<float>(kParameters);
  Serial() {
    Network network;
    std::vector<float> gradients(kParameters);
    for (int rank = 0; rank < 2; ++rank) {
      network.forward(parameters, {.digits = digits, .indices = shares.batch(0, rank)});
      EXPECT_TRUE(network.backward(parameters, gradients).is_ok());
      for (std::size_t i = 0; i < kParameters; ++i) sums[i] += gradients[i];
    }
  }
  [[nodiscard]] Comparison compare() const { return SerialRun(digits, shares, 2).compare(parameters, 0, sums); }
};

TEST(SerialRun, TellsBitsFromRoundingFromWrong) {
  Serial serial;
  EXPECT_TRUE(serial.compare().has_bits);
  float& one = serial.sums[504];
  const float right = one;
  ASSERT_NE(one, 0.0F);
  one = std::nextafter(right, 10.0F);
  EXPECT_FALSE(serial.compare().has_bits);
  EXPECT_LE(serial.compare().of_bound, 1);
  one = right * 1.001F;
  EXPECT_GT(serial.compare().of_bound, 1);
  EXPECT_THAT(serial.compare().text(), HasSubstr("element 4 of fc2.bias is "));
  one = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(serial.compare().of_bound));
}

TEST(Model, TakesAStepDownTheMean) {
  Model model{.parameters = {1, 2}, .velocity = {0, 1}};
  model.take_step(std::vector<float>{4, 0}, 2, 0.5F, 0.5F);
  EXPECT_THAT(model.parameters, ElementsAre(0, 1.75F));
  EXPECT_THAT(model.velocity, ElementsAre(2, 0.5F));
}

}  // namespace
}  // namespace tutti::harness::train

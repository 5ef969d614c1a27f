// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/dependence.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::statistics {
namespace {

TEST(Dependence, AutocorrelationOfARisingLine) {
  EXPECT_DOUBLE_EQ(*autocorrelation(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 0.7);
  EXPECT_DOUBLE_EQ(*autocorrelation(std::vector<double>{1, -1, 1, -1}), -0.75);
  EXPECT_FALSE(autocorrelation(std::vector<double>{2, 2, 2}).has_value());
  EXPECT_FALSE(autocorrelation(std::vector<double>{2}).has_value());
}

// Luteinizing hormone in blood samples at 10 minute intervals (Diggle 1990, Time Series, table A.1), lag 1 as published
// with R's acf (Venables & Ripley, Modern Applied Statistics with S, chapter 14).
TEST(Dependence, AutocorrelationOfAPublishedSeries) {
  const std::vector<double> hormone{2.4, 2.4, 2.4, 2.2, 2.1, 1.5, 2.3, 2.3, 2.5, 2.0, 1.9, 1.7, 2.2, 1.8, 3.2, 3.2,
                                    2.7, 2.2, 2.2, 1.9, 1.9, 1.8, 2.7, 3.0, 2.3, 2.0, 2.0, 2.9, 2.9, 2.7, 2.7, 2.3,
                                    2.6, 2.4, 1.8, 1.7, 1.5, 1.4, 2.1, 3.3, 3.5, 3.5, 3.1, 2.6, 2.1, 3.4, 3.0, 2.9};
  ASSERT_EQ(hormone.size(), 48U);
  EXPECT_NEAR(*autocorrelation(hormone), 0.576, 5e-4);
}

/// Signs that stay for `run` samples each.
std::vector<double> in_runs(std::size_t n, std::size_t run) {
  SplitMix random(5);
  std::vector<double> samples;
  while (samples.size() < n) samples.insert(samples.end(), run, random.below(2) == 0 ? -1.0 : 1.0);
  samples.resize(n);
  return samples;
}

TEST(Dependence, SamplesThatKnowNothingOfEachOtherAreNotInflated) {
  EXPECT_EQ(sign_inflation(in_runs(1000, 1), 0), 1);
  EXPECT_EQ(sign_inflation(std::vector<double>(200, 3), 3), 1) << "nothing lies below or above";
  EXPECT_EQ(sign_inflation(std::vector<double>{1}, 1), 1);
}

// Of runs of 4, only each fourth sample says something new: 4 times the variance. A process of order 1 with the same
// lag, 0.75, has 7 times.
TEST(Dependence, RunsOfFourAreInflatedByFourToSeven) {
  const double inflation = sign_inflation(in_runs(4000, 4), 0);
  EXPECT_GT(inflation, 4.0);
  EXPECT_LT(inflation, 8.5);
}

/// Most of every 25 samples lie on one side: little lag 1, long memory.
std::vector<double> with_long_memory(std::size_t n) {
  SplitMix random(5);
  std::vector<double> samples;
  while (samples.size() < n) {
    const double share = random.below(2) == 0 ? 0.2 : 0.8;
    for (int i = 0; i < 25; ++i) samples.push_back(random.uniform() < share ? -1.0 : 1.0);
  }
  return samples;
}

TEST(Dependence, TheBootstrapSeesMoreThanLagOne) {
  EXPECT_GT(sign_inflation(with_long_memory(2000), 0), 3.0) << "a process of order 1 with lag 0.36 has 2.1";
}

TEST(Dependence, FewSamplesAreTakenForDependentAsFarAsTheyAllow) {
  EXPECT_GT(sign_inflation(in_runs(40, 1), 0), 1.0);
  EXPECT_GT(sign_inflation(in_runs(40, 5), 0), 2.0);
  EXPECT_EQ(sign_inflation(std::vector<double>{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1}, 0), 1);
}

TEST(Dependence, TheSameSeedDrawsTheSame) {
  const std::vector<double> samples = with_long_memory(500);
  EXPECT_EQ(sign_inflation(samples, 0, 7), sign_inflation(samples, 0, 7));
  std::set<double> drawn;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) drawn.insert(sign_inflation(samples, 0, seed));
  EXPECT_GT(drawn.size(), 1U) << "each seed draws for itself";
}

}  // namespace
}  // namespace tutti::harness::statistics

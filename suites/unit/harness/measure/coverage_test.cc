// SPDX-License-Identifier: Apache-2.0
// How often the reported 95 % interval holds the true median, with the stopping rule on: 2,000 simulated cells each, of
// times of five kinds, seeded. The lines that it prints are the table in harness/measure/README.md.
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/measure/settling.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::measure {
namespace {

constexpr int kCells = 2000;
constexpr double kUs = 100;  // about the median of all kinds, so that 1 % is asked for

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return bits_.uniform(); }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  SplitMix bits_;
};

/// Times of one kind, one after the other; all of them positive for what is asked of them here.
struct Times {
  double median = kUs;  ///< the true one
  double tick = 0;
  std::function<double(Random&)> next;
};
using Kind = std::function<Times(double spread_us)>;

Times normal(double spread) {
  return {.next = [spread](Random& random) { return kUs + spread * random.normal(); }};
}
/// A least time, and on top of it what is as likely to end at any moment.
Times skewed(double spread) {
  return {.median = kUs + spread * std::numbers::ln2,
          .next = [spread](Random& random) { return kUs - spread * std::log(random.uniform()); }};
}
/// Two modes that lie six of their own widths apart; the true median is where the first one thins out.
Times bimodal(double spread, double share) {
  const double other = kUs + 6 * spread;
  const auto below = [spread](double middle, double time) {
    return 0.5 * std::erfc(-(time - middle) / spread / std::numbers::sqrt2);
  };
  double low = kUs - 10 * spread, high = other + 10 * spread;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (share * below(kUs, middle) + (1 - share) * below(other, middle) < 0.5 ? low : high) = middle;
  }
  return {.median = low,
          .next = [=](Random& random) { return (random.uniform() < share ? kUs : other) + spread * random.normal(); }};
}
/// Read twice from a clock that moves on once in a standard deviation, and from where it happens to stand.
Times ticked(double spread) {
  constexpr double kOffTheLattice = 0.3;
  const double middle = kUs + kOffTheLattice * spread;
  return {.median = middle, .tick = spread, .next = [=](Random& random) {
            const double begin = random.uniform() * spread;
            return std::floor((begin + middle + spread * random.normal()) / spread) * spread;
          }};
}
/// Each deviation is `lag` of the one before it, and something new.
Times autocorrelated(double spread, double lag) {
  return {.next = [spread, lag, last = 0.0, is_first = true](Random& random) mutable {
    last = is_first ? random.normal() : lag * last + std::sqrt(1 - lag * lag) * random.normal();
    is_first = false;
    return kUs + spread * last;
  }};
}

struct Coverage {
  int cells = 0, held = 0;
  int cells_of_many = 0, held_of_many = 0;  ///< that ended with at least 100 samples
  double samples = 0;                       ///< mean

  [[nodiscard]] double percent() const { return 100.0 * held / cells; }
  [[nodiscard]] double percent_of_many() const { return 100.0 * held_of_many / cells_of_many; }
};

/// Cells that end when they have settled, or have `most` samples.
Coverage simulate(const Kind& kind, double spread_us, std::int64_t most) {
  Coverage coverage;
  Random random(static_cast<std::uint64_t>(most) * 1000 + static_cast<std::uint64_t>(spread_us * 10));
  for (int cell = 0; cell < kCells; ++cell) {
    Times times = kind(spread_us);
    std::vector<double> samples;
    OrderedSummary summary;
    do {
      const std::int64_t look = std::min(next_look(std::ssize(samples)), most);
      while (std::ssize(samples) < look) samples.push_back(times.next(random));
      summary = summarise_in_order(samples, times.tick);
    } while (!is_settled(summary) && summary.samples < most);
    const bool holds = *summary.ci_low <= times.median && times.median <= *summary.ci_high;
    ++coverage.cells;
    coverage.held += holds ? 1 : 0;
    coverage.cells_of_many += summary.samples >= 100 ? 1 : 0;
    coverage.held_of_many += summary.samples >= 100 && holds ? 1 : 0;
    coverage.samples += static_cast<double>(summary.samples) / kCells;
  }
  return coverage;
}

struct Named {
  std::string name;
  Kind kind;
};

void expect_coverage(const Named& times, double spread_us, std::int64_t most) {
  const Coverage coverage = simulate(times.kind, spread_us, most);
  const std::string what = fmt::format("{}, spread {} %, at most {} samples: {:.1f} %, mean n {:.0f}", times.name,
                                       spread_us, most, coverage.percent(), coverage.samples);
  fmt::print("{}\n", what);
  EXPECT_GE(coverage.percent(), 93.5) << what;
  // Of a few cells that need more samples than others do, coverage says something else: they were chosen.
  if (coverage.cells_of_many >= kCells * 9 / 10) {
    EXPECT_LE(coverage.percent_of_many(), 97) << what;
  }
}

class IntervalOfTheMedian : public testing::TestWithParam<Named> {};

TEST_P(IntervalOfTheMedian, CoversTheTruthWhereTheRuleStops) {
  for (const double spread_us : {1.5, 2.0, 3.0, 5.0}) expect_coverage(GetParam(), spread_us, 500);
}

TEST_P(IntervalOfTheMedian, CoversTheTruthWhereTimeEndsFirst) {
  for (const std::int64_t most : {12, 15, 20, 30, 50, 70, 100, 150, 250}) expect_coverage(GetParam(), 12, most);
}

// Here what lies between two readings decides.
TEST(IntervalOfTheMedianOfTicks, CoversTheTruthWhereItIsMuchShorterThanATick) {
  for (const double spread_us : {6.5, 7.0, 10.0}) expect_coverage({"clock_ticked", ticked}, spread_us, kMostSamples);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, IntervalOfTheMedian,
    testing::Values(Named{"normal", normal}, Named{"skewed", skewed},
                    Named{"bimodal", [](double spread) { return bimodal(spread, 0.6); }},
                    Named{"even_bimodal", [](double spread) { return bimodal(spread, 0.52); }},
                    Named{"clock_ticked", ticked},
                    Named{"autocorrelated_02", [](double spread) { return autocorrelated(spread, 0.2); }},
                    Named{"autocorrelated_05", [](double spread) { return autocorrelated(spread, 0.5); }}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/power.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "harness/statistics/statistics.h"
#include "impl/types/printable.h"

namespace tutti::harness::gate {
namespace {

constexpr double kNormalQuantile = 2.5758;  ///< of 0.995: kGateConfidence to both sides
/// Of the square root of kPower: a step is found, and found again by the confirmation.
constexpr double kFoundTwice = 1.6327;
constexpr std::size_t kLeastPairs = 3;
constexpr double kNormalOfMedian =
    1.4826;  ///< standard deviation / median absolute deviation, of a normal distribution

double robust_scatter(const std::vector<double>& values) {
  const double middle = statistics::median_of(values);
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - middle));
  return kNormalOfMedian * statistics::median_of(away);
}

std::string percent(const std::optional<double>& share) {
  if (!share) return "-";
  return *share < 1 ? fmt::format("{:.1f}", 100 * *share) : fmt::format("{:.0f}", 100 * *share);
}

}  // namespace

double smallest_step(double floor, double scatter, double pairs) {
  // Student's quantile, to the first order (Abramowitz & Stegun 26.7.5): few pairs have a wider interval.
  const double half = kNormalQuantile * (1 + (kNormalQuantile * kNormalQuantile + 1) / (4 * std::max(pairs - 1, 1.0)));
  const double of_estimate = scatter * std::sqrt(std::numbers::pi / 3 / pairs);
  return std::expm1(std::log1p(floor) + (half + kFoundTwice) * of_estimate);
}

CellPower power_of(const Evidence& evidence, int blocks, int least_blocks, int most_blocks) {
  CellPower cell{.cell = evidence.cell, .pairs = evidence.log_ratios.size()};
  for (const std::string* const why : {&evidence.wrong, &evidence.missing, &evidence.invalid, &evidence.untimed}) {
    if (cell.reason.empty()) cell.reason = *why;
  }
  if (evidence.this_us.empty() || evidence.other_us.empty()) return cell;
  cell.time_us = statistics::median_of(evidence.this_us);
  const double operations = evidence.operations.empty() ? 1 : statistics::median_of(evidence.operations);
  cell.floor = gate_floor(evidence.bytes, statistics::median_of(evidence.other_us), operations);
  if (cell.pairs < kLeastPairs) return cell;
  cell.scatter = robust_scatter(evidence.log_ratios);
  const double pairs_of_block = static_cast<double>(cell.pairs) / blocks;
  cell.least = smallest_step(cell.floor, cell.scatter, pairs_of_block * least_blocks);
  cell.most = smallest_step(cell.floor, cell.scatter, pairs_of_block * most_blocks);
  return cell;
}

std::string power_table(std::span<const CellPower> cells, int least_blocks, int most_blocks) {
  std::size_t width = 4;
  for (const CellPower& one : cells) width = std::max(width, one.cell.size());
  std::string text = fmt::format(
      "# what a gate finds in {:.0f} % of its runs, if this side is so much slower\n"
      "# {:<{}}  {:>10}  {:>5}  {:>9}  {:>6}  {:>14}  {:>14}\n",
      100 * kPower, "cell", width, "time (us)", "pairs", "scatter %", "floor%",
      fmt::format("{} blocks (%)", least_blocks), fmt::format("{} blocks (%)", most_blocks));
  for (const CellPower& one : cells) {
    const std::string time = one.time_us ? fmt::format("{:.4g}", *one.time_us) : "-";
    const bool has_time = one.time_us.has_value();
    text += fmt::format("  {:<{}}  {:>10}  {:>5}  {:>9}  {:>6}  {:>14}  {:>14}\n", one.cell, width, time, one.pairs,
                        one.least ? percent(one.scatter) : "-", has_time ? percent(one.floor) : "-", percent(one.least),
                        percent(one.most));
    if (!one.reason.empty()) text += fmt::format("#   {}\n", one.reason);
  }
  return printable(text);
}

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/two_speeds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace tutti::harness::accept {
namespace {

constexpr std::size_t kPaths = 2;  // within a leaf, and between leaves
constexpr int kLeastFast = 2, kLeastNodes = 4;

struct Cell {
  int other = 0;
  double value = 0;  // of both directions
  double out = kNothing, in = kNothing;
  bool is_far = false;
};

/// Two groups, and what they explain.
class Halves {
 public:
  explicit Halves(const std::vector<std::vector<Cell>>& cells) : cells_(cells), is_slow_(cells.size()) {}

  /// The `slow` first nodes of `order` are slow. Then each node joins the group that explains it better.
  bool settle(const std::vector<int>& order, std::size_t slow) {
    constexpr int kMostTurns = 12;
    for (std::size_t i = 0; i < order.size(); ++i) is_slow_[at(order[i])] = i < slow;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      if (!set_levels()) return false;
      if (!move_nodes()) break;
    }
    return set_levels() && difference_ < 0;
  }

  /// The mean absolute deviation of the cells from what the groups explain.
  [[nodiscard]] double rest() const {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      for (const Cell& cell : cells_[node]) {
        const bool has_slow = is_slow_[node] || is_slow_[at(cell.other)];
        sum += std::abs(above_level(cell) - (has_slow ? difference_ : 0));
      }
      count += cells_[node].size();
    }
    return sum / static_cast<double>(count);
  }

  [[nodiscard]] TwoSpeeds result() const {
    // In a normal distribution a median's standard error is 1.25 of a mean's. A standard deviation is 1.25 mean
    // deviations.
    constexpr double kOfMedian = 1.2533, kOfMean = 1.2533;
    constexpr double kLow = 0.1;  // a quantile: what lies at the edge of a group
    TwoSpeeds speeds{.difference = difference_};
    std::vector<double> slow, fast;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      if (cells_[node].empty()) continue;
      if (is_slow_[node]) speeds.slower.push_back(static_cast<int>(node));
      speeds.faster += !is_slow_[node];
      (is_slow_[node] ? slow : fast).push_back(own_level(static_cast<int>(node)));
    }
    speeds.spread = robust_deviation(slow);
    speeds.out = median_with_fast(&Cell::out);
    speeds.in = median_with_fast(&Cell::in);
    speeds.doubt = kOfMedian * kOfMean * rest() / std::sqrt(std::max(1.0, speeds.faster - 1.0));
    speeds.gap = (quantile_of_numbers(fast, kLow) - quantile_of_numbers(slow, 1 - kLow)) / -difference_;
    if (are_fast_within()) speeds.gap = 0;
    return speeds;
  }

 private:
  [[nodiscard]] double above_level(const Cell& cell) const { return cell.value - levels_.at(cell.is_far ? 1 : 0); }

  /// What a node reaches with fast ones; NaN if it has none.
  [[nodiscard]] double own_level(int node) const {
    std::vector<double> values;
    for (const Cell& cell : cells_[at(node)]) {
      if (!is_slow_[at(cell.other)]) values.push_back(above_level(cell));
    }
    return median_of_numbers(values);
  }

  /// Of one direction of the pairs of slow nodes with fast ones.
  [[nodiscard]] double median_with_fast(double Cell::*way) const {
    std::vector<double> values;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      for (const Cell& cell : cells_[node]) {
        if (is_slow_[node] && !is_slow_[at(cell.other)]) values.push_back(cell.*way - levels_.at(cell.is_far ? 1 : 0));
      }
    }
    return median_of_numbers(values);
  }

  /// Slow nodes are fast with each other within a leaf: then its uplink is slow.
  [[nodiscard]] bool are_fast_within() const {
    std::vector<double> within;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      for (const Cell& cell : cells_[node]) {
        if (is_slow_[node] && is_slow_[at(cell.other)] && !cell.is_far) within.push_back(above_level(cell));
      }
    }
    return median_of_numbers(within) > difference_ / 2;
  }

  /// False if no pair of fast nodes was measured.
  bool set_levels() {
    std::array<std::vector<double>, kPaths> fast, slow;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      for (const Cell& cell : cells_[node]) {
        const bool has_slow = is_slow_[node] || is_slow_[at(cell.other)];
        (has_slow ? slow : fast).at(cell.is_far ? 1 : 0).push_back(cell.value);
      }
    }
    std::vector<double> differences;
    for (std::size_t path = 0; path < kPaths; ++path) {
      levels_.at(path) = median_of_numbers(fast.at(path));
      if (std::isnan(levels_.at(path))) continue;
      for (const double value : slow.at(path)) differences.push_back(value - levels_.at(path));
    }
    difference_ = median_of_numbers(differences);
    if (std::isnan(difference_)) return false;
    for (std::size_t path = 0; path < kPaths; ++path) {
      if (std::isnan(levels_.at(path))) levels_.at(path) = or_zero(median_of_numbers(slow.at(path)) - difference_);
    }
    return true;
  }

  bool move_nodes() {
    std::vector<bool> moved = is_slow_;
    for (std::size_t node = 0; node < cells_.size(); ++node) {
      const double level = own_level(static_cast<int>(node));
      if (!std::isnan(level)) moved[node] = level < difference_ / 2;
    }
    std::swap(moved, is_slow_);
    return moved != is_slow_;
  }

  const std::vector<std::vector<Cell>>& cells_;  // by node
  std::vector<bool> is_slow_;                    // by node
  std::array<double, kPaths> levels_{};          // of pairs of fast nodes
  double difference_ = 0;
};

std::vector<std::vector<Cell>> cells_by_node(const Matrix& matrix, const PairPlayer& player,
                                             const std::set<int>& without) {
  std::vector<std::vector<Cell>> cells(at(matrix.nodes()));
  const auto counts = [&](int node) { return !player.is_lost(node) && !without.contains(node); };
  for (const int node : player.nodes()) {
    for (const int other : player.nodes()) {
      if (node == other || !counts(node) || !counts(other)) continue;
      const bool is_far = player.is_far(node, other);
      const double there = matrix(node, other), back = matrix(other, node);
      const double value = std::isnan(there) ? back : std::isnan(back) ? there : (there + back) / 2;
      if (!std::isnan(value))
        cells[at(node)].push_back({.other = other, .value = value, .out = there, .in = back, .is_far = is_far});
    }
  }
  return cells;
}

/// Nodes by a quantile of their cells, the slowest first, with that figure.
std::vector<std::pair<double, int>> ordered_by(double quantile, const std::vector<std::vector<Cell>>& cells) {
  std::array<std::vector<double>, kPaths> reached;  // by node
  for (const auto& row : cells) {
    std::array<std::vector<double>, kPaths> values;
    for (const Cell& cell : row) values.at(cell.is_far ? 1 : 0).push_back(cell.value);
    for (std::size_t path = 0; path < kPaths; ++path)
      reached.at(path).push_back(quantile_of_numbers(values.at(path), quantile));
  }
  std::vector<std::pair<double, int>> order;
  std::array<double, kPaths> middles{};
  for (std::size_t path = 0; path < kPaths; ++path) {
    std::vector<double> values = reached.at(path);
    middles.at(path) = median_of_numbers(values);
  }
  for (std::size_t node = 0; node < cells.size(); ++node) {
    if (cells[node].empty()) continue;
    double sum = 0;
    int count = 0;
    for (std::size_t path = 0; path < kPaths; ++path) {
      const double off = reached.at(path)[node] - middles.at(path);
      if (std::isnan(off)) continue;
      sum += off;
      ++count;
    }
    if (count > 0) order.emplace_back(sum / count, static_cast<int>(node));
  }
  std::ranges::sort(order);
  return order;
}

/// How many of these, ascending, are in the lower of two groups: where the middles of the groups explain most.
std::size_t lower_group(const std::vector<std::pair<double, int>>& order) {
  double sum = 0, below = 0, most = -1;
  for (const auto& [value, node] : order) sum += value;
  std::size_t best = 1;
  for (std::size_t count = 1; count + kLeastFast <= order.size(); ++count) {
    below += order[count - 1].first;
    const auto lower = static_cast<double>(count), upper = static_cast<double>(order.size() - count);
    const double apart = below / lower - (sum - below) / upper;
    const double explained = lower * upper * apart * apart;
    if (explained <= most) continue;
    most = explained;
    best = count;
  }
  return best;
}

}  // namespace

std::optional<TwoSpeeds> two_speeds_of(const Matrix& cells, const PairPlayer& player, const std::set<int>& without) {
  constexpr std::array kQuantiles{0.5, 0.8, 0.95};  // few fast nodes show in the upper ones
  const auto by_node = cells_by_node(cells, player, without);
  std::optional<Halves> best;
  double least = 0;
  for (const double quantile : kQuantiles) {
    const auto order = ordered_by(quantile, by_node);
    if (std::ssize(order) < kLeastNodes) return std::nullopt;
    std::vector<int> nodes;
    for (const auto& [value, node] : order) nodes.push_back(node);
    // A start that is wrong may stay so: one slow node makes its partners look slow.
    for (const std::size_t slow : {lower_group(order), std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      Halves halves(by_node);
      if (slow + kLeastFast > nodes.size() || !halves.settle(nodes, slow)) continue;
      const double rest = halves.rest();
      if (best && rest >= least) continue;
      least = rest;
      best.emplace(std::move(halves));
    }
  }
  if (!best) return std::nullopt;
  TwoSpeeds speeds = best->result();
  if (speeds.slower.empty() || speeds.faster < kLeastFast) return std::nullopt;
  return speeds;
}

}  // namespace tutti::harness::accept

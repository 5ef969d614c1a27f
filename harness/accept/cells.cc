// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/cells.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

// Half of the cells of a path may be of slow nodes, so a median of them lies between two levels.
constexpr double kUpperOfCells = 0.75;
constexpr double kUpperOfRound = 0.65;
constexpr int kFewNodes = 8;  // with fewer, a round has too few pairs for a quantile

/// Moves the numbers to the front and returns how many there are.
std::ptrdiff_t numbers_first(std::vector<double>& values) {
  const auto end = std::partition(values.begin(), values.end(), [](double value) { return !std::isnan(value); });
  return end - values.begin();
}

double nth(std::vector<double>& values, std::ptrdiff_t count, std::ptrdiff_t index) {
  std::nth_element(values.begin(), values.begin() + index, values.begin() + count);
  return values[static_cast<std::size_t>(index)];
}

/// A list of values for each of some groups, and their medians.
class Groups {
 public:
  explicit Groups(std::size_t count) : values_(count) {}
  void add(std::size_t group, double value) {
    if (!std::isnan(value)) values_[group].push_back(value);
  }
  [[nodiscard]] double median(std::size_t group) { return median_of_numbers(values_[group]); }
  [[nodiscard]] double quantile(std::size_t group, double share) { return quantile_of_numbers(values_[group], share); }
  [[nodiscard]] std::size_t count() const { return values_.size(); }

 private:
  std::vector<std::vector<double>> values_;
};

/// What each round has in common at first sight: an upper quantile of its tests, near and far ones set level, or those
/// of each path between two leaves. Where a pair plays once, the tests of a path lie in few rounds, so that what these
/// have in common cannot be told from the path.
std::vector<double> first_shifts(std::span<const Sample> samples, std::span<const int> leaves, int rounds, int sweeps) {
  const auto leaf_count = static_cast<std::size_t>(*std::ranges::max_element(leaves)) + 1;
  const auto path_of = [&](const Sample& one) -> std::size_t {
    const int from = leaves[at(one.sender)], to = leaves[at(one.receiver)];
    if (sweeps > 1) return at(from) * leaf_count + at(to);
    return from == to || leaf_count == 1 ? 0 : 1;
  };
  Groups by_path(leaf_count * leaf_count);
  for (const Sample& one : samples) by_path.add(path_of(one), one.log_speed);
  std::vector<double> high;
  for (std::size_t path = 0; path < by_path.count(); ++path) {
    high.push_back(or_zero(by_path.quantile(path, kUpperOfCells)));
  }
  Groups by_round(at(rounds));
  for (const Sample& one : samples) by_round.add(at(one.round), one.log_speed - high[path_of(one)]);
  std::vector<double> shifts;
  for (std::size_t round = 0; round < by_round.count(); ++round) {
    shifts.push_back(or_zero(by_round.quantile(round, kUpperOfRound)));
  }
  std::vector<double> copy = shifts;
  const double middle = or_zero(median_of_numbers(copy));
  for (double& shift : shifts) shift -= middle;
  return shifts;
}

Matrix cells_of(std::span<const Sample> samples, const std::vector<double>& shifts, int nodes, int sweeps) {
  Matrix cells(nodes);
  if (sweeps == 1) {
    for (const Sample& one : samples) cells(one.sender, one.receiver) = one.log_speed - shifts[at(one.round)];
    return cells;
  }
  Groups groups(at(nodes) * at(nodes));
  for (const Sample& one : samples) {
    groups.add(at(one.sender) * at(nodes) + at(one.receiver), one.log_speed - shifts[at(one.round)]);
  }
  for (int sender = 0; sender < nodes; ++sender) {
    for (int receiver = 0; receiver < nodes; ++receiver) {
      cells(sender, receiver) = groups.median(at(sender) * at(nodes) + at(receiver));
    }
  }
  return cells;
}

/// What the leaves of a cell and its nodes explain of it: a median polish (Tukey, Exploratory Data Analysis, 1977).
class Parts {
 public:
  Parts(const Matrix& cells, std::span<const int> leaves) : leaves_(leaves) {
    const int nodes = cells.nodes();
    leaf_count_ = leaves.empty() ? 0 : static_cast<std::size_t>(*std::ranges::max_element(leaves)) + 1;
    Groups by_leaves(leaf_count_ * leaf_count_);
    for (int sender = 0; sender < nodes; ++sender) {
      for (int receiver = 0; receiver < nodes; ++receiver) {
        by_leaves.add(pair_of(sender, receiver), cells(sender, receiver));
      }
    }
    for (std::size_t pair = 0; pair < by_leaves.count(); ++pair) bases_.push_back(or_zero(by_leaves.median(pair)));
    Matrix rest(nodes);
    const auto each = [&](auto&& set) {
      for (int sender = 0; sender < nodes; ++sender) {
        for (int receiver = 0; receiver < nodes; ++receiver) set(sender, receiver);
      }
    };
    each([&](int s, int r) { rest(s, r) = cells(s, r) - bases_[pair_of(s, r)]; });
    out_ = medians_of_rows(rest);
    for (double& value : out_) value = or_zero(value);
    each([&](int s, int r) { rest(s, r) -= out_[at(s)]; });
    in_ = medians_of_columns(rest);
    for (double& value : in_) value = or_zero(value);
  }
  [[nodiscard]] double operator()(int sender, int receiver) const {
    return bases_[pair_of(sender, receiver)] + out_[at(sender)] + in_[at(receiver)];
  }

 private:
  [[nodiscard]] std::size_t pair_of(int sender, int receiver) const {
    return at(leaves_[at(sender)]) * leaf_count_ + at(leaves_[at(receiver)]);
  }
  std::span<const int> leaves_;
  std::size_t leaf_count_ = 0;
  std::vector<double> bases_, out_, in_;
};

}  // namespace

double or_zero(double value) { return std::isnan(value) ? 0 : value; }

double median_of_numbers(std::vector<double>& values) {
  const std::ptrdiff_t count = numbers_first(values);
  if (count == 0) return kNothing;
  const double upper = nth(values, count, count / 2);
  if (count % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + count / 2)) / 2;
}

double high_median_of_numbers(std::vector<double>& values) {
  const std::ptrdiff_t count = numbers_first(values);
  return count == 0 ? kNothing : nth(values, count, count / 2);
}

double quantile_of_numbers(std::vector<double>& values, double quantile) {
  const std::ptrdiff_t count = numbers_first(values);
  if (count == 0) return kNothing;
  return nth(values, count, static_cast<std::ptrdiff_t>(quantile * static_cast<double>(count - 1)));
}

std::vector<double> medians_of_rows(const Matrix& matrix) {
  std::vector<double> medians, row;
  for (int sender = 0; sender < matrix.nodes(); ++sender) {
    row.clear();
    for (int receiver = 0; receiver < matrix.nodes(); ++receiver) row.push_back(matrix(sender, receiver));
    medians.push_back(median_of_numbers(row));
  }
  return medians;
}

std::vector<double> medians_of_columns(const Matrix& matrix) {
  std::vector<double> medians, column;
  for (int receiver = 0; receiver < matrix.nodes(); ++receiver) {
    column.clear();
    for (int sender = 0; sender < matrix.nodes(); ++sender) column.push_back(matrix(sender, receiver));
    medians.push_back(median_of_numbers(column));
  }
  return medians;
}

double robust_deviation(std::vector<double> values) {
  constexpr double kOfNormal = 1.4826;
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.size() < 2) return 0;
  const double middle = median_of_numbers(values);
  for (double& value : values) value = std::abs(value - middle);
  return kOfNormal * median_of_numbers(values);
}

NoiseOfTests noise_in(std::span<const Sample> samples, int nodes) {
  // By pair: from its first node to the second, less the way back.
  std::map<std::pair<int, int>, std::vector<double>> by_pair;
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
    const Sample& there = samples[i];
    const double difference = (there.log_speed - samples[i + 1].log_speed) / std::numbers::sqrt2;
    if (std::isnan(difference)) continue;
    const bool is_in_order = there.sender < there.receiver;
    by_pair[std::minmax(there.sender, there.receiver)].push_back(is_in_order ? difference : -difference);
  }
  std::vector<std::vector<double>> by_node(at(nodes));
  std::vector<double> all;
  for (auto& [pair, differences] : by_pair) {
    // A way that is always slower is no noise. It shows if the pair has played several times.
    const auto count = static_cast<double>(differences.size());
    const double mean = count > 1 ? std::accumulate(differences.begin(), differences.end(), 0.0) / count : 0;
    const double of_few = count > 1 ? std::sqrt(count / (count - 1)) : 1;
    for (const double difference : differences) {
      const double off = (difference - mean) * of_few;
      all.push_back(off);
      by_node[at(pair.first)].push_back(off);
      by_node[at(pair.second)].push_back(off);
    }
  }
  NoiseOfTests noise{.nodes = {}, .fleet = robust_deviation(std::move(all))};
  for (auto& differences : by_node) noise.nodes.push_back(robust_deviation(std::move(differences)));
  return noise;
}

Fit fit_of(std::span<const Sample> samples, std::span<const int> leaves, int rounds, int sweeps) {
  constexpr int kTurns = 3;
  const int nodes = static_cast<int>(leaves.size());
  TUTTI_ASSERT(std::ranges::all_of(samples, [rounds](const Sample& one) { return one.round < rounds; }),
               "a sample is of a round beyond {}", rounds);
  Fit fit(nodes);
  fit.shifts.assign(at(rounds), 0);
  if (nodes >= kFewNodes) fit.shifts = first_shifts(samples, leaves, rounds, sweeps);
  const int turns = sweeps == 1 ? kTurns - 1 : kTurns;
  for (int turn = 0;; ++turn) {
    fit.cells = cells_of(samples, fit.shifts, nodes, sweeps);
    const Parts parts(fit.cells, leaves);
    if (turn == turns) {
      for (const Sample& one : samples) {
        fit.residuals.push_back(one.log_speed - fit.shifts[at(one.round)] - parts(one.sender, one.receiver));
      }
      return fit;
    }
    // What a round had in common is what is left of its tests. With several tests of a cell the cell itself is known.
    Groups by_round(at(rounds));
    for (const Sample& one : samples) {
      const double cell = sweeps > 1 ? fit.cells(one.sender, one.receiver) : kNothing;
      by_round.add(at(one.round), one.log_speed - (std::isnan(cell) ? parts(one.sender, one.receiver) : cell));
    }
    for (std::size_t round = 0; round < by_round.count(); ++round) {
      fit.shifts[round] = or_zero(by_round.median(round));
    }
  }
}

}  // namespace tutti::harness::accept

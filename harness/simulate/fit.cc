// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/simulate/walk.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::simulate {
namespace {

/// Sizes between which a cost for a byte is one number.
constexpr std::array kBounds{0.0, 4096.0, 65536.0, 1048576.0, 16777216.0};
constexpr std::size_t kSlopes = kBounds.size() - 1;

/// A cost that is looked for. It is above 0, so its logarithm is what changes.
struct Unknown {
  std::string name;
  double start = 0;      ///< the example's
  bool goes_on = false;  ///< a slope that follows the one before it
};

class CostSearch {
 public:
  CostSearch(const MeasuredRun& run, std::vector<MeasuredTime> times) : times_(std::move(times)) {
    machine_ = example_machine();
    machine_.ranks_per_node = run.ranks_per_node;
    machine_.has_near = run.ranks_per_node > 1;
    machine_.has_far =
        std::ranges::any_of(times_, [&](const MeasuredTime& one) { return one.problem.ranks > run.ranks_per_node; });
    machine_.model.eager_bytes = Model().eager_bytes;
    machine_.model.handshake = 0;
    constexpr double kMemory = 0.05, kNetwork = 0.04;
    add_slopes("memory", kMemory);
    if (machine_.has_near) {
      unknowns_.push_back({"near latency", 400});
      unknowns_.push_back({"flag", machine_.model.flag});
      unknowns_.push_back({"first byte of a read", 60});
      add_slopes("near", kMemory);
    }
    if (machine_.has_far) {
      unknowns_.push_back({"far latency", 1800});
      add_slopes("far", kNetwork);
    }
    for (const MeasuredTime& one : times_) schedules_.push_back(schedule_of(*one.algorithm, one.problem));
  }

  /// Changes the costs until the times are nearest.
  void search() {
    std::vector<double> at;
    for (const Unknown& one : unknowns_) at.push_back(std::log(one.start));
    const std::vector<double> start = at;
    double damping = 1e-3;
    std::vector<double> residuals = residuals_at(at, start);
    constexpr int kMostRounds = 40;
    for (int round = 0; round < kMostRounds && damping < 1e6; ++round) {
      const auto slopes = slopes_at(at, start, residuals);
      const std::vector<double> change = solve(slopes, residuals, damping);
      std::vector<double> next = at;
      constexpr double kMostChange = 1;
      for (std::size_t i = 0; i < at.size(); ++i) next[i] -= std::clamp(change[i], -kMostChange, kMostChange);
      const std::vector<double> better = residuals_at(next, start);
      const double before = squares(residuals), after = squares(better);
      if (!(after < before)) {
        damping *= 10;
        continue;
      }
      at = next;
      residuals = better;
      damping = std::max(damping / 10, 1e-9);
      if (before - after < 1e-9 * before) break;
    }
    set_costs(at);
    find_kept(slopes_at(at, start, residuals));
  }

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const std::vector<std::string>& kept() const { return kept_; }

 private:
  void add_slopes(const std::string& name, double per_byte) {
    for (std::size_t i = 0; i < kSlopes; ++i) {
      const std::string from = fmt::format("{} bytes from {:.0f} on", name, kBounds[i]);
      unknowns_.push_back({from, per_byte, i > 0});
    }
  }

  /// A table through `first` at 0 bytes with the next slopes of `at`.
  static SizeTable take_table(double first, const std::vector<double>& at, std::size_t& next) {
    std::vector<SizeTable::Point> points{{0, first}};
    for (std::size_t i = 0; i < kSlopes; ++i) {
      const double ns = points.back().ns + std::exp(at[next++]) * (kBounds[i + 1] - kBounds[i]);
      points.push_back({kBounds[i + 1], ns});
    }
    return SizeTable(std::move(points));
  }

  static SizeTable raised(const SizeTable& table, double by) {
    std::vector<SizeTable::Point> points = table.points();
    for (SizeTable::Point& point : points) point.ns += by;
    return SizeTable(std::move(points));
  }

  /// Latency and the processors' overheads cannot be told apart, so they share one cost: a sixth for each processor.
  static void share_out(double latency, LinkCosts& link) {
    link.send = SizeTable{{0, latency / 6}};
    link.receive = link.send;
    link.latency = latency * 4 / 6;
  }

  void set_costs(const std::vector<double>& at) {
    Model& model = machine_.model;
    std::size_t next = 0;
    const SizeTable memory = take_table(0, at, next);
    model.reduce = model.copy = memory;
    model.read = memory;
    if (machine_.has_near) {
      share_out(std::exp(at[next++]), model.near);
      model.flag = std::exp(at[next++]);
      model.read = raised(memory, std::exp(at[next++]));
      model.near.wire = take_table(0, at, next);
    }
    if (machine_.has_far) {
      share_out(std::exp(at[next++]), model.far);
      model.far.gap = 0;
      model.far.wire = take_table(0, at, next);
    }
  }

  /// Logarithms of predicted / measured, and what keeps costs that no row decides where they are.
  std::vector<double> residuals_at(const std::vector<double>& at, const std::vector<double>& start) {
    constexpr double kToStart = 0.01, kToNeighbour = 0.05;
    set_costs(at);
    std::vector<double> residuals;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const auto prediction = walk(schedules_[i], times_[i].block_bytes, machine_);
      residuals.push_back(prediction.is_ok() ? std::log(prediction.value().ns / 1000 / times_[i].us) : 0);
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      residuals.push_back(kToStart * (at[i] - start[i]));
      if (unknowns_[i].goes_on) residuals.push_back(kToNeighbour * (at[i] - at[i - 1]));
    }
    return residuals;
  }

  using Columns = std::vector<std::vector<double>>;

  Columns slopes_at(const std::vector<double>& at, const std::vector<double>& start,
                    const std::vector<double>& residuals) {
    constexpr double kStep = 1e-3;
    Columns columns;
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::vector<double> moved = at;
      moved[i] += kStep;
      std::vector<double> column = residuals_at(moved, start);
      for (std::size_t row = 0; row < column.size(); ++row) column[row] = (column[row] - residuals[row]) / kStep;
      columns.push_back(std::move(column));
    }
    return columns;
  }

  static double squares(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value * value;
    return sum;
  }

  /// The change that the normal equations give, damped. Gauss's elimination: the matrix is positive.
  static std::vector<double> solve(const Columns& columns, const std::vector<double>& residuals, double damping) {
    const std::size_t n = columns.size();
    std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
    const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) rows[i][j] = product(columns[i], columns[j]);
      rows[i][i] *= 1 + damping;
      rows[i][n] = product(columns[i], residuals);
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t below = i + 1; below < n; ++below) {
        const double factor = rows[below][i] / rows[i][i];
        for (std::size_t j = i; j <= n; ++j) rows[below][j] -= factor * rows[i][j];
      }
    }
    std::vector<double> change(n);
    for (std::size_t i = n; i-- > 0;) {
      double rest = rows[i][n];
      for (std::size_t j = i + 1; j < n; ++j) rest -= rows[i][j] * change[j];
      change[i] = rest / rows[i][i];
    }
    return change;
  }

  /// A cost whose doubling changes no time by a hundredth.
  void find_kept(const Columns& columns) {
    constexpr double kNothing = 0.01;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      double most = 0;
      for (std::size_t row = 0; row < times_.size(); ++row) most = std::max(most, std::abs(columns[i][row]));
      if (most < kNothing) kept_.push_back(unknowns_[i].name);
    }
  }

  std::vector<MeasuredTime> times_;
  std::vector<Schedule> schedules_;
  std::vector<Unknown> unknowns_;
  Machine machine_;
  std::vector<std::string> kept_;
};

}  // namespace

Result<Fit> fit(const MeasuredRun& run, const std::string& name) {
  std::set<std::int64_t> sizes;
  for (const MeasuredTime& one : run.times) sizes.insert(one.bytes);
  if (sizes.size() < kFewSizes) {
    return error(Code::unavailable, "the rows have {} sizes, and a fit needs {}: half of them are to be predicted",
                 sizes.size(), kFewSizes);
  }
  // Every other size between the smallest and the largest.
  std::set<std::int64_t> held_out;
  int index = 0;
  for (const std::int64_t size : sizes) {
    if (index++ % 2 == 1 && size != *sizes.rbegin()) held_out.insert(size);
  }
  std::vector<MeasuredTime> fitted;
  for (const MeasuredTime& one : run.times) {
    if (!held_out.contains(one.bytes)) fitted.push_back(one);
  }
  CostSearch half(run, fitted);
  half.search();
  Fit result;
  for (const MeasuredTime& one : run.times) {
    const auto prediction = walk(schedule_of(*one.algorithm, one.problem), one.block_bytes, half.machine());
    TUTTI_RETURN_IF_ERROR(prediction.status());
    result.times.push_back(
        {.time = one, .us = prediction.value().ns / 1000, .is_held_out = held_out.contains(one.bytes)});
  }
  CostSearch whole(run, run.times);
  whole.search();
  result.machine = whole.machine();
  result.machine.name = name;
  result.kept = whole.kept();
  return result;
}

double median_error(const Fit& fit, bool held_out) {
  std::vector<double> errors;
  for (const FittedTime& one : fit.times) {
    if (one.is_held_out == held_out) errors.push_back(std::abs(one.error()));
  }
  if (errors.empty()) return 0;
  std::ranges::sort(errors);
  return (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
}

}  // namespace tutti::harness::simulate

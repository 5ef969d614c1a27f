// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/runs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "harness/simulate/seen_step.h"

namespace tutti::harness::simulate {
namespace {

/// What the ranks' times rise by with each further block of one run; empty if it is not the same twice.
std::vector<double> rise_of(const Prediction& first, const Prediction& second, const Prediction& third) {
  constexpr double kExact = 1e-9;  // what is left of rounding
  std::vector<double> rise;
  for (std::size_t rank = 0; rank < first.finish.size(); ++rank) {
    const double once = second.finish[rank] - first.finish[rank], again = third.finish[rank] - second.finish[rank];
    if (std::abs(once - again) > kExact * third.finish[rank]) return {};
    rise.push_back(once);
  }
  return rise;
}

}  // namespace

std::vector<StepRun> runs_of(const Schedule& schedule, int alike, int least) {
  const Viewer viewer(schedule);
  const int steps = schedule.step_count(0);
  std::vector<StepRun> runs;
  for (int rank = 0; rank < alike; ++rank) {
    if (schedule.step_count(rank) != steps) return {};
    std::vector<StepRun> mine;
    SeenStep last;
    int first = 0;
    for (int index = 0; index <= steps; ++index) {
      const SeenStep seen = index < steps ? viewer.seen(rank, index) : SeenStep{};
      if (index > 0 && (index == steps || seen != last)) {
        if (index - first >= least) mine.push_back({first, index - first});
        first = index;
      }
      last = seen;
    }
    const auto is_same = [](const StepRun& a, const StepRun& b) { return a.first == b.first && a.length == b.length; };
    if (rank > 0 && !std::ranges::equal(runs, mine, is_same)) return {};
    runs = std::move(mine);
  }
  return runs;
}

Schedule cut(const Schedule& schedule, const std::vector<StepRun>& runs, const std::vector<int>& kept) {
  Schedule shorter = schedule;
  int removed = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) removed += runs[i].length - kept[i];
  shorter.step_count = [count = schedule.step_count, removed](int rank) { return count(rank) - removed; };
  shorter.step = [step = schedule.step, runs, kept](int rank, int index) {
    for (std::size_t i = 0; i < runs.size() && index >= runs[i].first + kept[i]; ++i) index += runs[i].length - kept[i];
    return step(rank, index);
  };
  return shorter;
}

Result<Prediction> walk_runs(const Schedule& schedule, const std::vector<StepRun>& runs, double block_bytes,
                             const Machine& machine, const WalkOptions& options) {
  constexpr int kFewSteps = 32;
  const int block = std::max(kFewSteps, options.period);
  std::uint64_t steps = 0;
  const auto time_of = [&](const std::vector<int>& kept) {
    auto prediction = walk(cut(schedule, runs, kept), block_bytes, machine, options);
    if (prediction.is_ok()) steps += prediction.value().steps;
    return prediction;
  };
  const int shortest = std::ranges::min(runs, {}, &StepRun::length).length;
  for (int least = 2 * block; least + 3 * block < shortest; least *= 2) {
    std::vector<int> kept;
    for (const StepRun& run : runs) kept.push_back(least + (run.length - least) % block);
    TUTTI_ASSIGN_OR_RETURN(Prediction prediction, time_of(kept));
    const Prediction base = prediction;
    bool is_steady = true;
    for (std::size_t i = 0; i < runs.size() && is_steady; ++i) {
      std::vector<int> more = kept;
      more[i] += block;
      TUTTI_ASSIGN_OR_RETURN(const Prediction second, time_of(more));
      more[i] += block;
      TUTTI_ASSIGN_OR_RETURN(const Prediction third, time_of(more));
      const std::vector<double> rise = rise_of(base, second, third);
      is_steady = !rise.empty();
      const int left = (runs[i].length - kept[i]) / block;
      for (std::size_t rank = 0; rank < rise.size(); ++rank) prediction.finish[rank] += left * rise[rank];
      prediction.messages += static_cast<std::uint64_t>(left) * (second.messages - base.messages);
    }
    if (!is_steady) continue;
    prediction.ns = *std::ranges::max_element(prediction.finish);
    prediction.steps = steps;
    return prediction;
  }
  return walk(schedule, block_bytes, machine, options);
}

}  // namespace tutti::harness::simulate

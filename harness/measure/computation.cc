// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/computation.h"

#include <algorithm>
#include <limits>

#include "harness/machine/clock.h"

namespace tutti::harness::measure {
namespace {

constexpr int kStepsPerTurn = 16;  // some 20 ns: each step waits for the one before
constexpr std::int64_t kTurnsToTime = 2000;
constexpr int kTimings = 5;  // of which the fastest counts: the others were disturbed

void turn_often(std::int64_t turns) {
  volatile double kept = 1;
  double value = kept;
  for (std::int64_t i = 0; i < turns * kStepsPerTurn; ++i) value = value * 0.999 + 0.001;
  kept = value;
}

}  // namespace

Computation Computation::lasting(double time_us) {
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTimings; ++i) {
    const std::int64_t begin_ns = monotonic_ns();
    turn_often(kTurnsToTime);
    least_ns = std::min(least_ns, monotonic_ns() - begin_ns);
  }
  const double turn_us = static_cast<double>(std::max<std::int64_t>(1, least_ns)) * 1e-3 / kTurnsToTime;
  return Computation(std::max<std::int64_t>(1, static_cast<std::int64_t>(time_us / turn_us)));
}

void Computation::run(int index, int parts) const { turn_often(turns_ * (index + 1) / parts - turns_ * index / parts); }

}  // namespace tutti::harness::measure

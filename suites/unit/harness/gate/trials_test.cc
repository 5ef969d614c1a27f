// SPDX-License-Identifier: Apache-2.0
// Hundreds of gates on launches that are made up, on a machine that is noisy: how often one is wrong, and how often it
// sees what it is for. suites/command_line/gate_trials.py asks a real machine.
#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

/// Launches differ by 1.5 %, one in fifty is half as slow again, the machine drifts as it likes, and finds its cores at
/// another distance in every launch.
class NoisyMachine {
 public:
  explicit NoisyMachine(std::uint64_t seed) : random_(seed) {}

  Row operator()(const Case& one, double time_us) {
    struct State {
      double line_ns;
      double factor;
    };
    constexpr std::array kStates{State{62, 1.3}, State{90, 1}, State{90, 1}, State{390, 1.7}};
    const State& state = kStates[state_(random_)];
    drift_ += 0.002 * normal_(random_);
    const double neighbour = outlier_(random_) ? 1.5 : 1.0;
    Row row = row_with(one, time_us * state.factor * neighbour * std::exp(drift_ + 0.015 * normal_(random_)));
    row.line_ns = state.line_ns * std::exp(0.05 * normal_(random_));
    return row;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::bernoulli_distribution outlier_{0.02};
  std::uniform_int_distribution<std::size_t> state_{0, 3};
  double drift_ = 0;
};

/// Of each cell, of a gate in which this build takes `slow_down` times as long at 1 MiB.
std::vector<Opinion> gate_on(NoisyMachine machine, double slow_down) {
  const std::vector<Case> cases{all_reduce_of(4096), all_reduce_of(1 << 20), all_reduce_of(8 << 20)};
  std::vector<Evidence> begun;
  for (const Case& one : cases) begun.push_back(evidence_for(one));
  Contest contest(cases, begun, {.names = {.other = "the other build"}});
  const auto launch = [&](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    Launched launched;
    for (const Case& one : group.cases) {
      const bool is_slowed = side == GateSide::mine && one.bytes == 1 << 20;
      const Row row = machine(one, 100 * (is_slowed ? slow_down : 1));
      (side == GateSide::mine ? launched.mine : launched.other).push_back(row);
    }
    return launched;
  };
  EXPECT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  std::vector<Opinion> opinions;
  for (const Evidence& evidence : contest.evidence()) opinions.push_back(judge_finally(evidence).opinion);
  return opinions;
}

constexpr int kGates = 200;

TEST(GateTrials, IdenticalBuildsRaiseNoFalseAlarm) {
  int alarms = 0, undecided = 0;
  for (int seed = 0; seed < kGates; ++seed) {
    const auto opinions = gate_on(NoisyMachine(static_cast<std::uint64_t>(seed)), 1);
    alarms += std::ranges::count(opinions, Opinion::slower) + std::ranges::count(opinions, Opinion::faster) > 0;
    undecided += std::ranges::count(opinions, Opinion::undecided) > 0;
  }
  EXPECT_LE(alarms, 1) << "five are allowed: one in forty";
  EXPECT_LE(undecided, kGates / 10) << "a gate that never says is never wrong";
}

TEST(GateTrials, TenPercentAtOneSizeAreCaughtThereAndOnlyThere) {
  int caught = 0, alarms = 0;
  for (int seed = 0; seed < kGates; ++seed) {
    const auto opinions = gate_on(NoisyMachine(static_cast<std::uint64_t>(seed) + 1000), 1.1);
    caught += opinions[1] == Opinion::slower;
    alarms += opinions[0] == Opinion::slower || opinions[2] == Opinion::slower;
  }
  EXPECT_GE(caught, kGates * 18 / 20);
  EXPECT_LE(alarms, 1);
}

// What is slower by less than the floor is not what a gate is for: it may not know, but it does not raise an alarm.
TEST(GateTrials, ThreePercentAreWithinTheFloor) {
  int alarms = 0;
  for (int seed = 0; seed < kGates; ++seed) {
    alarms += gate_on(NoisyMachine(static_cast<std::uint64_t>(seed) + 2000), 1.03)[1] == Opinion::slower;
  }
  EXPECT_LE(alarms, 1);
}

}  // namespace
}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/stable_sends.h"

#include <algorithm>
#include <array>
#include <vector>

#include "impl/prove/steps.h"

namespace tutti {
namespace {

bool is_channel(const Operand& operand) { return operand.space == Space::channel; }

/// Units that are written, of the output and of scratch.
class Written {
 public:
  Written(const Schedule& schedule, int rank) {
    units_[index(Space::output)].resize(
        static_cast<std::size_t>(output_blocks(schedule.problem, rank) * schedule.shape.units_per_block));
    units_[index(Space::scratch)].resize(static_cast<std::size_t>(schedule.shape.scratch_units));
  }

  void add(Space space, const UnitSet& set) {
    std::vector<bool>& units = units_[index(space)];
    if (units.empty()) return;
    steps::for_units(set, static_cast<int>(units.size()),
                     [&](int /*k*/, int unit) { units[static_cast<std::size_t>(unit)] = true; });
  }
  [[nodiscard]] bool meets(Space space, const UnitSet& set) const {
    const std::vector<bool>& units = units_[index(space)];
    bool meets = false;
    if (units.empty()) return meets;
    steps::for_units(set, static_cast<int>(units.size()),
                     [&](int /*k*/, int unit) { meets = meets || units[static_cast<std::size_t>(unit)]; });
    return meets;
  }

 private:
  static std::size_t index(Space space) { return static_cast<std::size_t>(space); }
  std::array<std::vector<bool>, 3> units_;  ///< by Space: inputs are never written
};

bool is_copying_send(const Step& step) {
  return step.sources.size == 1 && step.sources.begin()->ranks.n == 1 && !is_channel(*step.sources.begin()) &&
         std::any_of(step.destinations.begin(), step.destinations.end(), is_channel);
}

}  // namespace

bool sends_are_stable(const Schedule& schedule, int rank) {
  if (schedule.shape.largest_message == 0) return true;
  const int count = schedule.step_count(rank), ranks = schedule.problem.ranks;
  Written written(schedule, rank);
  std::vector<Step> program;
  for (int i = 0; i < count; ++i) {
    program.push_back(schedule.step(rank, i));
    const Step& step = program.back();
    if (step.verb != Verb::signal || step.write.is_empty()) continue;
    for (int k = 0; k < step.ranks.n; ++k) {
      const int target = step.ranks.at(k, ranks);
      const int units = step.write.space == Space::scratch
                            ? schedule.shape.scratch_units
                            : output_blocks(schedule.problem, rank) * schedule.shape.units_per_block;
      if (target != rank && units > 0) written.add(step.write.space, steps::shown_to(step.write, target, units));
    }
  }
  for (std::size_t i = program.size(); i-- > 0;) {
    const Step& step = program[i];
    if (step.verb != Verb::move) continue;
    if (is_copying_send(step) && written.meets(step.sources.begin()->space, step.sources.begin()->units)) return false;
    for (const Operand& to : step.destinations) {
      if (!is_channel(to) && tutti::contains(to.ranks, rank, ranks)) written.add(to.space, to.units);
    }
  }
  return true;
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/check.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tutti {
namespace {

bool is_in_range(const UnitSet& set, int per_target, int ranks) {
  if (set.start < 0 || set.length < 0 || set.stride < 0 || set.repeat < 1 || per_target < 0) return false;
  const std::int64_t last = set.start + static_cast<std::int64_t>(set.repeat - 1) * set.stride + set.length +
                            static_cast<std::int64_t>(ranks) * per_target;
  return last <= std::numeric_limits<int>::max();
}

std::string describe(const UnitSet& set) {
  return fmt::format(
      "the units {{start {}, length {}, stride {}, repeat {}}}: none is below 0, nor repeat below 1, nor the last unit "
      "beyond 2^31",
      set.start, set.length, set.stride, set.repeat);
}

std::string flaw_of_operand(const Operand& operand, const char* name, int ranks) {
  if (operand.space == Space::line) {
    return fmt::format("a {} lies in the flag line, where only binding places scratch", name);
  }
  if (!is_in_range(operand.ranks, ranks)) return fmt::format("a {} on {}", name, describe_range(operand.ranks, ranks));
  if (operand.ranks.n == 0) return fmt::format("a {} on no rank", name);
  if (operand.space == Space::channel) {
    if (operand.ranks.n == 1) return {};
    return fmt::format("a {} is a channel to {} ranks: it leads to one", name, operand.ranks.n);
  }
  if (!is_in_range(operand.units, 0, ranks)) return fmt::format("a {} has {}", name, describe(operand.units));
  return {};
}

/// A channel carries one slice at a time: two operands would be one slot.
std::string flaw_of_channels(const Operands<4>& list) {
  for (const Operand* one = list.begin(); one != list.end(); ++one) {
    for (const Operand* other = list.begin(); other != one; ++other) {
      if (one->space != Space::channel || other->space != Space::channel) continue;
      if (one->ranks.first == other->ranks.first) {
        return fmt::format("a MOVE has the channel of rank {} twice on one side", one->ranks.first);
      }
    }
  }
  return {};
}

bool is_user(const Operand& operand) { return operand.space == Space::input || operand.space == Space::output; }
bool is_scratch(const Operand& operand) { return operand.space == Space::scratch; }
bool is_channel(const Operand& operand) { return operand.space == Space::channel; }

bool any_of(const Step& step, bool (*condition)(const Operand&)) {
  return std::any_of(step.destinations.begin(), step.destinations.end(), condition) ||
         std::any_of(step.sources.begin(), step.sources.end(), condition);
}

/// Scratch holds whole units, so that more than one of them is as long as other operands only where a block is a unit.
std::string flaw_of_scratch(const Schedule& schedule, const Step& step) {
  const int per_block = schedule.shape.units_per_block;
  std::int64_t all = -1;
  for (const Operands<4>* list : {&step.destinations, &step.sources}) {
    for (const Operand& operand : *list) {
      if (is_channel(operand)) continue;
      const std::int64_t one = count_of(operand.units);
      if (all >= 0 && one != all && per_block == 1) return fmt::format("a MOVE of {} units to or from {}", one, all);
      all = one;
      if (is_user(operand) || one == 1 || per_block == 1) continue;
      return fmt::format("{} units of scratch, though a block has {}: one, or blocks of one unit", one, per_block);
    }
  }
  return any_of(step, is_user) || per_block == 1
             ? std::string()
             : fmt::format("a MOVE of scratch alone, though a block has {} units, has no length", per_block);
}

/// A MOVE is as long as its operands in the user's memory; a MOVE without such operands says whose length it has, or
/// moves whole units of scratch.
std::string flaw_of_length(const Schedule& schedule, const Step& step) {
  const bool states_length = step.as_long_as.units.length > 0;
  const bool has_scratch = any_of(step, is_scratch);
  if (any_of(step, is_user) && states_length) return "a MOVE of memory states another length";
  if (any_of(step, is_user) || (has_scratch && !states_length)) {
    return has_scratch ? flaw_of_scratch(schedule, step) : std::string();
  }
  if (has_scratch && (count_of(step.as_long_as.units) != 1 || tutti::length_of(step) != 1)) {
    return "a MOVE of scratch as long as something else, of more than one unit";
  }
  if (!states_length) return "a MOVE without memory has no length";
  if (!is_user(step.as_long_as)) return "a MOVE as long as something that is neither input nor output";
  return flaw_of_operand(step.as_long_as, "length", schedule.problem.ranks);
}

std::string flaw_of_turn(const Step& step, Place place) {
  if (!step.in_turn_with_next && !place.is_in_turn_with_previous) return {};
  if (step.verb != Verb::move || !any_of(step, is_channel))
    return "takes turns with another step, but is no MOVE through a channel";
  return step.in_turn_with_next && place.is_last ? "takes turns with the next step, but is the last" : std::string();
}

std::string flaw_of_move(const Schedule& schedule, const Step& step) {
  const int ranks = schedule.problem.ranks;
  if (step.destinations.size == 0 || step.sources.size == 0) return "a MOVE needs a destination and a source";
  for (const Operand& operand : step.destinations) {
    if (std::string flaw = flaw_of_operand(operand, "destination", ranks); !flaw.empty()) return flaw;
  }
  for (const Operand& operand : step.sources) {
    if (std::string flaw = flaw_of_operand(operand, "source", ranks); !flaw.empty()) return flaw;
  }
  if (std::string flaw = flaw_of_length(schedule, step); !flaw.empty()) return flaw;
  std::string flaw = flaw_of_channels(step.destinations);
  return flaw.empty() ? flaw_of_channels(step.sources) : flaw;
}

std::string flaw_of_exposure(const Schedule& schedule, const Exposure& exposure) {
  if (exposure.is_empty()) return {};
  const Shape& shape = schedule.shape;
  if (exposure.space == Space::channel || exposure.space == Space::line) {
    return "exposes a channel or the flag line; only input, output and scratch can be";
  }
  const bool is_hidden = (exposure.space == Space::input && !shape.exposes_input) ||
                         (exposure.space == Space::output && !shape.exposes_output);
  if (is_hidden) {
    return fmt::format("exposes the {}, but the schedule's shape says that no rank does",
                       exposure.space == Space::input ? "input" : "output");
  }
  if (is_in_range(exposure.units, exposure.per_target, schedule.problem.ranks)) return {};
  return fmt::format("exposes {}, with {} more per target", describe(exposure.units), exposure.per_target);
}

}  // namespace

bool is_in_range(const RankSet& set, int ranks) {
  return set.first >= 0 && set.first < ranks && set.n >= 0 && set.n <= ranks &&
         (set.n < 2 || (set.stride >= 0 && set.stride < ranks));
}

std::string describe_range(const RankSet& set, int ranks) {
  return fmt::format("the ranks {{first {}, stride {}, n {}}}, on {} ranks: first and stride are 0 to {}, n is 0 to {}",
                     set.first, set.stride, set.n, ranks, ranks - 1, ranks);
}

std::string flaw_of(const Schedule& schedule, const Step& step, Place place) {
  const int ranks = schedule.problem.ranks;
  if (std::string flaw = flaw_of_turn(step, place); !flaw.empty()) return flaw;
  if (step.verb == Verb::move) return flaw_of_move(schedule, step);
  if (!is_in_range(step.ranks, ranks)) {
    return fmt::format("{} {}", step.verb == Verb::signal ? "SIGNAL to" : "WAIT for",
                       describe_range(step.ranks, ranks));
  }
  if (step.phase < 1 || step.phase > kMostPhase) {
    return fmt::format("phase {} is out of range: 1 to {}", step.phase, kMostPhase);
  }
  if (step.verb == Verb::wait) return {};
  std::string flaw = flaw_of_exposure(schedule, step.read);
  return flaw.empty() ? flaw_of_exposure(schedule, step.write) : flaw;
}

}  // namespace tutti

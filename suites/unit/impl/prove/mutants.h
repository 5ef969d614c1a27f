// SPDX-License-Identifier: Apache-2.0
// Schedules with one mechanical fault, on every rank or on one: a step is dropped, doubled, put before the one before
// it, or looks elsewhere.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "suites/unit/impl/prove/programs.h"

namespace tutti {

enum class Fault {
  none,
  dropped,
  doubled,
  swapped,
  source_shifted,
  destination_shifted,
  other_peer,
  other_receiver,
  final_changed,
  turn_changed,
  phase_raised,
  set_cut,
  set_moved,
  exposure_closed,
  exposure_shifted
};
inline constexpr std::array kFaults{Fault::none,      Fault::dropped,        Fault::doubled,
                                    Fault::swapped,   Fault::source_shifted, Fault::destination_shifted,
                                    Fault::other_peer};
/// Those of the night.
inline constexpr std::array kMoreFaults{Fault::other_receiver,  Fault::final_changed, Fault::phase_raised,
                                        Fault::set_cut,         Fault::set_moved,     Fault::exposure_closed,
                                        Fault::exposure_shifted};

inline std::string to_string(Fault fault) {
  constexpr std::array kNames{"none",
                              "dropped",
                              "doubled",
                              "swapped",
                              "source shifted",
                              "destination shifted",
                              "from another peer",
                              "to another peer",
                              "final or not",
                              "in turn or not",
                              "phase raised",
                              "set cut",
                              "set moved",
                              "exposure closed",
                              "exposure shifted"};
  return kNames[static_cast<std::size_t>(fault)];
}

/// The operand one unit further on, around its space.
inline void shift(const Schedule& schedule, Operand& operand) {
  if (operand.space == Space::channel) return;
  const int per_block = schedule.shape.units_per_block;
  const int rank = operand.ranks.first;
  const int count = operand.space == Space::input    ? input_blocks(schedule.problem, rank) * per_block
                    : operand.space == Space::output ? output_blocks(schedule.problem, rank) * per_block
                                                     : schedule.shape.scratch_units;
  if (count > 0) operand.units.start = (operand.units.start + 1) % count;
}

/// What is wrong with step `index` of `program`; whether it differs from what it was.
inline bool break_step(const Schedule& schedule, Program& program, int index, Fault fault) {
  const Program before = program;
  const int count = static_cast<int>(program.size());
  Step& step = at(program, index);
  switch (fault) {
    case Fault::none:
      return true;
    case Fault::dropped:
      drop(program, index);
      return true;
    case Fault::doubled:
      double_step(program, index);
      return true;
    case Fault::swapped:
      swap_steps(program, index, (index + 1) % count);
      break;
    case Fault::source_shifted:
      if (step.verb == Verb::move) shift(schedule, step.sources.items[static_cast<std::size_t>(step.sources.size - 1)]);
      break;
    case Fault::destination_shifted:
      if (step.verb == Verb::move) shift(schedule, step.destinations.items[0]);
      break;
    case Fault::other_peer:
      for (int i = 0; step.verb == Verb::move && i < step.sources.size; ++i) {
        Operand& from = step.sources.items[static_cast<std::size_t>(i)];
        if (from.space != Space::channel) continue;
        from.ranks.first = (from.ranks.first + 1) % schedule.problem.ranks;
        break;
      }
      break;
    case Fault::other_receiver:
      for (int i = 0; step.verb == Verb::move && i < step.destinations.size; ++i) {
        Operand& to = step.destinations.items[static_cast<std::size_t>(i)];
        if (to.space == Space::channel) to.ranks.first = (to.ranks.first + 1) % schedule.problem.ranks;
      }
      break;
    case Fault::final_changed:
      step.is_final = step.verb == Verb::move && !step.is_final;
      break;
    case Fault::turn_changed:
      step.in_turn_with_next = step.verb == Verb::move && !step.in_turn_with_next;
      break;
    case Fault::phase_raised:
      step.phase += step.verb == Verb::move ? 0 : 1;
      break;
    case Fault::set_cut:
      step.ranks.n -= step.verb == Verb::move ? 0 : 1;
      break;
    case Fault::set_moved:
      if (step.verb != Verb::move) step.ranks.first = (step.ranks.first + 1) % schedule.problem.ranks;
      break;
    case Fault::exposure_closed:
      step.read = step.write = {};
      break;
    case Fault::exposure_shifted:
      for (Exposure* const exposure : {&step.read, &step.write}) exposure->units.start += exposure->units.length;
      break;
  }
  return program != before;
}

/// Slots as stated, a line per unit, and as many slices per message as it has units.
inline BindRequest narrow_request_for(const Schedule& schedule, bool is_in_place) {
  BindRequest request = request_for(schedule, Buffers::shared, is_in_place);
  const int longest = schedule.shape.largest_message;
  request.resources.slots = longest == 0 ? 1 : std::max(1, schedule.least_slots(1));
  request.resources.slot_bytes = 64 * std::max(1, longest);
  request.segment = request.count;
  return request;
}

}  // namespace tutti

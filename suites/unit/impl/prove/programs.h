// SPDX-License-Identifier: Apache-2.0
// Schedules as lists of steps, so that a test can break one: the real generators' steps, written out, edited, and
// proved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/prove/prove.h"

namespace tutti {

using Program = std::vector<Step>;

/// All ranks' steps of a schedule; what the schedule says of itself stays as it was.
struct Programs {
  Schedule original;
  std::vector<Program> ranks;

  [[nodiscard]] Program& operator[](int rank) { return ranks[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Schedule schedule() const {
    Schedule schedule = original;
    schedule.turning = Turning::none;
    schedule.step_count = [steps = ranks](int rank) {
      return static_cast<int>(steps[static_cast<std::size_t>(rank)].size());
    };
    schedule.step = [steps = ranks](int rank, int index) {
      return steps[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
    };
    return schedule;
  }
};

inline Schedule schedule_for(Collective collective, std::string_view name, int ranks, int root = 0) {
  const auto algorithm = find_algorithm(collective, name);
  EXPECT_TRUE(algorithm.is_ok()) << algorithm.status().message();
  return schedule_of(*algorithm.value(), {.collective = collective, .ranks = ranks, .root = root});
}

inline Programs programs_of(const Schedule& schedule) {
  Programs programs{.original = schedule, .ranks = {}};
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    Program& program = programs.ranks.emplace_back();
    for (int i = 0; i < schedule.step_count(rank); ++i) program.push_back(schedule.step(rank, i));
  }
  return programs;
}
inline Programs programs_of(Collective collective, std::string_view name, int ranks) {
  return programs_of(schedule_for(collective, name, ranks));
}

/// One cache line per unit and one slot per line: unit u of a block is its bytes [64 u, 64 (u + 1)).
inline BindRequest request_for(const Schedule& schedule, Buffers buffers = Buffers::shared, bool is_in_place = false) {
  const Collective collective = schedule.problem.collective;
  const Op op = takes_op(collective, Op::avg) ? Op::avg : Op::sum;
  return {.rank = 0,
          .count = has_data(schedule.problem.collective) ? 16 * schedule.shape.units_per_block : 0,
          .dtype = Dtype::f32,
          .op = is_reducing(collective) ? op : Op::none,
          .is_in_place = is_in_place,
          .buffers = buffers,
          .resources = {.slots = 64, .slot_bytes = 64, .scratch_bytes = 1 << 20},
          .segment = 0,
          .keep_exposures = true};
}

/// All findings as one text, a line each; empty if the proof holds.
inline std::string findings_of(const Schedule& schedule, const BindRequest& request) {
  const Result<Proof> proof = prove(schedule, request);
  if (!proof.is_ok()) return proof.status().message();
  std::string text;
  for (const Finding& finding : proof.value().findings) text += to_string(finding) + "\n";
  return text;
}
inline std::string findings_of(const Programs& programs, Buffers buffers = Buffers::shared, bool is_in_place = false) {
  const Schedule schedule = programs.schedule();
  return findings_of(schedule, request_for(schedule, buffers, is_in_place));
}

inline void drop(Program& program, int index) { program.erase(program.begin() + index); }
inline void double_step(Program& program, int index) {
  const Step step = program[static_cast<std::size_t>(index)];
  program.insert(program.begin() + index, step);
}
inline void swap_steps(Program& program, int a, int b) {
  std::swap(program[static_cast<std::size_t>(a)], program[static_cast<std::size_t>(b)]);
}
inline Step& at(Program& program, int index) { return program[static_cast<std::size_t>(index)]; }

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Algorithms that are no part of the library: schedules for one problem each, which a program adds before it uses any.
#pragma once

#include "impl/algorithms/algorithm.h"
#include "impl/types/status.h"

namespace tutti {

inline constexpr int kMostAdded = 16;

/// Adds an algorithm named as its schedule. It stays until the process ends. Requires: no other thread uses algorithms.
/// Errors: invalid_argument if the collective has one of that name; resource beyond kMostAdded.
[[nodiscard]] Status add_algorithm(const Schedule& schedule, bool is_right_in_place);

/// The one problem that an added algorithm has steps for; null if `algorithm` is one of the library.
[[nodiscard]] const Problem* added_problem(const Algorithm& algorithm);

/// Whether `algorithm` has steps for the problem. One of the library has; an added one has them for one problem alone.
[[nodiscard]] bool has_steps(const Algorithm& algorithm, const Problem& problem, bool is_in_place);

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// What a gate can find: the smallest step of each cell, by how far its pairs of launches scatter. A few blocks show
// that before a gate begins.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/gate/judge.h"

namespace tutti::harness::gate {

inline constexpr double kPower = 0.9;  ///< a step that a cell can show is found in so many gates

/// How much slower, as a share, this side has to be so that a gate of `pairs` pairs finds it in kPower of all gates:
/// the floor, half of the interval, and what the estimate itself scatters. `scatter`: standard deviation of the
/// logarithms of the ratios of pairs. They are taken as normal and independent; the efficiency of Hodges & Lehmann's
/// estimate is then 3/pi (1963, Ann. Math. Stat. 34:598).
[[nodiscard]] double smallest_step(double floor, double scatter, double pairs);

/// A cell as a few blocks have shown it.
struct CellPower {
  std::string cell;
  std::optional<double> time_us;  ///< median of this side; empty: it has no time
  std::size_t pairs = 0;
  double scatter = 0;           ///< of their log ratios, a robust standard deviation
  double floor = 0;             ///< see gate_floor
  std::optional<double> least;  ///< the smallest step with as few blocks as a gate has; empty below 3 pairs
  std::optional<double> most;   ///< and with as many
  std::string reason;           ///< why there is no time
};
/// `blocks` have given the evidence. A gate has from `least_blocks` to `most_blocks`.
[[nodiscard]] CellPower power_of(const Evidence& evidence, int blocks, int least_blocks, int most_blocks);
/// A line for each cell below two of headings.
[[nodiscard]] std::string power_table(std::span<const CellPower> cells, int least_blocks, int most_blocks);

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
// Contention: groups of the job's ranks run at the same time, and what that costs each of them. Each runner is in one
// group and has its group's variants. A round has for every system a block of each group alone, and one of all groups
// together; the blocks take turns in seeded order. Alone, the runners of the other groups rest.
//
//   system A: group 0 alone | group 1 alone | together     system B: group 0 alone | group 1 alone | together
//
// Together, every sample starts on all ranks of the job at once (Start::together), so all groups take the same steps
// of a block. A group's time is that of its own ranks: from its earliest entry to its latest end. In cadence
// `isolated` a sample is one operation of each group, and one that is over does no longer disturb the others. In
// cadence `streaming` the loops of the groups are made equally long, so that each is disturbed until its end.
//
// Slowdown: in each round the median together / the median alone. The middle of these ratios is the slowdown, with the
// interval of the signed-rank test (statistics/paired.h).
#pragma once

#include <optional>
#include <vector>

#include "harness/measure/cell.h"
#include "harness/measure/runner.h"
#include "harness/measure/series.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// Runner of this process, or thread, among those of its group: `members` are the runners of the job that are in it.
/// It agrees with them on lines of the board that are the group's. Requires: all runners on one machine, one rank each.
[[nodiscard]] Runner runner_in_group(const Runner& world, int group, const std::vector<int>& members);

struct ContentionPlace {
  Runner& world;                         ///< among all runners
  Runner& group;                         ///< among those of the group
  const std::vector<int>& group_of_all;  ///< by runner of the job
  int groups = 0;
};

/// What a group has of one system.
struct Contended {
  Series alone;
  Series together;
};

inline constexpr std::size_t kMostContending = 64;  ///< systems of one cell

/// Measures the systems whose variants these are, on the group of this runner and on all others. All runners call it,
/// with as many variants, at most kMostContending. Errors: those of the variants and of the runners; the job is then
/// over.
[[nodiscard]] Result<std::vector<Contended>> contend(const ContentionPlace& place, std::vector<Variant>& variants,
                                                     const CellOptions& options);

/// Time together / time alone.
struct Slowdown {
  double middle = 1;
  std::optional<double> low = {}, high = {};  ///< of 95 %; empty below 6 rounds
};
/// Empty if there is no round in which both were timed.
[[nodiscard]] std::optional<Slowdown> slowdown_of(const Contended& contended, const CellOptions& options);

/// The text of runner `owner`, on all runners. All runners call it. Errors: those of the runner.
[[nodiscard]] Result<std::string> text_of_runner(Runner& runner, int owner, const std::string& mine);

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
// Counters: what is known of a cell before anything is timed, and without noise. They are the algorithm that is chosen
// for it and its messages, bytes and rounds, counted in its steps and equal to its formulas. They are also what its
// operations allocate and call. `tutti list --costs` says them, so that another build can be asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "harness/cases/topology.h"
#include "harness/gate/footprint.h"
#include "harness/gate/judge.h"
#include "harness/gate/pairs.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::gate {

struct Counters {
  std::string algorithm;
  std::int64_t messages = 0;  ///< into channels, by all ranks
  std::int64_t bytes = 0;   ///< into channels and over other ranks' memory, by all ranks; of a v form as if its blocks
                            ///< were all as long as the largest
  std::int64_t rounds = 0;  ///< the longest chain of moves and of transfers between ranks
  bool is_flat = false;     ///< see is_flat_on_hosts
  std::optional<Footprint> footprint = {};  ///< empty where nobody has counted

  bool operator==(const Counters&) const = default;
};

/// What the steps of all ranks do together; of `steps` nothing is told, and the depth is the largest.
/// Errors: refuted where that is not what the formulas say, naming the rank and both.
[[nodiscard]] Result<Cost> counted_cost(const Schedule& schedule);

/// Of a case of the own backend, without the footprint; `auto` is resolved for the cores of this process, or for the
/// hosts that the ranks are on.
/// Errors: invalid_argument where there is no such algorithm; refuted where its steps are not what its formulas say.
[[nodiscard]] Result<Counters> counters_of(const Case& one, const Topology& topology);
/// Adds the footprint. Errors: as footprint_of, and unavailable on several hosts; without it the rest stands.
Status count_footprint(Counters& counters, const Case& one, const Topology& topology);

using CountersByCell = std::map<std::string, Counters>;
/// Why a cell has no counters, or no footprint.
using ReasonsByCell = std::map<std::string, std::string>;
[[nodiscard]] std::string to_json(const CountersByCell& all, const ReasonsByCell& not_counted = {});
/// Empty where the text is not of this form: an older build does not say.
[[nodiscard]] CountersByCell counters_from_json(std::string_view text);
[[nodiscard]] ReasonsByCell reasons_from_json(std::string_view text);

/// Of the same algorithm, what this side has more of makes it slower. Another algorithm is told, and times decide: it
/// has other counters for a reason. Whether they were compared, then.
bool compare_counters(Evidence& evidence, const Counters& mine, const Counters& other, const SideNames& names);
/// For a gate without another side that counts. A warm operation needs neither allocations nor, where they are judged,
/// system calls; what it has of them makes this side slower.
void require_no_footprint(Evidence& evidence, const Counters& mine, bool judges_calls);

}  // namespace tutti::harness::gate

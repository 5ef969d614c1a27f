// SPDX-License-Identifier: Apache-2.0
// The last operations of the ranks of a job that hangs, in the form of torch's flight recorder, which its `fr_trace`
// reads: a pickle for each rank. Beside them the stacks of the ranks' processes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/board/rank_calls.h"
#include "harness/floors.h"
#include "harness/process/stacks.h"
#include "impl/communicator/diagnosis.h"
#include "impl/types/status.h"

namespace tutti::harness::report {

/// What a file's name has before the number of its rank.
inline constexpr std::string_view kFlightPrefix = "tutti_rank_";

/// The pickle (protocol 2) of one of `ranks` ranks: `version`, `pg_config` with one group of all ranks, and `entries`,
/// one for each call. The v forms, those of pairs, scan and exscan are left out: not every fr_trace knows a name for them.
[[nodiscard]] std::string flight_pickle(int ranks, std::span<const StartedCall> calls);

/// Writes the pickle of each rank of which something is known into the folder, and then removes those of all other
/// ranks: they would be read as of this job. Does all that it can. Errors: invalid_argument naming the first file that
/// fails.
[[nodiscard]] Status write_flight(const std::string& folder, int ranks, const CallsOfRanks& calls);

inline constexpr std::string_view kStacksName = "stacks.txt";

/// Writes the stacks of the processes of `ranks` ranks into the folder, alike ones once. If there are none, it removes
/// an older file. Errors: invalid_argument naming the file.
[[nodiscard]] Status write_stacks(const std::string& folder, int ranks, std::span<const RankStack> stacks);

}  // namespace tutti::harness::report

// SPDX-License-Identifier: Apache-2.0
// The ranks for which late ranks of a host wait, as the first process of each host sends them to process 0
// (joined_job.h).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// "<rank> <rank that it awaits>", a line for each.
[[nodiscard]] std::string awaited_lines(const std::map<int, int>& awaited);
/// Errors: invalid_argument that quotes the line, of a job of `ranks` ranks.
[[nodiscard]] Result<std::map<int, int>> awaited_from_lines(std::string_view lines, int ranks);

}  // namespace tutti::harness::hosts

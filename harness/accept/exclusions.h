// SPDX-License-Identifier: Apache-2.0
// Which nodes jobs should do without, for Slurm and as a hostfile. What an earlier run wrote into the file for Slurm is
// read again: what it found stays until a run that looks for it finds it no more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// In the order of nodes. `old`: the text of slurm_file of an earlier run, or of anything else, which says nothing
/// then.
/// A node that `old` proposed to drain stays excluded until a run has looked for its fault again. Such a run plays the
/// stage that found it to the end, on the same rail, with no larger margin.
[[nodiscard]] std::vector<std::string> excluded_names(const AcceptReport& report, std::string_view old);
/// A hostfile of the nodes that passed. The others stand in comments, with the reason.
[[nodiscard]] std::string hosts_file(const AcceptReport& report, std::string_view old);
/// First `--exclude=...` for sbatch and srun, or an empty line; then `scontrol` lines in comments: DRAIN, and RESUME
/// for a node of `old` that passed. tutti runs none of them. A reason begins with "tutti:", so that it can be told from
/// those of other tools. `page` is named in the reason if not empty.
[[nodiscard]] std::string slurm_file(const AcceptReport& report, std::string_view page, std::string_view old);

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance for other programs: Slurm, hostfiles, CI servers, Prometheus and scripts.
#pragma once

#include <string>
#include <string_view>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// A hostfile of the nodes that passed. The others stand in comments, with the reason.
[[nodiscard]] std::string hosts_file(const AcceptReport& report);
/// First `--exclude=...` for sbatch and srun, or an empty line; then `scontrol` lines in comments. tutti runs none of
/// them. A reason begins with "tutti:", so that a later RESUME can tell it from those of other tools. `page` is named
/// in the reason if not empty.
[[nodiscard]] std::string slurm_file(const AcceptReport& report, std::string_view page);
/// A suite with a case per node, and one per finding of a link or leaf.
[[nodiscard]] std::string accept_junit(const AcceptReport& report);
/// tutti_accept_verdict{node,stage,class,verdict} and tutti_accept_of_fleet_ratio{node,direction}.
[[nodiscard]] std::string accept_prometheus(const AcceptReport& report);
/// One document; `--baseline` reads it again.
[[nodiscard]] std::string accept_json(const AcceptReport& report);

}  // namespace tutti::harness::accept

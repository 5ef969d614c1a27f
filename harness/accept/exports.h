// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance for other programs: Slurm, hostfiles, Prometheus and scripts. JUnit is in junit.h.
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
/// in the reason if not empty. `old` is the text of the same file after an earlier run. A node that it proposed to
/// drain for a reason of tutti's is proposed to RESUME if it passed now; if nothing new is known of it, the line stays.
/// What `old` says of other nodes, or in other words, is left out.
[[nodiscard]] std::string slurm_file(const AcceptReport& report, std::string_view page, std::string_view old);
/// tutti_accept_verdict{node,stage,class,verdict} and tutti_accept_of_fleet_ratio{node,direction}.
[[nodiscard]] std::string accept_prometheus(const AcceptReport& report);
/// One document; `--baseline` reads it again.
[[nodiscard]] std::string accept_json(const AcceptReport& report);

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
// `tutti run` and `tutti check` if a starter has started them once per rank: mpirun, srun, torchrun, or a script. The
// processes become the ranks of one job. Process 0 is its launcher, and reports; its rank is a child of it.
#pragma once

#include <optional>

#include "harness/text/streams.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

/// The selection table of this process, as its command line and environment name it: only set in such a job.
inline constexpr const char* kTableOfProcess = "TUTTI_TABLE_OF_PROCESS";

/// What became of this process.
struct Joining {
  std::optional<int> exit_code = {};  ///< it was a rank, and is done; or nothing came of it
};

/// Nothing if no starter has started this process, or has started it alone. In process 0 of a job the settings then
/// say who its ranks are. Every other process returns when its ranks are done. `only_lists`: nothing is to run.
[[nodiscard]] Joining join_job(Settings& settings, bool only_lists);

/// The same for `tutti accept`, where one process a host is enough: the first of each host becomes what stays there
/// (harness/hosts/crew.h), and further ones end at once. In process 0 the settings then say which hosts there are.
[[nodiscard]] Joining join_crew(Settings& settings, bool only_lists);

}  // namespace tutti::program

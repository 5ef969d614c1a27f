// SPDX-License-Identifier: Apache-2.0
// Resource limits: what a job takes (Needs) against what the system lets this user have (Limits), compared before
// anything is started. A launcher that runs out of descriptors in the middle cannot say so any more, and mpirun
// crashes.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/launch/job.h"
#include "harness/machine/tree.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

/// What a job takes of one resource, as a base and a share of each rank: so it can be said how many ranks fit.
struct Need {
  std::uint64_t base = 0;
  std::uint64_t per_rank = 0;
};

struct Needs {
  int ranks = 1;
  Need descriptors;    ///< of the process that has most open
  Need tasks;          ///< processes and threads of this user, with those that there are
  Need new_tasks;      ///< processes and threads that are added to them
  Need address_bytes;  ///< of the process that maps most
};
/// `job` as this process would start it now.
[[nodiscard]] Needs needs_of(const Job& job);
/// `processes` processes that join a job, with `ranks_here` ranks each, as the first of them sees it.
[[nodiscard]] Needs needs_of_joining(int processes, int ranks_here);

/// What there is; nothing: no limit.
struct Limits {
  std::optional<std::uint64_t> descriptors;    ///< ulimit -Hn: the soft limit is raised up to it
  std::optional<std::uint64_t> tasks;          ///< ulimit -u; the superuser has no such limit
  std::optional<std::uint64_t> new_tasks;      ///< that the cgroups around this process leave
  std::optional<std::uint64_t> address_bytes;  ///< ulimit -v
};
[[nodiscard]] Limits limits_here();
/// Processes and threads that pids.max of the cgroups around this process leaves, of version 1 or 2; nothing: no limit.
[[nodiscard]] std::optional<std::uint64_t> tasks_left(const Tree& tree);

/// Errors: resource naming what is needed, the limit, and how many ranks there may be.
[[nodiscard]] Status check_limits(const Needs& needs, const Limits& limits);
/// The same of this process. Its soft limit of descriptors is then high enough.
[[nodiscard]] Status prepare_limits(const Needs& needs);

}  // namespace tutti::harness::launch

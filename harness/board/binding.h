// SPDX-License-Identifier: Apache-2.0
// Binding ranks to cores. masks_for is the rule, a pure function; bind_this_thread applies it. Backends of one cell run
// in the same threads, so the masks are the same for all of them.
#pragma once

#include <optional>
#include <pthread.h>
#include <vector>

#include "harness/cases/conditions.h"
#include "harness/cases/ranks_as.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// Where ranks may run.
struct Places {
  std::vector<int> allowed;             ///< cores, rising
  std::vector<std::vector<int>> nodes;  ///< NUMA nodes and their cores; empty: the machine does not show them
};
/// Those of this process, before any of its threads is bound.
[[nodiscard]] Places places_here();

/// The cores of each of `runners` threads that run ranks. Without a choice: core if every thread has one, else none.
/// Errors: invalid_argument with the numbers if there are not enough cores, unavailable if the machine shows no
/// nodes.
[[nodiscard]] Result<std::vector<std::vector<int>>> masks_for(std::optional<Bind> bind, int runners,
                                                              const Places& places);
/// Whether some runners have to share a core.
[[nodiscard]] bool is_crowded(const std::vector<std::vector<int>>& masks);

/// Cores that the ranks of a job use together: what `auto` chooses by, the same in the launcher and in all ranks. Not
/// for a thread that is pinned.
[[nodiscard]] int cores_together(RanksAs ranks_as);

/// Binds a thread of this process. Errors: unavailable with the kernel's reason.
Status bind_thread(pthread_t thread, const std::vector<int>& mask);
/// The same of the calling one.
Status bind_this_thread(const std::vector<int>& mask);

}  // namespace tutti::harness::board

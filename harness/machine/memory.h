// SPDX-License-Identifier: Apache-2.0
// Memory that can still be had: what the machine has left, and what each control group of this process has. Beyond it,
// allocating does not fail: the kernel kills a process.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/machine/tree.h"

namespace tutti::harness::machine {

/// The limit of one control group.
struct CgroupMemory {
  std::int64_t limit = 0;
  std::int64_t used = 0;  ///< without the cache of files, which the kernel gives back
};
/// Those of this process' group and the groups around it that have a limit, in versions 1 and 2. All of them hold.
[[nodiscard]] std::vector<CgroupMemory> cgroup_memory(const Tree& tree);

/// What is left before the nearest limit; hosts exchange it.
struct MemoryLeft {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();  ///< most where no file tells of a limit
  std::int64_t of = 0;                                            ///< that limit
  bool is_of_cgroup = false;

  /// "0.9 GiB are left of the 1.0 GiB of the cgroup"
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] MemoryLeft memory_left(const Tree& tree = Tree("/"));

/// "1.5 GiB", "12 MiB".
[[nodiscard]] std::string memory_text(double bytes);

}  // namespace tutti::harness::machine

// SPDX-License-Identifier: Apache-2.0
// What operations cost besides their work: allocations and system calls, counted exactly.
//
// Ranks are tasks of one thread for it, whatever the case says: there nobody waits for a core, so that the counts are
// the same each time. They run in a child that is traced from the moment on at which it has warmed up.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::harness::gate {

struct Footprint {
  std::int64_t allocations = 0;   ///< by operator new
  std::int64_t system_calls = 0;  ///< that reach the kernel: reading a clock does not where the vDSO has it

  bool operator==(const Footprint&) const = default;
};

/// What is counted together: a plan that is bound late, or a call in every few operations, shows.
inline constexpr int kCountedOperations = 16;

/// Of kCountedOperations operations of a case of the own backend, of all ranks together. The algorithm is named, not
/// `auto`. Errors: unavailable where a process may not trace its child; timeout; those of the backend and of memory.
[[nodiscard]] Result<Footprint> footprint_of(const Case& one);

/// Of whatever `perform` does once `prepare` is done. Both run in the child, and what they leave is lost.
/// Errors: unavailable where a process may not trace its child; timeout; those of the two.
[[nodiscard]] Result<Footprint> footprint_of(const std::function<Status()>& prepare,
                                             const std::function<Status()>& perform);

/// Whether to read the clock is a system call here: then those of operations, which read it, are the machine's.
[[nodiscard]] bool clock_calls_kernel();

}  // namespace tutti::harness::gate

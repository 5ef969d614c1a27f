// SPDX-License-Identifier: Apache-2.0
// Starting a process.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

struct SpawnRequest {
  std::vector<std::string> command;      ///< the program is looked for in PATH
  std::vector<std::string> environment;  ///< "NAME=value", put over this process's own; "NAME" removes it
  int input = -1;                        ///< descriptor for stdin; -1: /dev/null
  int output = -1;                       ///< for stdout
  int errors = -1;                       ///< for stderr; -1: that for stdout
  int kept = -1;                         ///< a descriptor that it has too, under the same number
  int death_signal = 0;                  ///< what it gets when the calling thread ends
};

/// Starts the leader of a session of its own (no terminal signal reaches it). It does not get TUTTI_SECRET: an mpiexec
/// or an agent would send its environment over the network. Errors: unavailable if the program cannot be executed,
/// resource if there can be no further process.
[[nodiscard]] Result<pid_t> spawn(const SpawnRequest& request);

/// A program with a path that also holds in another process.
[[nodiscard]] std::string resolve_program(const std::string& program);

}  // namespace tutti::harness::process

// SPDX-License-Identifier: Apache-2.0
// What /proc says of other processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::process {

/// The state of one on a machine that has said nothing for a while.
inline constexpr char kUnheard = '?';

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = kUnheard;  ///< R running, S sleeping, D in a system call, T stopped, Z dead and not yet waited for
};

/// Nothing if there is no such process.
[[nodiscard]] std::optional<ProcessInfo> process_info(pid_t pid);
/// How a process has ended that its parent has not waited for yet, as waitpid gives it; nothing of any other process.
[[nodiscard]] std::optional<int> unread_wait_status(pid_t pid);
[[nodiscard]] std::vector<ProcessInfo> all_processes();
/// Value of a variable in the environment with which `pid` was started; nothing if it is not there or not ours to read.
[[nodiscard]] std::optional<std::string> environment_of(pid_t pid, std::string_view name);
/// "stopped (state T)", "sleeping (state S)", ...
[[nodiscard]] std::string describe_state(char state);

/// Whether a process runs the program of this one. False if that cannot be seen.
[[nodiscard]] bool is_of_this_program(pid_t pid);

}  // namespace tutti::harness::process

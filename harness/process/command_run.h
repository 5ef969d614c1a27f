// SPDX-License-Identifier: Apache-2.0
// Another program, which this one starts and waits for: what it printed, by a deadline. What it prints comes through
// memory that only the two programs know, so nothing is left, however it ends.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"
#include "harness/process/interrupts.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

struct CommandRun {
  int exit_code = 0;   ///< 128 + the number of the signal that killed it
  std::string output;  ///< stdout
  std::string errors;  ///< stderr

  /// The last complaint of tutti on stderr, or else the last line there, or else of the output: for messages.
  [[nodiscard]] std::string last_words() const;
};

/// Called once a command has run for so long; `state` is that of its process, in words.
struct Delay {
  std::chrono::milliseconds after;
  std::function<void(pid_t pid, const std::string& state)> tell;
};

/// It is ended at `limit`, and where this process is interrupted. It reads `input` on stdin.
/// Errors: unavailable if it cannot be executed, resource, timeout naming the limit, aborted where interrupted.
[[nodiscard]] Result<CommandRun> run_command(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                                             const Interrupts& interrupts, std::string_view input = {},
                                             const Delay& delay = {});

/// A file without a path. Errors: resource.
[[nodiscard]] Result<Descriptor> memory_file(const char* name);

}  // namespace tutti::harness::process

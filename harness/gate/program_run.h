// SPDX-License-Identifier: Apache-2.0
// One start of a build of tutti, what it printed and the rows that it wrote. They come through memory that only the two
// programs know, so nothing is left, however it ends.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/process/interrupts.h"
#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::gate {

struct ProgramRun {
  int exit_code = 0;   ///< 128 + the number of the signal that killed it
  std::string output;  ///< stdout
  std::string errors;  ///< stderr
  std::vector<Row> rows;
  std::string late;  ///< that it was ended at its limit, in words; empty: it ended by itself

  /// The last complaint of tutti on stderr, or else the last line there, or else of the output: for messages.
  [[nodiscard]] std::string last_words() const;
};

/// Called once a command has run for so long; `state` is that of its process, in words.
struct Delay {
  std::chrono::milliseconds after;
  std::function<void(pid_t pid, const std::string& state)> tell;
};

/// It is ended at `limit`, and where this process is interrupted. It reads `input` on stdin. No rows.
/// Errors: unavailable if it cannot be executed, resource, timeout naming the limit, aborted where interrupted.
[[nodiscard]] Result<ProgramRun> run_command(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                                             const Interrupts& interrupts, std::string_view input = {},
                                             const Delay& delay = {});
/// `command` and `--csv`: its rows, as far as it came. If it came to its limit `late`, that is no error: a build that
/// hangs is something found. Errors: otherwise as run_command.
[[nodiscard]] Result<ProgramRun> run_program(std::vector<std::string> command, std::chrono::milliseconds limit,
                                             const Interrupts& interrupts);

/// The program of a build: of a folder with bin/tutti or tutti in it. Errors: invalid_argument naming what was looked
/// for.
[[nodiscard]] Result<std::string> program_of_build(const std::string& folder);

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
// One start of a build of tutti, what it printed and the rows that it wrote.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/process/command_run.h"
#include "harness/process/interrupts.h"
#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::gate {

struct ProgramRun : CommandRun {
  std::vector<Row> rows;
  std::string late;  ///< that it was ended at its limit, in words; empty: it ended by itself
};

/// `command` and `--csv`: its rows, as far as it came. If it came to its limit `late`, that is no error: a build that
/// hangs is something found. Errors: otherwise as run_command.
[[nodiscard]] Result<ProgramRun> run_program(std::vector<std::string> command, std::chrono::milliseconds limit,
                                             const Interrupts& interrupts);

/// The program of a build: of a folder with bin/tutti or tutti in it. Errors: invalid_argument naming what was looked
/// for.
[[nodiscard]] Result<std::string> program_of_build(const std::string& folder);

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: exit codes, how an error is told. Each subcommand registers itself on
// the program's command line and leaves the function that runs it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "impl/types/status.h"

namespace tutti::program {

/// The one table of exit codes; src/errors.md has it in prose.
enum Exit : int {
  exit_ok = 0,
  exit_wrong = 1,        ///< a result is wrong, a proof refuted, or a fault missed that was put in on purpose
  exit_usage = 2,        ///< unwritable output included
  exit_environment = 3,  ///< this machine or build cannot run it
  exit_slower = 4,       ///< slower than the gate allows
  exit_crash = 5,        ///< crash, hang or timeout
  exit_undecided = 6,    ///< too noisy to say
  exit_interrupted = 130,
};
[[nodiscard]] int exit_code_of(const Status& status);

/// `parsed`, or its error with the flag in front.
template <class T>
Result<T> of_flag(std::string_view flag, Result<T> parsed) {
  if (parsed.is_ok()) return parsed;
  return error(parsed.status().code(), "{}: {}", flag, parsed.status().message());
}

/// Prints `tutti: <message>` to stderr; returns the exit code.
int complain(const Status& status);

/// The same of what all processes of a job know alike, for they have met: the first of them tells it.
int complain_once(const Status& status);

/// The same of what a process finds out by itself. Of those of one host that find the same one tells it: the first, or
/// another one where that does not.
int complain_here(const Status& status);

/// What a plugin of Nagios prints whose options are wrong, or that reached no verdict.
inline constexpr std::string_view kNagiosUnknown = "TUTTI UNKNOWN: nothing was tested; stderr says why\n";

/// Cores that this process may use, at most 8: the default of --ranks.
[[nodiscard]] int default_ranks();

/// The command line as it was typed, for the record.
[[nodiscard]] const std::string& command_line();
void set_command_line(int argc, char** argv);
/// A word as a shell reads it back.
[[nodiscard]] std::string shell_word(std::string_view word);

/// What a parsed command line runs; set by the subcommand that was chosen.
using Action = std::function<int()>;

void add_run(CLI::App& program, Action& action);
void add_check(CLI::App& program, Action& action);
void add_soak(CLI::App& check, Action& action);    ///< a subcommand of check
void add_repeat(CLI::App& check, Action& action);  ///< a subcommand of check
void add_prove(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_draw(CLI::App& program, Action& action);
void add_simulate(CLI::App& program, Action& action);
void add_export(CLI::App& program, Action& action);
void add_train(CLI::App& program, Action& action);
void add_gate(CLI::App& program, Action& action);
void add_accept(CLI::App& program, Action& action);
void add_guidelines(CLI::App& program, Action& action);
void add_tune(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_list(CLI::App& program, Action& action);
void add_doctor(CLI::App& program, Action& action);
void add_rank(CLI::App& program, Action& action);      ///< hidden: what the launcher starts
void add_host(CLI::App& program, Action& action);      ///< hidden: what the launcher has on each of several machines
void add_probe(CLI::App& program, Action& action);     ///< hidden: a reference in a process of its own; probe.h
void add_generate(CLI::App& program, Action& action);  ///< hidden: the man page and completions, when tutti is built

}  // namespace tutti::program

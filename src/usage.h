// SPDX-License-Identifier: Apache-2.0
// Mistakes on the command line that no option's parser sees: unknown subcommands and flags, missing values.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "impl/types/status.h"

namespace tutti::program {

/// invalid_argument that names the word and the nearest right one.
[[nodiscard]] Status usage_error(const CLI::App& program, const CLI::ParseError& failure, int argc, char** argv);

/// For a command line that asks for help: its first word may be none. Errors: as of usage_error.
[[nodiscard]] Status unknown_subcommand(const CLI::App& program, int argc, char** argv);

/// `tutti 0.2.0 (commit), built with GCC 12.2.0 Release; kernels avx2; transports ...`, those of this build
[[nodiscard]] std::string version_text();
/// What all machines of a job must have alike: the version, the commit, the compiler.
[[nodiscard]] std::string build_text();

}  // namespace tutti::program

// SPDX-License-Identifier: Apache-2.0
// StartCommand: how another program, such as an MPI's mpirun, starts the ranks of a job. The backend that
// needs the command names it (start_command of harness/backends/backend.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

struct StartCommand {
  std::vector<std::string> words;        ///< the program first; a path, or a name looked for in PATH
  std::vector<std::string> environment;  ///< "NAME=value", put over this process's own
  std::vector<std::string> leaves = {};  ///< how paths begin of files that killed ranks may leave behind
  std::vector<std::string> across = {};  ///< in place of `words` for ranks on several hosts; empty: it has none there
  std::vector<std::string> pretended = {};  ///< put over `environment` if several hosts are one machine

  bool operator==(const StartCommand&) const = default;
};

/// Reads the JSON object of start_command. Errors: invalid_argument naming what is missing.
[[nodiscard]] Result<StartCommand> parse_start_command(std::string_view json);

/// What stands for {agent} if it has to be a program without arguments.
inline constexpr std::string_view kAgentProgram = "{agent_program}";
/// What stands for {ranks}, {directory}, {crowded}, {hosts}, {agent}, {address} and {subnet} in the strings of a
/// command.
struct StartValues {
  int ranks = 1;
  std::string directory;
  bool is_crowded = false;     ///< ranks outnumber cores
  std::string hosts = {};      ///< "a:2,b:2"; the rest too is for ranks on several hosts
  bool are_pretended = false;  ///< several of the hosts are one machine
  std::string agent = {};
  std::string address = {};  ///< at which other hosts reach this one
  std::string subnet = {};   ///< that it is in
};
[[nodiscard]] StartCommand filled(const StartCommand& command, const StartValues& values);

/// Where a rank that such a command has started finds its number, and how many there are.
inline constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
inline constexpr const char* kRanksVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

}  // namespace tutti::harness::process

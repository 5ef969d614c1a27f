// SPDX-License-Identifier: Apache-2.0
// StartCommand: how a program of somebody else's, such as an MPI's mpirun, starts the ranks of a job. The backend that
// needs the command tells it (start_command of harness/backends/backend.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

struct StartCommand {
  std::vector<std::string> words;        ///< the program first; a path, or a name looked for in PATH
  std::vector<std::string> environment;  ///< "NAME=value", put over this process's own
  std::vector<std::string> leaves = {};  ///< how paths begin of files that killed ranks may leave behind

  bool operator==(const StartCommand&) const = default;
};

/// Reads the JSON object of start_command. Errors: invalid_argument naming what is missing.
[[nodiscard]] Result<StartCommand> parse_start_command(std::string_view json);

/// What stands for {ranks}, {directory} and {crowded} in the strings of a command.
struct StartValues {
  int ranks = 1;
  std::string directory;
  bool is_crowded = false;  ///< ranks outnumber cores
};
[[nodiscard]] StartCommand filled(const StartCommand& command, const StartValues& values);

/// Where a rank that such a command has started finds its number, and how many there are.
inline constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
inline constexpr const char* kRanksVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

}  // namespace tutti::harness::launch

// SPDX-License-Identifier: Apache-2.0
// The references of this machine: which shared objects there are, which of them can run, and who starts their ranks.
// None is ever loaded into this process: a child says what it is (probe.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/start_command.h"
#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::program {

/// Starts the ranks of a job, tutti's with them. References of different starters never share a job: two MPIs do not
/// fit into one process, and one's mpirun starts no other's ranks.
struct Starter {
  std::string name = std::string(harness::kOwnSpawn);  ///< as rows have it: `spawn`, or whose start command it is
  std::optional<harness::StartCommand> command = {};   ///< empty: the own spawn
  std::vector<std::string> references = {};            ///< of the cells that are measured: those whose ranks it starts
  std::vector<std::string> environment = {};           ///< "NAME=value" of ranks that the own spawn starts: settings
  std::vector<std::string> on_gpus = {};               ///< those of them whose buffers lie in the memory of GPUs
};

/// The directories in which backends are looked for: $TUTTI_BACKENDS, then beside the program.
[[nodiscard]] std::vector<std::string> backend_directories();
/// `tutti` and the references found.
[[nodiscard]] std::vector<std::string> known_backends();
/// References that this build has a backend for, or may have in another configuration.
[[nodiscard]] const std::vector<std::string>& all_references();
/// Whether this build has made the backend of that name.
[[nodiscard]] bool is_built_in(std::string_view name);

/// Fills `systems` with tutti and all references that can run here, if none was named. For each that cannot, a line
/// `# without NAME: ...` on stderr says why not, where that is wanted; not of one for a GPU, on a machine without any.
/// Errors: those of path_of_backend, of one named.
[[nodiscard]] Status settle_backends(std::vector<std::string>& systems, bool as_processes, bool says_why = true);
/// The shared object of a reference that was found and can run here. With ranks as processes it is tried whether ranks
/// of it can be started (probe.h); with others it is skipped, and not tried, unless it needs a GPU. Errors:
/// unavailable; invalid_argument where no reference has that name.
[[nodiscard]] Result<std::string> path_of_backend(const std::string& name, bool as_processes);
/// Whether ranks of each of these references can be started here, as processes. Those that path_of_backend takes are
/// started, two of each, if they need no GPU. Errors: those of path_of_backend; unavailable.
[[nodiscard]] std::map<std::string, Status> examine_backends(std::span<const std::string> names);
/// Who starts the ranks of a backend with its settings, of tutti the own spawn. Ranks of other settings are other
/// starts, under the name of the backend with its settings. Asks a child the first time. Errors: unavailable;
/// invalid_argument for settings that it has not.
[[nodiscard]] Result<Starter> starter_of(std::string_view system);

/// The names in `text`, the value of --backends. Errors: invalid_argument naming the nearest right one; unavailable
/// where it is a reference that is not found.
[[nodiscard]] Result<std::vector<std::string>> parse_backends(std::string_view text,
                                                              const std::vector<std::string>& known);
/// unavailable: what is missing of the reference `name`, and where it was looked for.
[[nodiscard]] Status missing_backend(std::string_view name);

/// For which PyTorch the process group was built, or why for none.
[[nodiscard]] std::string torch_text();

}  // namespace tutti::program

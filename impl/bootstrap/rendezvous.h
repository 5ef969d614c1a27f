// SPDX-License-Identifier: Apache-2.0
// Which processes belong together, as their starter says in their environment (`env://`). torchrun and scripts say it
// by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. mpirun does by OMPI_COMM_WORLD_*, PMIX_* or PMI_*, and
// srun by SLURM_*. This is the only place in impl that reads the environment; where they then meet is in meeting.h.
//
// Processes may be on several hosts, each with ranks that follow each other: TUTTI_INIT then says where hosts meet
// (init.h).
//
// What several of them say must agree; only srun is not asked where another one speaks, since it may have started that
// one. What is said in part, or contradicts itself, is an error that names the variables: guessing here is how three
// ranks become three jobs of one rank.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "impl/types/status.h"

namespace tutti {

struct World {
  int process = 0;
  int processes = 1;
  int local_process = 0;    ///< among those of this host
  int local_processes = 1;  ///< of this host; those of `process - local_process` and after
  /// Abstract socket at which the processes meet: the user id and, as far as they are set, TUTTI_LAUNCH,
  /// PMIX_NAMESPACE, SLURM_JOB_ID and SLURM_STEP_ID, MASTER_ADDR and MASTER_PORT, TUTTI_INIT. Empty for a world of one.
  std::string meeting = {};
  std::string started_by = {};  ///< "mpirun (OMPI_COMM_WORLD_RANK)"; empty: nobody, a world of one
  /// Of a world of one: what a launcher has set whose jobs tutti does not join, and what to set instead; empty:
  /// nothing.
  std::string unknown_starter = {};
  std::string spread = {};  ///< which variable says that there are several hosts: "LOCAL_WORLD_SIZE is 2"

  [[nodiscard]] bool spans_hosts() const { return !spread.empty(); }
  [[nodiscard]] int first_here() const { return process - local_process; }
};

/// The value of a variable; nothing where it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Whether the processes of several hosts are numbered by hosts, only all of them together can tell: they do where they
/// meet. Errors: invalid_argument (partial, contradictory or senseless variables).
[[nodiscard]] Result<World> world_from(const Environment& environment);
/// Of this process.
[[nodiscard]] Environment environment_here();
/// world_from of this process's environment.
[[nodiscard]] Result<World> world_from_environment();
/// Where a program cannot be on several hosts. Errors: unavailable.
[[nodiscard]] Status check_one_host(const World& world);

/// For what every process of a job finds out by itself and the first tells: the others call this before they fail.
/// mpirun ends all processes as soon as one has failed, and the first may not have spoken by then.
void let_the_first_speak(const World& world);
/// The same in a process that is not the first.
void let_the_first_speak();

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// How the ranks of an MPI are started: the command of its own mpirun, and what each rank tells the library first.
#pragma once

#include <string>

namespace tutti::backend_mpi {

/// The JSON object of start_command (harness/backends/backend.h). `mpirun`: the path that was there when this was
/// compiled. Where it is gone, one of its name is looked for in PATH.
[[nodiscard]] std::string start_command(const std::string& mpirun);

/// Before MPI_Init, on one of several hosts: messages to the others go over the interface that has this address, unless
/// the environment names another. A start command cannot say so, for interfaces have other names on other hosts.
void take_interface_of(const std::string& address);

}  // namespace tutti::backend_mpi

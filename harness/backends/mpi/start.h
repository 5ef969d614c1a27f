// SPDX-License-Identifier: Apache-2.0
// How the ranks of an MPI are started: the command of its own mpirun.
#pragma once

#include <string>

namespace tutti::backend_mpi {

/// The JSON object of start_command (harness/backends/backend.h). `mpirun`: the path that was there when this was
/// compiled. Where it is gone, one of its name is looked for in PATH.
[[nodiscard]] std::string start_command(const std::string& mpirun);

}  // namespace tutti::backend_mpi

// SPDX-License-Identifier: Apache-2.0
// From a call as backend.h has it to one of MPI, or the reason why MPI has no such call.
#pragma once

#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/mpi/calls.h"

namespace tutti::backend_mpi {

/// Fills `prepared`, whose group is set. Returns why MPI cannot do it, or nothing. Does not call MPI but for its
/// version: a call may be asked about before MPI_Init.
[[nodiscard]] std::string translate(const TuttiBackendCall& call, Prepared& prepared);

}  // namespace tutti::backend_mpi

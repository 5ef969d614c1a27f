// SPDX-License-Identifier: Apache-2.0
// The one way from the settings of a command line to the jobs that they ask for.
#pragma once

#include "harness/session/spec.h"
#include "src/jobs.h"
#include "src/options.h"

namespace tutti::program {

/// What all sessions of the command have in common. Its task, ranks, transport and cells are set for each.
[[nodiscard]] harness::SessionSpec session_of(const Settings& settings);
/// The jobs of the command, without their cells and task.
[[nodiscard]] JobsRequest request_of(const Settings& settings);

}  // namespace tutti::program

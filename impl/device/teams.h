// SPDX-License-Identifier: Apache-2.0
// A device where there is no GPU: a team is some threads of this process. It runs the text of the kernels, so that all
// of it but the instructions can be tried anywhere.
#pragma once

#include "impl/device/device.h"

namespace tutti {

/// Most threads of all teams together: beyond it a wait takes so many turns of the scheduler that nothing ends.
inline constexpr int kMostTeamThreads = 1024;

/// Threads are made when a launch needs them, and sleep between launches. Destroyed once its launches are complete.
[[nodiscard]] std::unique_ptr<Device> make_host_teams();

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// A device where there is no GPU: a team is some threads of this process. It runs the text of the kernels, so that all
// of it but the instructions can be tried anywhere.
#pragma once

#include <functional>
#include <memory>

#include "impl/device/device.h"
#include "impl/execute/target.h"

namespace tutti {

/// Most threads of all teams together: beyond it a wait takes so many turns of the scheduler that nothing ends.
inline constexpr int kMostTeamThreads = 1024;

struct TeamsOfThreads {
  int teams = 1;
  int threads = 1;  ///< of a team
};

/// Runs functions of the host as well, where a GPU runs other kernels than those that walk plans.
class HostTeams : public Device {
 public:
  /// What each thread calls, with the number of its team.
  using Function = std::function<void(HostTarget& target, int team)>;
  /// As launch.
  [[nodiscard]] virtual Result<Ticket> run(const TeamsOfThreads& shape, Function function) = 0;
};

/// Threads are made when a launch needs them, and sleep between launches. Destroyed once its launches are complete.
/// `devices`: so many run together, and share the threads that may be.
[[nodiscard]] std::unique_ptr<HostTeams> make_host_teams(int devices = 1);

}  // namespace tutti

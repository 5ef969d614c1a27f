// SPDX-License-Identifier: Apache-2.0
// TCP connections between hosts of several machines, beside the system under test. Both ends have shown that they know
// the key of the job (impl/tcp/greeting.h).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/secret.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

struct RunnerSocket {
  int runner = 0;  ///< at the other end
  Descriptor socket;
  tcp::Session session;  ///< for what is sealed
};

struct RunnerSockets {
  int runner = 0;                      ///< whose ends are made
  std::vector<int> others;             ///< a connection to each; each of them asks for one to this runner
  std::vector<std::string> addresses;  ///< [runner]: at which it listens
  tcp::Secret key;                     ///< of the job
  int listener = -1;                   ///< of this runner
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  tcp::Role role = tcp::Role::exchange;
  const char* what = "";  ///< they are for
};

/// Errors: timeout naming the runners that are missing, mismatch, io.
[[nodiscard]] Result<std::vector<RunnerSocket>> connect_to_runners(const RunnerSockets& request);

}  // namespace tutti::harness::board

// SPDX-License-Identifier: Apache-2.0
// Where processes of several hosts learn of each other: process 0 listens, the others come, show that they know the
// job's secret and say a line of text. Once all have come, each gets the lines of all.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"

namespace tutti::tcp {

inline constexpr std::size_t kMostLine = 8192;  ///< bytes of a process's text

struct MeetingRequest {
  Secret secret;
  int process = 0;
  int processes = 1;
  std::string text;                                             ///< of this process
  std::string address;                                          ///< of process 0: where it listens
  int listener = -1;                                            ///< process 0: at that address
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< until the last one has come
};

/// The texts of all, by process. Errors: timeout naming the processes that did not come; mismatch (two with one number,
/// or none of this job at the address), io, invalid_argument.
[[nodiscard]] Result<std::vector<std::string>> meet(const MeetingRequest& request);

}  // namespace tutti::tcp

// SPDX-License-Identifier: Apache-2.0
// Where processes of several hosts learn of each other: process 0 listens, the others come, show that they know the key
// and say a line of text. Once all have come, each gets the lines of all. Lines are sealed (sealed_stream.h).
//
// Process 0 turns away a process that has the key and is of another job, or one too many, and stays open for the right
// ones. The one that is turned away learns why.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "impl/tcp/greeting.h"
#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"

namespace tutti::tcp {

inline constexpr std::size_t kMostLine = 8192;  ///< bytes of a process's text

struct MeetingRequest {
  Secret key;
  Role role = Role::meeting_of_hosts;  ///< which of the job's meetings it is
  std::uint64_t job = 0;               ///< see Claim
  int process = 0;
  int processes = 1;
  std::string text;                                             ///< of this process
  std::string address;                                          ///< of process 0: where it listens
  int listener = -1;                                            ///< process 0: at that address
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< until the last one has come
};

/// The texts of all, by process. Errors: timeout naming the processes that did not come, and those that were turned
/// away; unavailable (turned away), mismatch (the program at the address does not know the key), io, invalid_argument.
[[nodiscard]] Result<std::vector<std::string>> meet(const MeetingRequest& request);

}  // namespace tutti::tcp

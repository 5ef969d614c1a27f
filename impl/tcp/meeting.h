// SPDX-License-Identifier: Apache-2.0
// Where processes of several hosts learn of each other: process 0 listens, the others come, show that they know the key
// and say a line of text. Once all have come, each gets the lines of all. Lines are sealed (sealed_stream.h).
//
// Process 0 turns away a process that has the key and is of another job, or one too many, and stays open for the right
// ones. The one that is turned away learns why.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
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
  /// Not process 0: the address may be of a former job, so one that is not let in at the first try gives up.
  bool knocks_once = false;
  /// What a person may want to know at once, while the wait goes on.
  std::function<void(std::string_view)> on_news = {};
};

/// The texts of all, by process. Errors: timeout naming the processes that did not come and those that were turned
/// away, or the address at which nobody was; unavailable where this one is turned away, the address cannot be reached,
/// or the other end has another secret or is a stranger; io, invalid_argument.
[[nodiscard]] Result<std::vector<std::string>> meet(const MeetingRequest& request);

}  // namespace tutti::tcp

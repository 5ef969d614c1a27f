// SPDX-License-Identifier: Apache-2.0
// Where the processes of a job on one host meet when tutti has not started them. Process 0 listens at the abstract
// socket that rendezvous.h names; the others come and introduce themselves. All learn of each other and get the same
// memory. It is a memfd, passed over the socket: nothing has a name in a file system, so nothing can leak. The
// connections stay, so that a process that ends without a word is noticed.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "impl/bootstrap/control.h"
#include "impl/bootstrap/rendezvous.h"
#include "impl/types/descriptor.h"

namespace tutti {

/// One process as it presents itself.
struct Introduction {
  pid_t pid = 0;
  std::string text = {};
};

struct MeetingRequest {
  World world;
  std::string text;                                             ///< of the own introduction
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< until the last one has come
  /// Process 0 asks, once all are there: bytes of the memory. An error refuses them all, in the same words.
  std::function<Result<std::size_t>(std::span<const Introduction>)> memory_bytes;
};

struct Meeting {
  std::vector<Introduction> all;  ///< by process
  Descriptor memory;              ///< zeroed
  /// Process 0: connections to all, by process, the own one closed. The others: one connection, to process 0.
  std::vector<Descriptor> links;
};

/// Not for a world of one. Errors: timeout naming the processes that did not come, mismatch (a process of another job,
/// or two with one rank), unavailable (another user holds the meeting), aborted (process 0 went away), resource, io;
/// those of memory_bytes.
[[nodiscard]] Result<Meeting> meet(const MeetingRequest& request);

/// A Status as the text of a frame `error`, and back.
[[nodiscard]] std::string error_text(const Status& status);
[[nodiscard]] Status error_from(const std::string& text);

}  // namespace tutti

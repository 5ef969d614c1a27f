// SPDX-License-Identifier: Apache-2.0
// A control connection between processes of one host: the launcher and a rank, or the processes of a meeting. It is an
// abstract Unix stream socket: a name without a file, so nothing can be left behind. It carries frames {type, text},
// and descriptors beside them.
//
// Reserved types: `hello` (rank -> launcher: its rank), `welcome` (launcher -> rank, with the descriptors), `bye` (the
// sender has nothing more to say), `error` (it gives up: code and message). All others belong to the users of the link.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti {

inline constexpr std::size_t kMaxTypeBytes = 256;
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

struct Frame {
  std::string type;
  std::string text;
};

/// As it goes over the wire.
[[nodiscard]] std::string encode(const Frame& frame);

/// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next complete frame, or nothing yet. Errors: io, if the bytes are no frame (for ever after).
  [[nodiscard]] Result<std::optional<Frame>> next();
  [[nodiscard]] bool is_empty() const { return start_ == buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

/// Listens at the abstract name `name`, without blocking. Errors: io; unavailable if a process of this user has the
/// name; mismatch if another user has it, with that user's id if it can be found out.
[[nodiscard]] Result<Descriptor> listen_at(std::string_view name, int backlog);
/// Connects to the process of this user that listens at `name`, and waits for room in its queue for `most` at most.
/// Errors: io; unavailable if no process listens there; mismatch if another user has the name; timeout.
[[nodiscard]] Result<Descriptor> connect_to(std::string_view name, std::chrono::nanoseconds most);
/// The process at the other end of a connection to or from such a name. A name has no permissions, so both ends call
/// this before they read or write. Errors: mismatch if it belongs to another user, with that user's id.
[[nodiscard]] Result<pid_t> check_peer(int socket);
/// From now on what reads from the socket fails after `most`, and so does what writes to it. 0: never.
void limit_waits(int socket, std::chrono::nanoseconds most);

/// Sends one frame whole, with copies of `descriptors`. Errors: io (the peer is gone, or does not read on a socket that
/// does not block), invalid_argument (too long).
Status send_frame(int socket, const Frame& frame, std::span<const int> descriptors = {});

/// Waits for one frame and the descriptors sent with it. Errors: io, aborted at the end of the stream, timeout after
/// limit_waits.
[[nodiscard]] Result<Frame> receive_frame(int socket, FrameReader& reader, std::vector<Descriptor>& descriptors);

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// A control connection between processes of one host: the launcher and a rank, or the processes of a meeting. It is an
// abstract Unix stream socket: a name without a file, so nothing can be left behind. It carries frames {type, text},
// and descriptors beside them.
//
// Reserved types: `hello` (rank -> launcher: its rank), `welcome` (launcher -> rank, with the descriptors), `bye` (the
// sender has nothing more to say), `error` (it gives up: code and message). All others belong to the users of the link.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Listens at the abstract name `name`, without blocking. Errors: io, unavailable if
/// somebody does already.
[[nodiscard]] Result<Descriptor> listen_at(std::string_view name, int backlog);
/// Errors: io, unavailable if nobody listens there.
[[nodiscard]] Result<Descriptor> connect_to(std::string_view name);

/// Sends one frame whole, with copies of `descriptors`. Errors: io (the peer is gone, or does not read on a socket that
/// does not block), invalid_argument (too long).
Status send_frame(int socket, const Frame& frame, std::span<const int> descriptors = {});

/// Waits for one frame and the descriptors sent with it. Errors: io, aborted at the end of the stream.
[[nodiscard]] Result<Frame> receive_frame(int socket, FrameReader& reader, std::vector<Descriptor>& descriptors);

}  // namespace tutti

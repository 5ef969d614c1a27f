// SPDX-License-Identifier: Apache-2.0
// FrameStream: frames (impl/bootstrap/control.h) over a TCP connection whose other end is of this job. Each is a sealed
// message (impl/tcp/sealed_stream.h), so nothing is taken apart but what the other end has sent. It never blocks.
#pragma once

#include <optional>

#include "harness/floors.h"
#include "impl/bootstrap/control.h"
#include "impl/tcp/sealed_stream.h"

namespace tutti::harness::hosts {

class FrameStream {
 public:
  FrameStream() = default;
  FrameStream(Descriptor socket, const tcp::Session& session) : stream_(std::move(socket), session) {}

  [[nodiscard]] bool is_open() const { return stream_.is_open(); }
  [[nodiscard]] int descriptor() const { return stream_.descriptor(); }
  /// What to wait for.
  [[nodiscard]] short events() const { return stream_.events(); }
  [[nodiscard]] bool has_sent_all() const { return stream_.has_sent_all(); }

  /// Queues a frame, and sends what the connection takes. Another thread may receive meanwhile.
  void send(const Frame& frame) { stream_.send(encode(frame)); }
  /// Takes what has come. The stream is closed where the other end is gone; what has come is still there.
  void receive() { stream_.receive(); }
  /// Sends and takes what it can.
  void go_on() {
    stream_.flush();
    stream_.receive();
  }
  /// The next frame, or nothing yet. Errors: io, where the other end sends something else, or it is not what the other
  /// end has sent.
  [[nodiscard]] Result<std::optional<Frame>> next();
  void close() { stream_.close(); }

 private:
  tcp::SealedStream stream_;
};

}  // namespace tutti::harness::hosts

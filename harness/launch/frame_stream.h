// SPDX-License-Identifier: Apache-2.0
// FrameStream: frames (impl/bootstrap/control.h) over a TCP connection whose other end is of this job. It never blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "harness/floors.h"
#include "impl/bootstrap/control.h"

namespace tutti::harness::launch {

class FrameStream {
 public:
  FrameStream() = default;
  explicit FrameStream(Descriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// What to wait for.
  [[nodiscard]] short events() const;
  [[nodiscard]] bool has_sent_all() const { return sent_ == out_.size(); }

  /// Queues a frame, and sends what the connection takes.
  void send(const Frame& frame);
  /// Sends and takes what it can. The stream is closed where the other end is gone; what has come is still there.
  void go_on();
  /// Errors: io, where the other end sends something else.
  [[nodiscard]] Result<std::optional<Frame>> next() { return in_.next(); }
  void close() { socket_.close(); }

 private:
  Descriptor socket_;
  FrameReader in_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace tutti::harness::launch

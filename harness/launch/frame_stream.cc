// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/frame_stream.h"

#include <array>
#include <poll.h>

#include "impl/tcp/socket.h"

namespace tutti::harness::launch {

short FrameStream::events() const { return static_cast<short>(POLLIN | (has_sent_all() ? 0 : POLLOUT)); }

void FrameStream::send(const Frame& frame) {
  if (!is_open()) return;
  if (has_sent_all()) {
    out_.clear();
    sent_ = 0;
  }
  out_ += encode(frame);
  go_on();
}

void FrameStream::go_on() {
  while (is_open() && !has_sent_all()) {
    const iovec part{.iov_base = out_.data() + sent_, .iov_len = out_.size() - sent_};
    const tcp::Moved moved = tcp::write_some(descriptor(), {&part, 1});
    if (moved.bytes == 0) break;  // if it has ended, reading finds that too, and what came before
    sent_ += moved.bytes;
  }
  std::array<char, 65536> bytes;
  while (is_open()) {
    const iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    const tcp::Moved moved = tcp::read_some(descriptor(), {&part, 1});
    in_.append(std::string_view(bytes.data(), moved.bytes));
    if (moved.has_ended) return socket_.close();
    if (moved.bytes == 0) return;
  }
}

}  // namespace tutti::harness::launch

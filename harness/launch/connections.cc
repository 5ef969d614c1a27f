// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "impl/bootstrap/meeting.h"
#include "impl/types/names.h"

namespace tutti::harness::launch {

Result<Descriptor> control_listener(int open, const std::string& name, int ranks) {
  constexpr int kStrangers = 16;  // room for strangers, which will be turned away
  if (open < 0) return listen_at(name, ranks + kStrangers);
  Descriptor copy(::fcntl(open, F_DUPFD_CLOEXEC, 0));
  if (copy.is_open()) return copy;
  return error(Code::resource, "cannot copy the control socket: {}", std::strerror(errno));
}

void turn_away_waiting(int listener) {
  for (;;) {
    const Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    if (check_peer(socket.get()).is_ok()) static_cast<void>(send_frame(socket.get(), {kEnd, ""}).is_ok());
  }
}

void Connections::serve(Descriptor listener, Expected expected, Welcome welcome, std::vector<int> descriptors,
                        std::vector<int> for_rank_0) {
  listener_ = std::move(listener);
  first_ = expected.first;
  arguments_ = std::move(expected.arguments);
  is_taken_.assign(static_cast<std::size_t>(expected.ranks), false);
  welcome_ = std::move(welcome);
  descriptors_ = std::move(descriptors);
  for_rank_0_ = std::move(for_rank_0);
}

void Connections::add_to(std::vector<pollfd>& set) const {
  set.push_back({listener_.get(), POLLIN, 0});
  for (const Peer& peer : peers_) set.push_back({peer.socket.get(), POLLIN, 0});
}

void Connections::service(Events& events) {
  accept_all(events);
  for (Peer& peer : peers_) read_all(peer, events);
  std::erase_if(peers_, [](const Peer& peer) { return !peer.socket.is_open(); });
}

void Connections::dismiss(std::string_view text) {
  for (const Peer& peer : peers_) {  // one that is gone hears nothing
    static_cast<void>(send_frame(peer.socket.get(), {kEnd, std::string(text)}).is_ok());
  }
}

void Connections::accept_all(Events& events) {
  constexpr int kMost = 256;  // strangers may come as fast as they are turned away
  for (int i = 0; i < kMost; ++i) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE) {
        events.on_unfit(error(Code::resource, "no open file is left for the connection of rank {} of {}: {}",
                              peers_.size(), is_taken_.size(), std::strerror(errno)));
      }
      return;
    }
    const auto pid = check_peer(socket.get());
    if (!pid.is_ok()) continue;
    Peer peer;
    peer.socket = std::move(socket);
    peer.pid = pid.value();
    peers_.push_back(std::move(peer));
  }
}

void Connections::read_all(Peer& peer, Events& events) {
  std::array<char, 65536> bytes;
  while (peer.socket.is_open()) {
    const ssize_t n = ::read(peer.socket.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      peer.socket.close();
      events.on_closed(peer.rank);
      return;
    }
    peer.reader.append(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
    if (!take_frames(peer, events)) peer.socket.close();
  }
}

bool Connections::take_frames(Peer& peer, Events& events) {
  for (;;) {
    Result<std::optional<Frame>> next = peer.reader.next();
    if (!next.is_ok()) {
      events.on_garbage(peer.rank, peer.pid, next.status().message());
      return false;
    }
    if (!next.value()) return true;
    const Frame& frame = *next.value();
    if (peer.rank >= 0) {
      events.on_frame(peer.rank, frame);
    } else if (const Status greeted = greet(peer, frame, events); !greeted.is_ok()) {
      if (greeted.code() == Code::mismatch) {
        static_cast<void>(send_frame(peer.socket.get(), {kEnd, ""}).is_ok());
        events.on_unfit(greeted);
      } else if (greeted.code() != Code::unavailable) {
        events.on_garbage(-1, peer.pid, greeted.message());
      }
      return false;
    }
  }
}

Status Connections::turn_away(const Peer& peer, int rank) {
  const Status why =
      error(Code::unavailable,
            "rank {} of the job that meets here has come before: it was started twice, or this is another "
            "job and needs another port, by MASTER_PORT, TUTTI_PORT or --init tcp://HOST:PORT",
            rank);
  static_cast<void>(send_frame(peer.socket.get(), {"error", error_text(why)}).is_ok());
  return why;
}

Status Connections::greet(Peer& peer, const Frame& hello, Events& events) {
  int rank = -1;
  // Behind the number one that came by itself says what it was started with.
  const std::size_t line = std::min(hello.text.find('\n'), hello.text.size());
  const char* end = hello.text.data() + line;
  if (hello.type != "hello" || std::from_chars(hello.text.data(), end, rank).ptr != end) {
    return error(Code::io, "the first message is '{}', not a hello", shown(hello.type));
  }
  const int last = first_ + static_cast<int>(is_taken_.size()) - 1;
  if (rank < first_ || rank > last) {
    return error(Code::io, "a hello from rank {}; ranks are {} to {}", rank, first_, last);
  }
  const auto index = static_cast<std::size_t>(rank - first_);
  const bool has_come_by_itself = line < hello.text.size();
  if (is_taken_[index] && has_come_by_itself) return turn_away(peer, rank);
  if (is_taken_[index]) return error(Code::io, "a second hello from rank {}", rank);
  const std::string_view arguments = std::string_view(hello.text).substr(std::min(line + 1, hello.text.size()));
  if (has_come_by_itself && !arguments_.empty() && arguments != arguments_) {
    return error(Code::mismatch, "rank {} (pid {}) was started with '{}', rank 0 with '{}'", rank, peer.pid,
                 shown(arguments), shown(arguments_));
  }
  is_taken_[index] = true;
  peer.rank = rank;
  events.on_hello(rank, peer.pid);
  std::vector<int> given = descriptors_;
  if (rank == 0) given.insert(given.end(), for_rank_0_.begin(), for_rank_0_.end());
  // If the rank is gone already, the end of its stream says so.
  [[maybe_unused]] const Status sent = send_frame(peer.socket.get(), welcome_(rank), given);
  return Status();
}

}  // namespace tutti::harness::launch

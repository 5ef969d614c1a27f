// SPDX-License-Identifier: Apache-2.0
// After the greeting a process says its line; process 0 answers with those of all. A line is its length, 4 bytes, and
// its text.
#include "impl/tcp/meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <poll.h>
#include <thread>

#include <fmt/ranges.h>

#include "impl/tcp/greeting.h"

namespace tutti::tcp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatienceWithGuests = 2s;
constexpr auto kBetweenTries = 20ms;

std::string line_of(const std::string& text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  std::string line(sizeof bytes, '\0');
  std::memcpy(line.data(), &bytes, sizeof bytes);
  return line + text;
}

/// The lines at the beginning of `bytes` that are whole, at most `most`. Errors: io.
Result<std::vector<std::string>> lines_in(const std::string& bytes, std::size_t most) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; lines.size() < most;) {
    std::uint32_t length = 0;
    if (bytes.size() - at < sizeof length) break;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (length > kMostLine) return error(Code::io, "a line of {} bytes at the meeting; at most {}", length, kMostLine);
    if (bytes.size() - at - sizeof length < length) break;
    lines.push_back(bytes.substr(at + sizeof length, length));
    at += sizeof length + length;
  }
  return lines;
}

/// A socket whose other end is of this job, and what is to be said and heard over it.
struct Talk {
  Descriptor socket;
  std::string to_say;
  std::size_t said = 0;
  std::string heard;

  /// False where the other end is gone.
  bool go_on() {
    while (said < to_say.size()) {
      const iovec part{.iov_base = to_say.data() + said, .iov_len = to_say.size() - said};
      const Moved moved = write_some(socket.get(), {&part, 1});
      if (moved.has_ended) return false;
      if (moved.bytes == 0) break;
      said += moved.bytes;
    }
    std::array<char, 4096> bytes;
    for (;;) {
      const iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
      const Moved moved = read_some(socket.get(), {&part, 1});
      heard.append(bytes.data(), moved.bytes);
      if (moved.has_ended) return false;
      if (moved.bytes == 0) return true;
    }
  }
  [[nodiscard]] short events() const { return static_cast<short>(POLLIN | (said < to_say.size() ? POLLOUT : 0)); }
};

void wait_for(std::vector<pollfd>& sockets, Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  constexpr std::chrono::milliseconds kLongest(100);
  ::poll(sockets.data(), sockets.size(), static_cast<int>(std::clamp(left, 0ms, kLongest).count()));
}

class Hosting {
 public:
  explicit Hosting(const MeetingRequest& request)
      : request_(request),
        end_(Clock::now() + request.timeout),
        talks_(static_cast<std::size_t>(request.processes)),
        texts_(static_cast<std::size_t>(request.processes)),
        has_come_(static_cast<std::size_t>(request.processes)) {
    texts_[0] = request.text;
    has_come_[0] = true;
  }

  Result<std::vector<std::string>> run() {
    while (std::ranges::find(has_come_, false) != has_come_.end()) {
      TUTTI_RETURN_IF_ERROR(look());
      if (Clock::now() > end_) return late();
    }
    std::string all;
    for (const std::string& text : texts_) all += line_of(text);
    for (Talk& talk : talks_) talk.to_say = all;
    for (;;) {
      std::vector<pollfd> sockets;
      for (Talk& talk : talks_) {
        if (!talk.socket.is_open()) continue;
        if (!talk.go_on() || talk.said == talk.to_say.size()) {
          talk.socket.close();  // it has all, or is gone, which its links will find
          continue;
        }
        sockets.push_back({.fd = talk.socket.get(), .events = talk.events(), .revents = 0});
      }
      if (sockets.empty()) return texts_;
      if (Clock::now() > end_) return error(Code::timeout, "the meeting's processes do not take what all have said");
      wait_for(sockets, end_);
    }
  }

 private:
  struct Guest {
    Descriptor socket;
    Greeting greeting;
    Clock::time_point since;
  };

  Status look() {
    std::vector<pollfd> sockets{{.fd = request_.listener, .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_) {
      const auto events = static_cast<short>(POLLIN | (guest.greeting.wants_to_write() ? POLLOUT : 0));
      sockets.push_back({.fd = guest.socket.get(), .events = events, .revents = 0});
    }
    for (std::size_t i = 0; i < talks_.size(); ++i) {
      if (!has_come_[i] && talks_[i].socket.is_open())
        sockets.push_back({.fd = talks_[i].socket.get(), .events = POLLIN, .revents = 0});
    }
    wait_for(sockets, end_);
    TUTTI_RETURN_IF_ERROR(let_in());
    TUTTI_RETURN_IF_ERROR(greet());
    return listen_to_all();
  }
  Status let_in() {
    while (make_room(guests_)) {
      Descriptor socket = accept_from(request_.listener);
      if (!socket.is_open()) return {};
      TUTTI_ASSIGN_OR_RETURN(const Nonce nonce, draw_nonce());
      guests_.push_back({.socket = std::move(socket),
                         .greeting = Greeting::of_server(request_.secret, nonce),
                         .since = Clock::now()});
    }
    return {};
  }
  Status greet() {
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      if (guest->greeting.step(guest->socket.get()) == Greeting::State::claimed) {
        guest->greeting.answer(Verdict::welcome);
        guest->greeting.step(guest->socket.get());
      }
      const bool is_stranger =
          guest->greeting.state() == Greeting::State::failed || Clock::now() - guest->since > kPatienceWithGuests;
      if (guest->greeting.state() == Greeting::State::done) {
        const Claim& claim = guest->greeting.claim();
        if (claim.role != Role::meeting || claim.from == 0 || claim.from >= talks_.size()) {
          return error(Code::mismatch, "process {} is at the meeting of {} processes", claim.from, talks_.size());
        }
        Talk& talk = talks_[claim.from];
        if (talk.socket.is_open())
          return error(Code::mismatch, "two processes say that they are process {}", claim.from);
        talk.socket = std::move(guest->socket);
        guest = guests_.erase(guest);
      } else if (is_stranger) {
        guest = guests_.erase(guest);
      } else {
        ++guest;
      }
    }
    return {};
  }
  Status listen_to_all() {
    for (std::size_t i = 0; i < talks_.size(); ++i) {
      if (has_come_[i] || !talks_[i].socket.is_open()) continue;
      const bool is_there = talks_[i].go_on();
      TUTTI_ASSIGN_OR_RETURN(auto lines, lines_in(talks_[i].heard, 1));
      if (!lines.empty()) {
        texts_[i] = std::move(lines.front());
        has_come_[i] = true;
      } else if (!is_there) {
        return error(Code::aborted, "process {} left the meeting", i);
      }
    }
    return {};
  }
  [[nodiscard]] Status late() const {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < has_come_.size(); ++i) {
      if (!has_come_[i]) missing.push_back(i);
    }
    return error(Code::timeout, "{} of {} processes did not come to {} within {:.1f} s: {}", missing.size(),
                 has_come_.size(), request_.address, std::chrono::duration<double>(request_.timeout).count(),
                 fmt::join(missing, ", "));
  }

  const MeetingRequest& request_;
  Clock::time_point end_;
  std::list<Guest> guests_;
  std::vector<Talk> talks_;  // [process]
  std::vector<std::string> texts_;
  std::vector<bool> has_come_;
};

/// One try to be let in. Not open: nobody is there yet, or who is there is no process 0 of this job.
Result<Descriptor> knock(const MeetingRequest& request, Clock::time_point end, bool& is_strange) {
  auto socket = connect_to(request.address);
  if (!socket.is_ok())
    return socket.status().code() == Code::io ? Result<Descriptor>(Descriptor()) : Result<Descriptor>(socket.status());
  TUTTI_ASSIGN_OR_RETURN(const Nonce nonce, draw_nonce());
  Greeting greeting = Greeting::of_client(
      request.secret, nonce, {.role = Role::meeting, .from = static_cast<std::uint32_t>(request.process), .to = 0});
  bool is_connected = false;
  while (Clock::now() < end) {
    std::vector<pollfd> sockets{{.fd = socket.value().get(), .events = POLLIN, .revents = 0}};
    if (!is_connected || greeting.wants_to_write()) sockets[0].events |= POLLOUT;
    wait_for(sockets, end);
    if (!is_connected && sockets[0].revents == 0) continue;
    if (!is_connected && error_of(socket.value().get()) != 0) return Descriptor();
    is_connected = true;
    const auto state = greeting.step(socket.value().get());
    if (state == Greeting::State::done) return socket;
    if (state != Greeting::State::failed) continue;
    is_strange = true;
    return Descriptor();
  }
  return Descriptor();
}

Result<std::vector<std::string>> visit(const MeetingRequest& request) {
  const auto end = Clock::now() + request.timeout;
  bool is_strange = false;
  Descriptor socket;
  while (!socket.is_open()) {
    TUTTI_ASSIGN_OR_RETURN(socket, knock(request, end, is_strange));
    if (socket.is_open()) break;
    if (Clock::now() > end) {
      return is_strange
                 ? error(Code::mismatch, "who listens at {} did not show that it is of this job", request.address)
                 : error(Code::timeout, "nobody listens at {}, where process 0 should be", request.address);
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  Talk talk{.socket = std::move(socket), .to_say = line_of(request.text)};
  for (;;) {
    const bool is_there = talk.go_on();
    TUTTI_ASSIGN_OR_RETURN(auto lines, lines_in(talk.heard, static_cast<std::size_t>(request.processes)));
    if (lines.size() == static_cast<std::size_t>(request.processes)) return lines;
    if (!is_there) return error(Code::aborted, "process 0 left the meeting at {}", request.address);
    if (Clock::now() > end) {
      return error(Code::timeout, "the meeting at {} has not begun within {:.1f} s: somebody did not come",
                   request.address, std::chrono::duration<double>(request.timeout).count());
    }
    std::vector<pollfd> sockets{{.fd = talk.socket.get(), .events = talk.events(), .revents = 0}};
    wait_for(sockets, end);
  }
}

}  // namespace

Result<std::vector<std::string>> meet(const MeetingRequest& request) {
  if (request.text.size() > kMostLine) {
    return error(Code::invalid_argument, "a line of {} bytes for the meeting; at most {}", request.text.size(),
                 kMostLine);
  }
  if (request.processes == 1) return std::vector{request.text};
  return request.process == 0 ? Hosting(request).run() : visit(request);
}

}  // namespace tutti::tcp

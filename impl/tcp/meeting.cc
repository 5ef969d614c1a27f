// SPDX-License-Identifier: Apache-2.0
// After the greeting a process says its line; process 0 answers with those of all. Each is a sealed message.
#include "impl/tcp/meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <poll.h>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include "impl/tcp/greeting.h"
#include "impl/tcp/sealed_stream.h"

namespace tutti::tcp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatienceWithGuests = 2s;
constexpr auto kBetweenTries = 20ms;

/// The next line that has come over `stream`, if any. Errors: io.
Result<std::optional<std::string>> next_line(SealedStream& stream) {
  TUTTI_ASSIGN_OR_RETURN(auto line, stream.next());
  if (line && line->size() > kMostLine)
    return error(Code::io, "a line of {} bytes at the meeting; at most {}", line->size(), kMostLine);
  return line;
}

/// Why process 0 does not let this one in; empty: it does.
std::string refusal_of(const Answer& answer, const MeetingRequest& request) {
  switch (answer.verdict) {
    case Verdict::other_number:
      return fmt::format("it is of {} processes, and this is process {} of {}", answer.number, request.process,
                         request.processes);
    case Verdict::other_start:
      return "its starter has given it another id than this process";
    case Verdict::is_here_already:
      return fmt::format("process {} has come already, and this is another one of that number", request.process);
    case Verdict::welcome:
    case Verdict::crossed:
      break;
  }
  return "";
}

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
    for (SealedStream& talk : talks_) {
      for (const std::string& text : texts_) talk.send(text);
    }
    for (;;) {
      std::vector<pollfd> sockets;
      for (SealedStream& talk : talks_) {
        talk.flush();
        talk.receive();
        if (talk.has_sent_all()) talk.close();
        // One that is gone is found by its links.
        if (talk.is_open()) sockets.push_back({.fd = talk.descriptor(), .events = talk.events(), .revents = 0});
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
      if (!has_come_[i] && talks_[i].is_open())
        sockets.push_back({.fd = talks_[i].descriptor(), .events = POLLIN, .revents = 0});
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
                         .greeting = Greeting::of_server(request_.key, nonce, request_.role),
                         .since = Clock::now()});
    }
    return {};
  }
  Status greet() {
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      if (guest->greeting.step(guest->socket.get()) == Greeting::State::claimed) {
        const Claim& claim = guest->greeting.claim();
        const Verdict verdict = judge(claim);
        if (verdict != Verdict::welcome) turned_away_.insert(fmt::format("process {} of {}", claim.from, claim.of));
        guest->greeting.answer(verdict, static_cast<std::uint32_t>(talks_.size()));
        guest->greeting.step(guest->socket.get());
      }
      const bool is_stranger =
          guest->greeting.state() == Greeting::State::failed || Clock::now() - guest->since > kPatienceWithGuests;
      if (guest->greeting.state() == Greeting::State::done) {
        const std::uint32_t process = guest->greeting.claim().from;
        // A second one may have been welcome when it asked.
        if (guest->greeting.verdict() == Verdict::welcome && !talks_[process].is_open())
          talks_[process] = SealedStream(std::move(guest->socket), guest->greeting.session());
        guest = guests_.erase(guest);
      } else if (is_stranger) {
        guest = guests_.erase(guest);
      } else {
        ++guest;
      }
    }
    return {};
  }
  /// Whether the process that claims this is one of those that are awaited.
  [[nodiscard]] Verdict judge(const Claim& claim) const {
    const bool is_number = claim.of == talks_.size() && claim.from > 0 && claim.from < talks_.size();
    if (!is_number) return Verdict::other_number;
    if (claim.job != request_.job) return Verdict::other_start;
    return talks_[claim.from].is_open() || has_come_[claim.from] ? Verdict::is_here_already : Verdict::welcome;
  }
  Status listen_to_all() {
    for (std::size_t i = 0; i < talks_.size(); ++i) {
      if (has_come_[i] || !talks_[i].is_open()) continue;
      talks_[i].receive();
      auto line = next_line(talks_[i]);
      if (!line.is_ok()) return error(line.status().code(), "process {}: {}", i, line.status().message());
      if (line.value()) {
        texts_[i] = std::move(*line.value());
        has_come_[i] = true;
      } else if (!talks_[i].is_open()) {
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
    std::string others;
    if (!turned_away_.empty())
      others = fmt::format("; of another job, or one too many, were {}", fmt::join(turned_away_, ", "));
    return error(Code::timeout, "{} of {} processes did not come to {} within {:.1f} s: {}{}", missing.size(),
                 has_come_.size(), request_.address, std::chrono::duration<double>(request_.timeout).count(),
                 fmt::join(missing, ", "), others);
  }

  const MeetingRequest& request_;
  Clock::time_point end_;
  std::list<Guest> guests_;
  std::vector<SealedStream> talks_;  // [process]
  std::vector<std::string> texts_;
  std::vector<bool> has_come_;
  std::set<std::string> turned_away_;
};

/// One try to be let in. Not open: nobody is there yet, or who is there is no process 0 of this job.
Result<SealedStream> knock(const MeetingRequest& request, Clock::time_point end, bool& is_strange) {
  auto socket = connect_to(request.address);
  if (!socket.is_ok()) {
    if (socket.status().code() == Code::io) return SealedStream();
    return socket.status();
  }
  TUTTI_ASSIGN_OR_RETURN(const Nonce nonce, draw_nonce());
  Greeting greeting = Greeting::of_client(request.key, nonce,
                                          {.role = request.role,
                                           .from = static_cast<std::uint32_t>(request.process),
                                           .of = static_cast<std::uint32_t>(request.processes),
                                           .job = request.job});
  bool is_connected = false;
  while (Clock::now() < end) {
    std::vector<pollfd> sockets{{.fd = socket.value().get(), .events = POLLIN, .revents = 0}};
    if (!is_connected || greeting.wants_to_write()) sockets[0].events |= POLLOUT;
    wait_for(sockets, end);
    if (!is_connected && sockets[0].revents == 0) continue;
    if (!is_connected && error_of(socket.value().get()) != 0) return SealedStream();
    is_connected = true;
    const auto state = greeting.step(socket.value().get());
    if (state == Greeting::State::done) {
      const std::string refusal = refusal_of(greeting.answer(), request);
      if (refusal.empty()) return SealedStream(std::move(socket).value(), greeting.session());
      return error(Code::unavailable, "another job meets at {}: {}", request.address, refusal);
    }
    if (state != Greeting::State::failed) continue;
    is_strange = true;
    return SealedStream();
  }
  return SealedStream();
}

Result<std::vector<std::string>> visit(const MeetingRequest& request) {
  const auto end = Clock::now() + request.timeout;
  bool is_strange = false;
  SealedStream talk;
  while (!talk.is_open()) {
    TUTTI_ASSIGN_OR_RETURN(talk, knock(request, end, is_strange));
    if (talk.is_open()) break;
    if (Clock::now() > end) {
      return is_strange
                 ? error(Code::mismatch, "who listens at {} did not show that it is of this job", request.address)
                 : error(Code::timeout, "nobody listens at {}, where process 0 should be", request.address);
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  talk.send(request.text);
  std::vector<std::string> lines;
  for (;;) {
    talk.flush();
    talk.receive();
    for (;;) {
      TUTTI_ASSIGN_OR_RETURN(auto line, next_line(talk));
      if (!line) break;
      lines.push_back(std::move(*line));
      if (lines.size() == static_cast<std::size_t>(request.processes)) return lines;
    }
    if (!talk.is_open()) return error(Code::aborted, "process 0 left the meeting at {}", request.address);
    if (Clock::now() > end) {
      return error(Code::timeout, "the meeting at {} has not begun within {:.1f} s: somebody did not come",
                   request.address, std::chrono::duration<double>(request.timeout).count());
    }
    std::vector<pollfd> sockets{{.fd = talk.descriptor(), .events = talk.events(), .revents = 0}};
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

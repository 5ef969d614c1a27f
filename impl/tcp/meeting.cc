// SPDX-License-Identifier: Apache-2.0
// After the greeting a process says its line; process 0 answers with those of all. Each is a sealed message.
#include "impl/tcp/meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <poll.h>
#include <set>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include "impl/tcp/greeting.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/sealed_stream.h"
#include "impl/types/counted.h"

namespace tutti::tcp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatienceWithGuests = 2s;
constexpr auto kPatienceWithAddress = 5s;  // then it may be reached by a new try sooner than by the old one
constexpr auto kBetweenTries = 20ms;
constexpr std::size_t kMostNews = 8;
constexpr const char* kHangsUp = "hangs up";

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

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
        if (verdict != Verdict::welcome) note_turned_away(*guest);
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
        if (guest->greeting.has_other_key()) note_other_secret(*guest);
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
  void note_turned_away(const Guest& guest) {
    const std::string who = fmt::format("process {} of {}", guest.greeting.claim().from, guest.greeting.claim().of);
    if (turned_away_.insert(who).second)
      tell(fmt::format("{} at {} is of another job, or one too many", who, host_of(guest)));
  }
  /// By the word of a stranger: nothing follows from it but messages, and the exit code of a meeting that fails.
  void note_other_secret(const Guest& guest) {
    const std::uint32_t process = guest.greeting.claim().from;
    const std::string who = fmt::format("process {} at {}", process, host_of(guest));
    if (others_.size() < kMostNews && others_.emplace(who, process).second)
      tell(fmt::format("{} knows another secret", who));
  }
  void tell(std::string_view what) const {
    if (request_.on_news) request_.on_news(fmt::format("{}, and is not let in; still waiting", what));
  }
  [[nodiscard]] static std::string host_of(const Guest& guest) {
    const std::string peer = peer_of(guest.socket.get());
    return peer.substr(0, peer.rfind(':'));
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
    std::vector<std::size_t> unexplained = missing;
    std::vector<std::string> with_other_secret;
    for (const auto& [who, process] : others_) {
      with_other_secret.push_back(who);
      std::erase(unexplained, process);
    }
    std::string others;
    if (!with_other_secret.empty())
      others = fmt::format("; with another secret came {}", fmt::join(with_other_secret, ", "));
    if (!turned_away_.empty())
      others += fmt::format("; of another job, or one too many, were {}", fmt::join(turned_away_, ", "));
    return error(unexplained.empty() ? Code::unavailable : Code::timeout,
                 "{} of {} did not come to {} within {:.1f} s: {}{}", missing.size(),
                 counted(has_come_.size(), "process", "es"), request_.address, seconds_of(request_.timeout),
                 fmt::join(missing, ", "), others);
  }

  const MeetingRequest& request_;
  Clock::time_point end_;
  std::list<Guest> guests_;
  std::vector<SealedStream> talks_;  // [process]
  std::vector<std::string> texts_;
  std::vector<bool> has_come_;
  std::set<std::string> turned_away_;
  std::map<std::string, std::size_t> others_;  // that know another secret: the process that each claims to be
};

/// "127.0.0.1:4711, an address of this host,"
std::string named(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return address + (address_of_interface(host).is_ok() ? ", an address of this host," : ",");
}
Status nobody(const MeetingRequest& request) {
  return error(Code::timeout, "no process listens at {} where process 0 should be, within {:.1f} s",
               named(request.address), seconds_of(request.timeout));
}
Status unanswered(const MeetingRequest& request) {
  return error(Code::timeout, "{} where process 0 should be, has not answered within {:.1f} s", named(request.address),
               seconds_of(request.timeout));
}
Status stranger(const MeetingRequest& request, std::string_view what) {
  return error(Code::unavailable, "the program at {} did not prove that it is of this job: it {}", request.address,
               what);
}

/// One try to be let in. Not open: `last` says why tries are in vain. Errors: another try is of no use.
Result<SealedStream> knock(const MeetingRequest& request, Clock::time_point end, Status& last) {
  const auto until = [&](Clock::duration patience) { return std::min(end, Clock::now() + patience); };
  auto socket = connect_to(request.address);
  if (!socket.is_ok() && socket.status().code() != Code::io) return socket.status();
  if (!socket.is_ok()) {
    last = nobody(request);
    return SealedStream();
  }
  TUTTI_ASSIGN_OR_RETURN(const Nonce nonce, draw_nonce());
  Greeting greeting = Greeting::of_client(request.key, nonce,
                                          {.role = request.role,
                                           .from = static_cast<std::uint32_t>(request.process),
                                           .of = static_cast<std::uint32_t>(request.processes),
                                           .job = request.job});
  const int number = socket.value().get();
  bool is_connected = false;
  auto most = until(kPatienceWithAddress);
  while (Clock::now() < most) {
    std::vector<pollfd> sockets{{.fd = number, .events = POLLIN, .revents = 0}};
    if (!is_connected || greeting.wants_to_write()) sockets[0].events |= POLLOUT;
    wait_for(sockets, most);
    if (!is_connected) {
      if (sockets[0].revents == 0) continue;
      const int failure = error_of(number);
      if (failure != 0 && !may_pass(failure))
        return error(Code::unavailable, "cannot connect to {}: {}", request.address, std::strerror(failure));
      if (failure != 0) {
        last = nobody(request);
        return SealedStream();
      }
      is_connected = true;
      most = until(kPatienceWithGuests);
    }
    const auto state = greeting.step(number);
    if (state == Greeting::State::done) {
      const std::string refusal = refusal_of(greeting.answer(), request);
      if (refusal.empty()) return SealedStream(std::move(socket).value(), greeting.session());
      return error(Code::unavailable, "another job meets at {}: {}", request.address, refusal);
    }
    if (state != Greeting::State::failed) continue;
    if (greeting.has_other_key()) {
      return error(Code::unavailable,
                   "who listens at {} knows another secret: all processes of a job need the same one, by "
                   "TUTTI_SECRET_FILE or TUTTI_SECRET",
                   request.address);
    }
    last = stranger(request, greeting.has_ended() ? kHangsUp : "is no tutti of this version");
    return SealedStream();
  }
  // At the end a try may be too short to say more than those before.
  if (most < end || last.is_ok()) last = is_connected ? stranger(request, "says nothing") : unanswered(request);
  return SealedStream();
}

/// Knocks until it is let in.
Result<SealedStream> enter(const MeetingRequest& request, Clock::time_point end) {
  std::string told;
  Status last;
  for (;;) {
    TUTTI_ASSIGN_OR_RETURN(SealedStream socket, knock(request, end, last));
    if (socket.is_open()) return socket;
    if (request.knocks_once || Clock::now() > end) return last;
    // One that hangs up may be a crowded process 0, or something that hands connections on to it.
    const bool is_news = last.code() == Code::unavailable && last.message().find(kHangsUp) == std::string::npos;
    if (is_news && request.on_news && std::exchange(told, last.message()) != last.message())
      request.on_news(fmt::format("{}; still waiting for process 0", last.message()));
    std::this_thread::sleep_for(kBetweenTries);
  }
}

Result<std::vector<std::string>> visit(const MeetingRequest& request) {
  const auto end = Clock::now() + request.timeout;
  TUTTI_ASSIGN_OR_RETURN(SealedStream talk, enter(request, end));
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
      return error(Code::timeout, "process 0 at {} has not said within {:.1f} s who takes part: it waits for others",
                   request.address, seconds_of(request.timeout));
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

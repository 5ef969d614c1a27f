// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host_visits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/doctor/host_answers.h"
#include "harness/machine/clock.h"
#include "harness/process/agent.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"
#include "impl/tcp/interface.h"
#include "impl/types/descriptor.h"
#include "impl/types/names.h"

namespace tutti::harness::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLookPatience = 90s;  // references are tried, which may take a while; and the agent has to get there
constexpr auto kReachPatience = 5s;  // and a moment for each host
constexpr auto kClockPatience = 2s;
constexpr auto kEndPatience = 1s;
constexpr int kClockTrials = 20;
constexpr std::size_t kMostComplaints = 1 << 16;  // of the agent's stderr the last ones are kept
constexpr std::size_t kMostAtOnce = 1 << 20;      // read of one host before the next one has its turn

/// The process on one host, through its agent.
class Visitor {
 public:
  Visitor() = default;
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  ~Visitor() { end(); }

  Status start(const std::string& host, const VisitRequest& request, bool is_here) {
    SpawnRequest spawned;
    std::vector<std::string> program = request.program;
    if (!is_here) {
      TUTTI_ASSIGN_OR_RETURN(program.front(), word_for_agent(request.agent, program.front()));
      TUTTI_ASSIGN_OR_RETURN(spawned.command, agent_words(request.agent, host));
      agent_ = agent_text(request.agent, host);
    }
    spawned.command.insert(spawned.command.end(), program.begin(), program.end());
    int talk[2], errors[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) != 0 || ::pipe2(errors, O_CLOEXEC) != 0) {
      return error(Code::resource, "cannot make a pair of sockets: {}", std::strerror(errno));
    }
    talk_ = Descriptor(talk[0]);
    errors_ = Descriptor(errors[0]);
    const Descriptor its_talk(talk[1]), its_errors(errors[1]);
    spawned.input = spawned.output = its_talk.get();
    spawned.errors = its_errors.get();
    spawned.death_signal = SIGTERM;
    TUTTI_ASSIGN_OR_RETURN(pid_, spawn(spawned));
    return {};
  }

  void ask(const std::string& line) {
    // If it is gone already, its end says so.
    (void)::send(talk_.get(), (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL);
  }

  [[nodiscard]] bool is_open() const { return talk_.is_open(); }
  void add_to(std::vector<pollfd>& set) const {
    for (const Descriptor* one : {&talk_, &errors_}) {
      if (one->is_open()) set.push_back({one->get(), POLLIN, 0});
    }
  }

  /// Reads what has come, without waiting.
  void go_on() {
    read(talk_, [&](std::string_view bytes) { answers_.take(bytes); });
    read(errors_, [&](std::string_view bytes) {
      complaints_.append(bytes);
      if (complaints_.size() > kMostComplaints) complaints_.erase(0, complaints_.size() - kMostComplaints);
    });
  }

  std::optional<std::string> next() { return answers_.next(); }

  /// Whether its agent prints without end.
  [[nodiscard]] bool is_flooded() const { return answers_.is_flooded(); }

  /// Why it has ended, in its agent's words; waits a moment for these.
  Status why_ended() {
    int status = 0;
    const bool has_ended = nap_until(kEndPatience, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    go_on();
    if (has_ended) pid_ = 0;
    std::string words = complaints_.substr(0, complaints_.find_last_not_of(" \n") + 1);
    if (words.size() > kMostShown) words = "..." + words.substr(words.size() - kMostShown + 3);
    return error(Code::unavailable, "{} {}{}{}", agent_.empty() ? "its process" : agent_,
                 has_ended ? end_of(status) : "has closed its stdout", words.empty() ? "" : ": ", shown(words));
  }

  void end() {
    talk_.close();
    if (pid_ <= 0) return;
    if (!nap_until(kEndPatience, [&] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; })) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

 private:
  template <class Take>
  static void read(Descriptor& from, Take take) {
    std::array<char, 65536> bytes;
    for (std::size_t left = kMostAtOnce; left > 0 && from.is_open() && wait_readable(from.get(), 0ms);) {
      const ssize_t n = ::read(from.get(), bytes.data(), std::min(left, bytes.size()));
      if (n <= 0) return from.close();
      take(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
      left -= static_cast<std::size_t>(n);
    }
  }

  pid_t pid_ = 0;
  std::string agent_;
  Descriptor talk_, errors_;
  AnswerReader answers_;
  std::string complaints_;
};

class Visits {
 public:
  explicit Visits(const VisitRequest& request) : request_(request) {
    for (const std::string& host : request.hosts) {
      visits_.push_back({.host = host, .failure = {}, .look = {}, .reached = {}, .clock = {}, .login_seconds = 0});
      visitors_.emplace_back();
    }
  }

  Status start() {
    started_ = Clock::now();
    std::vector<bool> are_here;
    std::vector<std::string> others;
    for (const std::string& host : request_.hosts) {
      are_here.push_back(tcp::is_this_machine(host));
      if (!are_here.back()) others.push_back(host);
    }
    if (others.empty()) others.emplace_back();
    Result<std::string> found = address_for(request_.interface, others.front());  // one with a route is enough
    for (std::size_t i = 1; i < others.size() && !found.is_ok(); ++i)
      found = address_for(request_.interface, others[i]);
    TUTTI_ASSIGN_OR_RETURN(const std::string own, found);
    for_each([&](Visit& visit, Visitor& visitor, std::size_t i) {
      visit.failure = visitor.start(visit.host, request_, are_here[i]);
      if (!visit.failure.is_ok()) return;
      visitor.ask(to_json(LookRequest{
          .interface = are_here[i] ? own : interface_elsewhere(request_.interface), .launcher = own, .reach = {}}));
    });
    return {};
  }

  void look() {
    await(kLookPatience, [this](Visit& visit, const std::string& line) {
      auto look = look_from_json(line);
      visit.failure = look.status();
      if (!look.is_ok()) return;
      visit.look = std::move(look).value();
      visit.login_seconds = std::chrono::duration<double>(Clock::now() - started_).count() - visit.look.seconds;
    });
  }

  void reach() {
    std::vector<std::size_t> known;
    for_each([&](const Visit& visit, const Visitor&, std::size_t i) {
      if (visit.failure.is_ok()) known.push_back(i);
    });
    if (known.size() < 2) return;
    for_each([&](const Visit& visit, Visitor& visitor, std::size_t i) {
      if (!visit.failure.is_ok()) return;
      LookRequest request;
      for (const std::size_t other : known) {
        if (other != i) request.reach.push_back(visits_[other].look.listens);
      }
      visitor.ask(to_json(request));
    });
    await(kReachPatience * static_cast<int>(known.size()), [&](Visit& visit, const std::string& line) {
      const auto reached = reaches_from_json(line);
      visit.failure = reached.status();
      if (!reached.is_ok()) return;
      visit.reached.resize(visits_.size());
      std::size_t next = 0;
      for (const std::size_t other : known) {
        if (&visits_[other] == &visit || next >= reached.value().size()) continue;
        visit.reached[other] = reached.value()[next++];
      }
    });
  }

  /// One after the other, for each is asked and waited for.
  void compare_clocks() {
    std::optional<ClockOffset> first;
    for_each([&](Visit& visit, Visitor& visitor, std::size_t) {
      if (!visit.failure.is_ok()) return;
      std::optional<ClockOffset> best;
      for (int trial = 0; trial < kClockTrials && visitor.is_open(); ++trial) {
        const std::int64_t asked = time_of_day_ns();
        visitor.ask(std::string(kAsksForClock));
        const auto line = line_of(visitor, kClockPatience);
        const std::int64_t heard = time_of_day_ns();
        std::int64_t its = 0;
        if (!line || std::from_chars(line->data(), line->data() + line->size(), its).ec != std::errc()) break;
        const double bound = 0.5 * static_cast<double>(heard - asked);
        if (!best || bound < best->bound_ns) best = {static_cast<double>(its - asked) - bound, bound};
      }
      if (!best) return;
      visit.clock =
          !first ? ClockOffset{} : ClockOffset{best->ahead_ns - first->ahead_ns, best->bound_ns + first->bound_ns};
      if (!first) first = best;
    });
  }

  std::vector<Visit> take() {
    for (Visitor& visitor : visitors_) visitor.end();
    return std::move(visits_);
  }

 private:
  template <class Do>
  void for_each(Do what) {
    std::size_t i = 0;
    for (Visitor& visitor : visitors_) {
      what(visits_[i], visitor, i);
      ++i;
    }
  }

  /// A line of each that has not failed.
  template <class Take>
  void await(std::chrono::seconds most, Take take) {
    const auto end = Clock::now() + most;
    std::vector<bool> have_said(visits_.size(), false);
    for (bool is_over = false; !is_over;) {
      std::vector<pollfd> set;
      is_over = true;
      for_each([&](Visit& visit, Visitor& visitor, std::size_t i) {
        if (have_said[i] || !visit.failure.is_ok()) return;
        visitor.go_on();
        if (const auto line = visitor.next()) {
          have_said[i] = true;
          return take(visit, *line);
        }
        if (visitor.is_flooded()) {
          visit.failure = error(Code::io, "its agent or login shell has printed {} MiB, and no answer among them",
                                AnswerReader::kMostBytes >> 20);
          visitor.end();
        } else if (!visitor.is_open()) {
          visit.failure = visitor.why_ended();
        } else if (Clock::now() > end) {
          visit.failure = error(Code::timeout, "it has not answered within {} s", most.count());
        } else {
          is_over = false;
          visitor.add_to(set);
        }
      });
      if (!is_over) ::poll(set.data(), set.size(), 100);
    }
  }

  static std::optional<std::string> line_of(Visitor& visitor, std::chrono::seconds most) {
    for (const auto end = Clock::now() + most; Clock::now() < end && visitor.is_open();) {
      visitor.go_on();
      if (auto line = visitor.next()) return line;
      std::vector<pollfd> set;
      visitor.add_to(set);
      ::poll(set.data(), set.size(), 100);
    }
    return {};
  }

  const VisitRequest& request_;
  std::vector<Visit> visits_;
  std::list<Visitor> visitors_;
  Clock::time_point started_;
};

}  // namespace

Result<std::vector<Visit>> visit_hosts(const VisitRequest& request) {
  Visits visits(request);
  TUTTI_RETURN_IF_ERROR(visits.start());
  visits.look();
  visits.reach();
  visits.compare_clocks();
  return visits.take();
}

}  // namespace tutti::harness::doctor

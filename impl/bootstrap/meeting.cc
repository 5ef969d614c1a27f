// SPDX-License-Identifier: Apache-2.0
// Frames: `hello` "<process> <processes> <pid> <text>", answered once all have come by `welcome` with the memory and
// "<pid> <bytes> <text>" of every process, or by `error`.
#include "impl/bootstrap/meeting.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <fmt/ranges.h>

#include "impl/transports/shared_memory.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

int milliseconds_until(Clock::time_point when) {
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<Milliseconds>(when - Clock::now()).count()));
}

/// What a user can do about another user's process, whose id `why` has.
Status in_the_way(const World& world, const Status& why) {
  return error(Code::unavailable, "{}: it holds the meeting '{}'; name another one by MASTER_PORT or TUTTI_INIT",
               why.message(), world.meeting);
}

std::string encode(std::span<const Introduction> all) {
  std::string text;
  for (const Introduction& one : all) text += fmt::format("{} {} {}", one.pid, one.text.size(), one.text);
  return text;
}

Result<std::vector<Introduction>> decode(std::string_view text, int processes) {
  std::vector<Introduction> all;
  while (!text.empty()) {
    int pid = 0, start = 0;
    std::size_t bytes = 0;
    const std::string head(text.substr(0, 40));
    if (std::sscanf(head.c_str(), "%d %zu%n", &pid, &bytes, &start) != 2 ||
        text.size() < static_cast<std::size_t>(start) + 1 + bytes) {
      return error(Code::io, "process 0 says something that is no list of processes");
    }
    all.push_back({.pid = pid, .text = std::string(text.substr(static_cast<std::size_t>(start) + 1, bytes))});
    text.remove_prefix(static_cast<std::size_t>(start) + 1 + bytes);
  }
  if (all.size() == static_cast<std::size_t>(processes)) return all;
  return error(Code::io, "process 0 lists {} processes of {}", all.size(), processes);
}

/// Process 0's side.
class Host {
 public:
  explicit Host(const MeetingRequest& request)
      : request_(request), end_(Clock::now() + request.timeout), is_here_(processes(), false) {
    meeting_.all.resize(processes());
    meeting_.links.resize(processes());
    meeting_.all[0] = {.pid = ::getpid(), .text = request.text};
    is_here_[0] = true;
  }

  Result<Meeting> run() {
    TUTTI_ASSIGN_OR_RETURN(listener_, listen());
    Status status = gather();
    if (status.is_ok()) status = welcome();
    if (status.is_ok()) return std::move(meeting_);
    // The processes that have come learn the same; those that have gone meanwhile need not.
    for (const Descriptor& link : meeting_.links) {
      if (link.is_open()) static_cast<void>(send_frame(link.get(), {"error", error_text(status)}).is_ok());
    }
    return status;
  }

 private:
  [[nodiscard]] std::size_t processes() const { return static_cast<std::size_t>(request_.world.processes); }

  Result<Descriptor> listen() const {
    auto listener = listen_at(request_.world.meeting, request_.world.processes + 16);
    if (listener.status().code() == Code::mismatch) return in_the_way(request_.world, listener.status());
    if (listener.is_ok() || listener.status().code() != Code::unavailable) return listener;
    return error(Code::mismatch,
                 "another rank 0 waits at the meeting '{}': two jobs at once need different MASTER_PORTs, or this rank "
                 "0 was started twice",
                 request_.world.meeting);
  }

  Status gather() {
    while (std::count(is_here_.begin(), is_here_.end(), false) > 0) {
      pollfd readable = {listener_.get(), POLLIN, 0};
      if (::poll(&readable, 1, milliseconds_until(end_)) == 0 || Clock::now() >= end_) return missing();
      Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.is_open() && (errno == EMFILE || errno == ENFILE)) {
        return error(Code::resource, "no open file is left for the connections of {} ranks: {}",
                     request_.world.processes, std::strerror(errno));
      }
      if (!socket.is_open() || !check_peer(socket.get()).is_ok()) continue;  // a stranger
      TUTTI_RETURN_IF_ERROR(greet(std::move(socket)));
      TUTTI_RETURN_IF_ERROR(still_here());
    }
    return {};
  }

  /// One that says nothing, or goes again, is not of this job; one that says something wrong is.
  Status greet(Descriptor socket) {
    limit_waits(socket.get(), std::chrono::seconds(2));
    FrameReader reader;
    std::vector<Descriptor> none;
    const auto hello = receive_frame(socket.get(), reader, none);
    int process = -1, its_processes = -1, pid = 0, start = 0;
    if (!hello.is_ok() || hello.value().type != "hello") return {};
    const std::string& text = hello.value().text;
    if (std::sscanf(text.c_str(), "%d %d %d%n", &process, &its_processes, &pid, &start) != 3) return {};
    Status wrong;
    if (its_processes != request_.world.processes) {
      wrong = error(Code::mismatch, "rank {} (pid {}) says that there are {} ranks, rank 0 that there are {}", process,
                    pid, its_processes, request_.world.processes);
    } else if (process < 1 || process >= its_processes || is_here_[static_cast<std::size_t>(process)]) {
      wrong = error(Code::mismatch, "rank {} was started twice (pid {}), or belongs to another job that meets at '{}'",
                    process, pid, request_.world.meeting);
    }
    if (!wrong.is_ok()) {
      static_cast<void>(send_frame(socket.get(), {"error", error_text(wrong)}).is_ok());
      return wrong;
    }
    limit_waits(socket.get(), request_.timeout);
    const auto index = static_cast<std::size_t>(process);
    is_here_[index] = true;
    meeting_.all[index] = {.pid = pid, .text = text.substr(static_cast<std::size_t>(start) + 1)};
    meeting_.links[index] = std::move(socket);
    return {};
  }

  /// Whether all that have come are still here.
  [[nodiscard]] Status still_here() const {
    for (std::size_t i = 1; i < processes(); ++i) {
      char byte = 0;
      if (!meeting_.links[i].is_open()) continue;
      const ssize_t n = ::recv(meeting_.links[i].get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n == 0) return error(Code::aborted, "rank {} (pid {}) came and ended", i, meeting_.all[i].pid);
    }
    return {};
  }

  [[nodiscard]] Status missing() const {
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < is_here_.size(); ++i) {
      if (!is_here_[i]) ranks.push_back(i);
    }
    return error(Code::timeout, "{} {} of {} did not come within {} s (all must be on this host)",
                 ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), request_.world.processes,
                 seconds(request_.timeout));
  }

  Status welcome() {
    listener_.close();  // the name is free for the next job
    TUTTI_ASSIGN_OR_RETURN(const std::size_t bytes, request_.memory_bytes(meeting_.all));
    TUTTI_ASSIGN_OR_RETURN(const int memory, create_memory("tutti-job", bytes));
    meeting_.memory = Descriptor(memory);
    const Frame frame{"welcome", encode(meeting_.all)};
    for (std::size_t i = 1; i < processes(); ++i) {
      const std::array<int, 1> descriptors{memory};
      const Status sent = send_frame(meeting_.links[i].get(), frame, descriptors);
      if (!sent.is_ok()) return error(Code::aborted, "rank {} (pid {}) came and ended", i, meeting_.all[i].pid);
    }
    return {};
  }

  const MeetingRequest& request_;
  Clock::time_point end_;
  Descriptor listener_;
  Meeting meeting_;
  std::vector<bool> is_here_;
};

/// Comes to process 0, however long that takes to listen.
Result<Descriptor> connect_until(const std::string& name, Clock::time_point end) {
  for (auto pause = Milliseconds(1);; pause = std::min(2 * pause, Milliseconds(50))) {
    auto socket = connect_to(name, end - Clock::now());
    if (socket.is_ok() || socket.status().code() != Code::unavailable) return socket;
    if (Clock::now() + pause >= end) return socket;
    std::this_thread::sleep_for(pause);
  }
}

Result<Meeting> come(const MeetingRequest& request) {
  const World& world = request.world;
  const auto end = Clock::now() + request.timeout;
  auto connected = connect_until(world.meeting, end);
  if (!connected.is_ok()) {
    if (connected.status().code() == Code::mismatch) return in_the_way(world, connected.status());
    if (connected.status().code() != Code::unavailable) return connected.status();
    return error(Code::timeout, "rank 0 of {} did not come within {} s (all must be on this host; meeting '{}')",
                 world.processes, seconds(request.timeout), world.meeting);
  }
  Meeting meeting;
  meeting.links.push_back(std::move(connected).value());
  const int link = meeting.links.front().get();
  const std::string hello = fmt::format("{} {} {} {}", world.process, world.processes, ::getpid(), request.text);
  const Status said = send_frame(link, {"hello", hello});
  // Rank 0 answers when the last one has come or its own time is over, which began before or after ours.
  limit_waits(link, 2 * request.timeout + std::chrono::seconds(1));
  FrameReader reader;
  std::vector<Descriptor> given;
  const auto answer = receive_frame(link, reader, given);
  if (!answer.is_ok()) return error(Code::aborted, "rank 0 ended before all had come: {}", answer.status().message());
  if (answer.value().type == "error") return error_from(answer.value().text);
  TUTTI_RETURN_IF_ERROR(said);
  if (answer.value().type != "welcome" || given.size() != 1) {
    return error(Code::io, "rank 0 answered '{}' with {} descriptors", answer.value().type, given.size());
  }
  TUTTI_ASSIGN_OR_RETURN(meeting.all, decode(answer.value().text, world.processes));
  meeting.memory = std::move(given.front());
  return meeting;
}

}  // namespace

Result<Meeting> meet(const MeetingRequest& request) {
  return request.world.process == 0 ? Host(request).run() : come(request);
}

std::string error_text(const Status& status) {
  return fmt::format("{} {}", static_cast<int>(status.code()), status.message());
}

Status error_from(const std::string& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const int code = std::atoi(text.substr(0, space).c_str());
  const bool is_code = code > 0 && code <= static_cast<int>(Code::refuted);
  if (!is_code) return Status(Code::aborted, text);
  return Status(static_cast<Code>(code), text.substr(std::min(space + 1, text.size())));
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/announcement.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/launch/connections.h"
#include "harness/launch/control_name.h"
#include "harness/process/waits.h"
#include "impl/bootstrap/control.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAnnounced = "control";  // type of the one frame, whose text is the name
constexpr auto kWithoutFiles = 50ms;           // from one try to the next while no file can be opened

}  // namespace

Result<std::unique_ptr<Announcement>> Announcement::make(const std::string& name, int ranks) {
  std::unique_ptr<Announcement> one(new Announcement);
  one->control_ = draw_control_name();
  TUTTI_ASSIGN_OR_RETURN(one->control_socket_, control_listener(-1, one->control_, ranks));
  TUTTI_ASSIGN_OR_RETURN(one->listener_, control_listener(-1, name, ranks));
  one->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!one->stop_.is_open()) return error(Code::resource, "cannot make an eventfd: {}", std::strerror(errno));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for other threads
  Status started;
  try {
    one->thread_ = std::thread(&Announcement::answer_all, one.get());
  } catch (const std::system_error& failure) {
    started = error(Code::resource, "cannot start a thread: {}", failure.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TUTTI_RETURN_IF_ERROR(started);
  return one;
}

Announcement::~Announcement() {
  const std::uint64_t one = 1;
  if (thread_.joinable() && ::write(stop_.get(), &one, sizeof(one)) == sizeof(one)) thread_.join();
  if (control_socket_.is_open()) turn_away_waiting(control_socket_.get());
}

void Announcement::answer_all() {
  for (;;) {
    pollfd set[] = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    ::poll(set, 2, -1);
    if (set[0].revents != 0) return;
    if (set[1].revents != 0 && !answer_one()) std::this_thread::sleep_for(kWithoutFiles);
  }
}

bool Announcement::answer_one() const {
  const Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) return errno != EMFILE && errno != ENFILE;
  // A peer that is gone needs no answer.
  if (check_peer(socket.get()).is_ok()) static_cast<void>(send_frame(socket.get(), {kAnnounced, control_}).is_ok());
  return true;
}

Result<std::string> announced_at(const std::string& name, std::chrono::nanoseconds most) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBetweenTries = 20ms;
  const auto end = Clock::now() + most;
  Result<std::string> control = std::string();
  const auto ask = [&]() -> Result<std::string> {
    TUTTI_ASSIGN_OR_RETURN(const Descriptor socket, connect_to(name, end - Clock::now()));
    limit_waits(socket.get(), std::max<std::chrono::nanoseconds>(end - Clock::now(), 1ms));
    FrameReader reader;
    std::vector<Descriptor> none;
    TUTTI_ASSIGN_OR_RETURN(Frame frame, receive_frame(socket.get(), reader, none));
    if (frame.type == kAnnounced) return std::move(frame.text);
    return error(Code::io, "the first process of this host says '{}', and no name of a socket", frame.type);
  };
  const auto is_over = [&] {
    control = ask();
    // A process that ends just now may be of a former job.
    const Code code = control.status().code();
    return control.is_ok() || (code != Code::unavailable && code != Code::aborted);
  };
  if (nap_until(most, is_over, kBetweenTries)) return control;
  return Status(Code::timeout, control.status().message());
}

}  // namespace tutti::harness::launch

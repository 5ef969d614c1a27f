// SPDX-License-Identifier: Apache-2.0
#include "harness/process/interrupts.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

#include "impl/types/status.h"

namespace tutti::harness::process {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

// A handler has no argument of its own: this is the one place with global state.
std::atomic<int> noted_signal = 0;
std::atomic<int> event = -1;
int users = 0;
std::array<struct sigaction, kSignals.size()> previous = {};

void note(int signal) {
  const int saved = errno;
  int none = 0;
  noted_signal.compare_exchange_strong(none, signal);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.load(), &one, sizeof(one));
  errno = saved;
}

}  // namespace

Interrupts::Interrupts() {
  if (users++ > 0) return;
  noted_signal = 0;
  event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  TUTTI_ASSERT(event >= 0, "eventfd failed with errno {}", errno);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous[i]);
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  if (--users > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  ::close(event.exchange(-1));
}

int Interrupts::signal() const { return noted_signal; }
void Interrupts::forget() {
  noted_signal = 0;
  std::uint64_t events = 0;
  [[maybe_unused]] const ssize_t taken = ::read(event, &events, sizeof(events));
}
int Interrupts::descriptor() const { return event; }

std::string interruption_text(int signal) {
  return fmt::format("interrupted by signal {} ({})", signal, ::strsignal(signal));
}

}  // namespace tutti::harness::process

// SPDX-License-Identifier: Apache-2.0
#include "harness/process/waits.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <thread>

namespace tutti::harness::process {
namespace {

using WaitClock = std::chrono::steady_clock;

}  // namespace

bool nap_until(std::chrono::nanoseconds most, const std::function<bool()>& is_over, std::chrono::nanoseconds nap) {
  const auto end = WaitClock::now() + most;
  for (;;) {
    const bool is_last = WaitClock::now() >= end;
    if (is_over()) return true;
    if (is_last) return false;
    std::this_thread::sleep_for(nap);
  }
}

bool wait_readable(int descriptor, std::chrono::milliseconds most) {
  using std::chrono::milliseconds;
  const auto end = WaitClock::now() + most;
  for (;;) {
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - WaitClock::now()));
    pollfd readable = {descriptor, POLLIN | POLLRDHUP, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>((most == kForever ? kForever : left).count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace tutti::harness::process

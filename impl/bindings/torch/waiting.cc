// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/waiting.h"

#include <algorithm>
#include <thread>
#include <unistd.h>

namespace tutti::bindings {

void check_signals() {
  // Python runs handlers on its main thread alone, so no other one needs to ask for its lock.
  if (::getpid() != ::gettid() || Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

bool poll(std::chrono::nanoseconds timeout, const std::function<bool()>& is_there) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds shortest(50), longest(10000);
  const auto begin = Clock::now();
  auto signals_at = begin + kBetweenSignals;
  auto pause = shortest;
  while (!is_there()) {
    const auto now = Clock::now();
    if (now - begin >= timeout) return false;
    if (now >= signals_at) {
      check_signals();
      signals_at = now + kBetweenSignals;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest);
  }
  return true;
}

}  // namespace tutti::bindings

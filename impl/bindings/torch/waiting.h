// SPDX-License-Identifier: Apache-2.0
// Waits in C++ that Python's Ctrl-C ends.
#pragma once

#include <chrono>
#include <functional>
#include <torch/csrc/utils/pybind.h>

namespace tutti::bindings {

/// How long a wait may last without a look at signals.
inline constexpr std::chrono::milliseconds kBetweenSignals(100);

/// What a handler raised, such as KeyboardInterrupt.
using Interrupted = py::error_already_set;

/// Runs Python's handlers of signals that have come. Throws Interrupted. To be called without a lock that others take
/// who have Python's.
void check_signals();

/// Looks again and again, ever more seldom, until `is_there` says so or the time is over; whether it is there. Throws
/// as check_signals.
bool poll(std::chrono::nanoseconds timeout, const std::function<bool()>& is_there);

}  // namespace tutti::bindings

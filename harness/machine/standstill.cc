// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/standstill.h"

#include <algorithm>

namespace tutti::harness::machine {

std::chrono::nanoseconds Standstill::look(std::int64_t due_ns, std::int64_t now_ns) {
  constexpr std::size_t kMostKept = 64;
  if (now_ns - due_ns < kLeast.count()) return {};
  spans_.push_back({.begin_ns = due_ns, .end_ns = now_ns});
  if (spans_.size() > kMostKept) spans_.pop_front();
  return std::chrono::nanoseconds(now_ns - due_ns);
}

std::chrono::nanoseconds Standstill::after(std::int64_t since_ns) const {
  std::int64_t stood_ns = 0;
  for (const Span& span : spans_)
    stood_ns += std::max<std::int64_t>(0, span.end_ns - std::max(since_ns, span.begin_ns));
  return std::chrono::nanoseconds(stood_ns);
}

}  // namespace tutti::harness::machine

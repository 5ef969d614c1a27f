// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/quotient_races.h"

#include <algorithm>
#include <tuple>

namespace tutti {

bool QuotientRaces::conflict(const Event& a, const Event& b) {
  const bool a_is_own = a.accessor == 0, b_is_own = b.accessor == 0;
  if (a.accessor == b.accessor || !(a.is_write || b.is_write)) return false;
  if (a_is_own) return a.from > b.from && a.from < b.to;
  if (b_is_own) return b.from > a.from && b.from < a.to;
  return a.to > b.from && b.to > a.from;
}

void QuotientRaces::check(Findings& findings) {
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.space, a.unit, b.is_write) < std::tie(b.space, b.unit, a.is_write);  // writes first
  });
  for (std::size_t begin = 0; begin < events_.size();) {
    std::size_t end = begin;
    const auto is_same = [&](const Event& event) {
      return event.space == events_[begin].space && event.unit == events_[begin].unit;
    };
    while (end < events_.size() && is_same(events_[end])) ++end;
    for (std::size_t w = begin; w < end && events_[w].is_write; ++w) {
      for (std::size_t other = begin; other < end; ++other) {
        if (!conflict(events_[w], events_[other])) continue;
        report(events_[w], events_[other], findings);
        other = end;
        w = end;
      }
    }
    begin = end;
  }
}

void QuotientRaces::report(const Event& a, const Event& b, Findings& findings) {
  const Event& remote = a.accessor != 0 ? a : b;
  const Event& other = a.accessor != 0 ? b : a;
  findings.add(other.accessor, other.step,
               "race: {} {} unit {} of rank 0 while rank {} may {} it in its step {} (exposed at rank 0 step {})",
               other.is_write ? "writes" : "reads", steps::name_of(other.space), other.unit, remote.accessor,
               remote.is_write ? "write" : "read", remote.step, remote.from);
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Replaying a trace (harness/record/trace.h): its calls one after the other, as one sample, on one system after the
// other.
//
//   refill all, start together | gap, call, gap, call, ... | verify all
//
// A step takes from when the first rank enters its first call until the last rank has left its last one; so does the
// whole. Gaps between these are in their time. Within a replay the ranks are not brought together: what a rank lost in
// one step it brings into the next.
//
// Buffers. Calls of one step have buffers of their own. Equal calls of different steps share theirs, as a program's
// steps do. So what is verified after a replay is the last step that used them. A first and a last round, which are
// not timed, verify each step before the next one begins. Barriers are run, not judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/measure/runner.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

inline constexpr std::int64_t kMostReplays = 100;  ///< of each system, where their number is not given
inline constexpr std::int64_t kLeastReplays = 5;

/// A call of the trace on one system.
struct ReplayCall {
  std::size_t step = 0;     ///< which of the steps
  std::size_t variant = 0;  ///< which of the system's variants
};

/// A system that has all calls of the trace.
struct ReplaySystem {
  std::vector<Variant> variants = {};
  std::vector<ReplayCall> calls = {};
};

struct ReplayOptions {
  std::size_t steps = 0;
  std::vector<std::int64_t> gaps_ns = {};  ///< before each call; empty: there are none
  std::int64_t iterations = 0;             ///< replays that are timed; 0: kMostReplays, or what there is time for
  std::int64_t end_ns = 0;                 ///< CLOCK_MONOTONIC of runner 0, after which kLeastReplays are enough
};

/// What a system's step, or the whole, came to on all runners.
struct ReplayedPart {
  std::vector<double> times_us = {};  ///< of each replay, in their order
  std::int64_t wrong = 0;
  std::string reason = {};  ///< of the first that was wrong
};

/// The parts of each system: its steps, and then the whole. All runners call it, and have the same result. Errors:
/// those of the variants and of the runner; the job is then over.
[[nodiscard]] Result<std::vector<std::vector<ReplayedPart>>> replay(Runner& runner, std::vector<ReplaySystem>& systems,
                                                                    const ReplayOptions& options);

}  // namespace tutti::harness::measure

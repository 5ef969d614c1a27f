// SPDX-License-Identifier: Apache-2.0
// When to begin and when to stop sampling: WarmUp says when a variant is warm, is_settled when its interval is narrow
// enough.
//
// A rule that looks after every sample and stops at the first narrow interval stops where it is narrow by chance. The
// reported interval then misses the truth too often. So next_look is seldom, each time at twice the samples. There a
// much surer interval must be as narrow, for its confidence, as the reported one: chance does not make it so. README.md
// has the coverage that remains.
//
// Stopping at a width: Chow & Robbins, On the asymptotic theory of fixed-width sequential confidence intervals for the
// mean, 1965. What repeated looks cost: Armitage, McPherson & Rowe, Repeated significance tests on accumulating data,
// 1969.
#pragma once

#include <cstdint>

#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {

inline constexpr std::int64_t kLeastSamples = 30;
inline constexpr std::int64_t kMostSamples = 5000;  ///< after these, what has not settled will not

/// Whether two intervals are narrow enough. That of the median reaches at most 1 % to either side, 2 % below 50 us,
/// where single readings tick. The surer one reaches no farther than that times what it is wider by. Of at least
/// kLeastSamples, in microseconds.
[[nodiscard]] bool is_settled(const OrderedSummary& times_us);

/// The number of samples at which to look for the first time after having looked at `samples` of them (0: not yet).
[[nodiscard]] std::int64_t next_look(std::int64_t samples);

/// add is told how long each batch of calls took. Warm-up is over when batches have stopped improving: three in a row
/// that are not 1 % faster than the fastest before them.
class WarmUp {
 public:
  void add(double batch);
  [[nodiscard]] bool is_over() const;

 private:
  double fastest_ = 0;
  int batches_ = 0;
  int in_vain_ = 0;
};

}  // namespace tutti::harness::measure

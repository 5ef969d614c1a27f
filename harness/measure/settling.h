// SPDX-License-Identifier: Apache-2.0
// When to begin and when to stop sampling.
//
// Whoever looks after every sample and stops at the first narrow interval stops where it is narrow by chance, and the
// interval that is then reported misses the truth too often: of two modes, 52 to 48, in 13 of 100 cells. So one looks
// seldom, each time at twice the samples, and wants a much surer interval to be as narrow, for its confidence, as the
// reported one: chance does not make it so. README.md has the coverage that remains.
#pragma once

#include <cstdint>

#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {

inline constexpr std::int64_t kLeastSamples = 30;
inline constexpr std::int64_t kMostSamples = 5000;  ///< after these, what has not settled will not

/// Whether the interval of the median reaches no farther from it than 1 % to either side, 2 % below 50 us, where single
/// readings tick; and the surer one no farther than that times what it is wider by. Of at least kLeastSamples, in
/// microseconds.
[[nodiscard]] bool is_settled(const OrderedSummary& times_us);

/// The number of samples at which to look for the first time after having looked at `samples` of them (0: not yet).
[[nodiscard]] std::int64_t next_look(std::int64_t samples);

/// Told how long each batch of calls took, warm-up is over when batches have stopped improving: three in a row that are
/// not 1 % faster than the fastest before them.
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

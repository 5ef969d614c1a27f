// SPDX-License-Identifier: Apache-2.0
// LogHistogram: quantiles of positive numbers of any size. It takes no room for each number, and several add up. A bin
// is a 32nd of a doubling wide, so a quantile is within 1.1 % of a number that was added.
#pragma once

#include <cstdint>
#include <map>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::statistics {

class LogHistogram {
 public:
  static constexpr int kPerDoubling = 32;
  /// Bins lie from -kMostBin to kMostBin: doubles have no others.
  static constexpr int kMostBin = kPerDoubling * 1100;

  LogHistogram() = default;
  /// [bin] -> how many numbers. Errors: invalid_argument naming a bin or a count that cannot be.
  [[nodiscard]] static Result<LogHistogram> from_bins(std::map<int, std::int64_t> bins);

  /// A value that is not above 0, or is not finite, does not count.
  void add(double value);
  void add(const LogHistogram& other);
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The least number that `share` of all do not exceed. `share` is from 0 to 1. 0 if there is no number.
  [[nodiscard]] double quantile(double share) const;
  [[nodiscard]] const std::map<int, std::int64_t>& bins() const { return bins_; }

 private:
  std::map<int, std::int64_t> bins_;
  std::int64_t count_ = 0;
};

}  // namespace tutti::harness::statistics

// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/log_histogram.h"

#include <cmath>
#include <utility>

namespace tutti::harness::statistics {

Result<LogHistogram> LogHistogram::from_bins(std::map<int, std::int64_t> bins) {
  constexpr std::int64_t kMostCount = std::int64_t{1} << 53;  // of all bins together
  LogHistogram histogram;
  for (const auto& [bin, count] : bins) {
    if (bin < -kMostBin || bin > kMostBin)
      return error(Code::invalid_argument, "bin {} is not from {} to {}", bin, -kMostBin, kMostBin);
    if (count < 1 || count > kMostCount - histogram.count_)
      return error(Code::invalid_argument, "a count of {} is not from 1 to {}", count, kMostCount - histogram.count_);
    histogram.count_ += count;
  }
  histogram.bins_ = std::move(bins);
  return histogram;
}

void LogHistogram::add(double value) {
  if (!(value > 0) || !std::isfinite(value)) return;
  ++bins_[static_cast<int>(std::floor(kPerDoubling * std::log2(value)))];
  ++count_;
}

void LogHistogram::add(const LogHistogram& other) {
  for (const auto& [bin, count] : other.bins_) bins_[bin] += count;
  count_ += other.count_;
}

double LogHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  std::int64_t below = 0;
  double value = 0;
  for (const auto& [bin, count] : bins_) {
    value = std::exp2((bin + 0.5) / kPerDoubling);
    below += count;
    if (static_cast<double>(below) >= wanted) break;
  }
  return value;
}

}  // namespace tutti::harness::statistics

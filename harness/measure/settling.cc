// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/settling.h"

#include <algorithm>

namespace tutti::harness::measure {
namespace {

constexpr double kShortUs = 50;
constexpr double kNarrow = 0.01;
constexpr double kNarrowWhereShort = 0.02;
constexpr double kImproves = 0.99;
constexpr int kBatchesInVain = 3;

/// How far an interval reaches from the median, to the side where it reaches farther.
double farthest(double median, double low, double high) { return std::max(high - median, median - low); }

}  // namespace

bool is_settled(const OrderedSummary& times_us) {
  if (times_us.samples < kLeastSamples || !times_us.ci_low || !times_us.ci_high) return false;
  const double median = *times_us.median;
  const double most = (median < kShortUs ? kNarrowWhereShort : kNarrow) * median;
  constexpr double kSurer = kSureQuantile / kNormalQuantile95;
  return farthest(median, *times_us.ci_low, *times_us.ci_high) <= most &&
         farthest(median, *times_us.sure_low, *times_us.sure_high) <= kSurer * most;
}

std::int64_t next_look(std::int64_t samples) {
  std::int64_t look = kLeastSamples;
  while (look <= samples) look *= 2;
  return std::min(look, std::max(kMostSamples, samples));
}

void WarmUp::add(double batch) {
  const bool is_faster = batches_ == 0 || batch < kImproves * fastest_;
  in_vain_ = is_faster ? 0 : in_vain_ + 1;
  fastest_ = batches_ == 0 ? batch : std::min(fastest_, batch);
  ++batches_;
}

bool WarmUp::is_over() const { return in_vain_ >= kBatchesInVain; }

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/settling.h"

#include <algorithm>

namespace tutti::harness {
namespace {

constexpr double kShortUs = 50;
constexpr double kNarrow = 0.01;
constexpr double kNarrowWhereShort = 0.02;
constexpr double kImproves = 0.99;
constexpr int kBatchesInVain = 3;

}  // namespace

bool is_settled(const OrderedSummary& times_us) {
  if (times_us.samples < kLeastSamples || !times_us.ci_low || !times_us.ci_high) return false;
  const double narrow = *times_us.median < kShortUs ? kNarrowWhereShort : kNarrow;
  const double most = 2 * narrow * *times_us.median;
  constexpr double kSurer = kSureQuantile / kNormalQuantile95;
  return *times_us.ci_high - *times_us.ci_low <= most && *times_us.sure_high - *times_us.sure_low <= kSurer * most;
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

}  // namespace tutti::harness

// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/budget.h"

#include <algorithm>

namespace tutti::harness::measure {
namespace {

bool is_of_one_kind(const Cell& one, const Cell& other) {
  return one.collective == other.collective && one.dtype == other.dtype && one.op == other.op &&
         one.ranks == other.ranks;
}

}  // namespace

Status Budget::may_begin(const Cell& cell, double bytes, std::int64_t now_ns) const {
  if (end_ns_ == 0) return {};
  const bool is_short = bytes < kShortBytes;
  if (is_short && now_ns < end_ns_ + kLaterNs) return {};
  if (now_ns >= end_ns_) return error(Code::unavailable, "--budget: it was over before this cell could begin");
  if (!last_ || !last_->has_ended || last_->bytes < kShortBytes || !is_of_one_kind(last_->cell, cell)) return {};
  const double least_ns = static_cast<double>(last_->beyond_ns) * bytes / last_->bytes;
  if (least_ns <= static_cast<double>(end_ns_ - now_ns)) return {};
  return error(Code::unavailable, "--budget: less is left of it than this cell takes at the least");
}

void Budget::begin(const Cell& cell, double bytes, std::int64_t share_ns, std::int64_t now_ns) {
  last_ = Begun{.cell = cell, .bytes = bytes, .share_ns = share_ns, .begin_ns = now_ns};
}

void Budget::end(std::int64_t now_ns) {
  if (!last_ || last_->has_ended) return;
  last_->beyond_ns = std::max<std::int64_t>(0, now_ns - last_->begin_ns - last_->share_ns);
  last_->has_ended = true;
}

}  // namespace tutti::harness::measure

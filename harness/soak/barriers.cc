// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/barriers.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tutti::harness::soak {
namespace {

constexpr std::size_t kAtOnce = Runner::kMostBytes / sizeof(BarrierTimes);
/// Of a barrier that nobody was in, or nobody of this runner.
constexpr BarrierTimes kNobody{.first_leave_ns = std::numeric_limits<std::int64_t>::max(), .last_enter_ns = 0};

void merge(BarrierTimes& all, const BarrierTimes& more) {
  all.first_leave_ns = std::min(all.first_leave_ns, more.first_leave_ns);
  all.last_enter_ns = std::max(all.last_enter_ns, more.last_enter_ns);
}

}  // namespace

EpochBarriers::EpochBarriers(const Mix& mix, int epoch) {
  const auto [begin, end] = mix.epoch(epoch);
  for (std::int64_t index = begin; index < end; ++index) {
    if (!mix.is_barrier(index)) continue;
    indices_.push_back(index);
    is_split_.push_back(mix.communicator_at(index) == 1);
  }
  times_.assign(indices_.size() * kColours, kNobody);
}

void EpochBarriers::add(std::int64_t index, int world_rank, const BarrierTimes& times) {
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(indices_, index) - indices_.begin());
  TUTTI_ASSERT(at < indices_.size() && indices_[at] == index, "operation {} is no barrier", index);
  const std::size_t colour = is_split_[at] ? static_cast<std::size_t>(world_rank) % kColours : 0;
  merge(times_[at * kColours + colour], times);
}

Result<EpochBarriers::Verdict> EpochBarriers::judge(Runner& runner) {
  Verdict verdict;
  for (std::size_t first = 0; first < times_.size(); first += kAtOnce) {
    std::array<BarrierTimes, kAtOnce> mine{};
    const std::size_t count = std::min(kAtOnce, times_.size() - first);
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(first), count, mine.begin());
    TUTTI_ASSIGN_OR_RETURN(const auto all, runner.exchange(mine));
    for (std::size_t i = 0; i < count; ++i) {
      BarrierTimes times = kNobody;
      for (const auto& each : all) merge(times, each[i]);
      if (times.last_enter_ns == 0) continue;
      ++verdict.judged;
      const CheckResult check = check_barrier(times);
      if (check.is_ok() || verdict.wrong++ > 0) continue;
      verdict.first_wrong =
          fmt::format("operation {} (barrier): {}", indices_[(first + i) / kColours], check.diagnosis);
    }
  }
  return verdict;
}

}  // namespace tutti::harness::soak

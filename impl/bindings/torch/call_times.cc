// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/call_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/start.h"
#include "impl/bindings/torch/waiting.h"

namespace tutti::bindings {
namespace {

constexpr CallTimes::Time kUnder{.took = std::numeric_limits<float>::quiet_NaN(), .since_last = 0};
constexpr double kApartUs = 20;  // ranks whose arrivals differ by less came together

}  // namespace

std::uint64_t CallTimes::begin() {
  const std::lock_guard lock(mutex_);
  const std::size_t at = begun_ % kKept;
  if (at == times_.size()) {
    times_.push_back({});
    begins_.push_back({});
  }
  times_[at] = kUnder;
  begins_[at] = Clock::now();
  return begun_++;
}

void CallTimes::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (begun_ - number > kKept) return;
  const std::size_t at = number % kKept;
  const auto now = Clock::now();
  const auto us = [&](Clock::time_point from) { return std::chrono::duration<float, std::micro>(now - from).count(); };
  times_[at] = {.took = us(begins_[at]), .since_last = us(last_end_)};
  last_end_ = now;
}

std::vector<CallTimes::Time> CallTimes::kept() const {
  const std::lock_guard lock(mutex_);
  std::vector<Time> times = times_;
  if (begun_ > kKept) std::ranges::rotate(times, times.begin() + static_cast<std::ptrdiff_t>(begun_ % kKept));
  return times;
}

embed::Arrivals arrivals_of(std::span<const CallTimes::Time> times, int ranks) {
  embed::Arrivals arrivals;
  const std::size_t calls = times.size() / static_cast<std::size_t>(ranks);
  for (std::size_t call = 0; call < calls; ++call) {
    std::vector<double> came;
    double since_last = 0;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
      const CallTimes::Time& time = times[rank * calls + call];
      came.push_back(-static_cast<double>(time.took));
      since_last = std::max(since_last, static_cast<double>(time.since_last));
    }
    if (std::ranges::none_of(came, [](double one) { return std::isnan(one); })) {
      arrivals.add(came, since_last, kApartUs);
    }
  }
  return arrivals;
}

std::vector<embed::Straggler> ProcessGroup::stragglers(std::int64_t& calls) {
  const std::vector<CallTimes::Time> mine = times_->kept();
  std::vector<CallTimes::Time> all(mine.size() * static_cast<std::size_t>(size_));
  const WorkPointer work = begin(c10d::OpType::_ALLGATHER_BASE, "stragglers", {});
  // Not one of the calls that are timed.
  start(work, {.timeout = own_timeout(c10d::kUnsetTimeout)}, [&](embed::OperationOptions options) {
    return world_->post(Call{.collective = Collective::all_gather,
                             .dtype = Dtype::f32,
                             .count = static_cast<Count>(mine.size() * CallTimes::kNumbers),
                             .input = mine.data(),
                             .output = all.data()},
                        std::move(options));
  });
  work->wait(kNoTimeout);
  const embed::Arrivals arrivals = arrivals_of(all, size_);
  calls = arrivals.operations;
  return stragglers_of(arrivals);
}

}  // namespace tutti::bindings

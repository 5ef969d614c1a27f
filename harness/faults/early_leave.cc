// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/early_leave.h"

#include <algorithm>
#include <vector>

#include "harness/machine/clock.h"

namespace tutti::harness::faults {
namespace {

/// How long the ranks that have come are looked at, at least once.
constexpr std::int64_t kLookNs = 100'000;

/// One barrier.
class EarlyLeave {
 public:
  EarlyLeave(Runner& runner, Prepared& calls, int absent)
      : runner_(runner), calls_(calls), absent_(absent), has_left_(runner.ranks().size(), false) {}

  Result<bool> run() {
    runner_.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(post(false));
    TUTTI_RETURN_IF_ERROR(runner_.look_for(kLookNs, [this] { return look(false); }));
    const bool is_early = std::ranges::find(has_left_, true) != has_left_.end();
    TUTTI_RETURN_IF_ERROR(runner_.exchange(char{}).status());
    runner_.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(post(true));
    const std::int64_t deadline_ns = monotonic_ns() + runner_.timeout().count();
    const auto wait = [this]() -> Result<Turn> {
      TUTTI_RETURN_IF_ERROR(look(true));
      return std::ranges::find(has_left_, false) == has_left_.end() ? Turn::done : Turn::idle;
    };
    TUTTI_RETURN_IF_ERROR(runner_.poll(wait, [deadline_ns] {
      if (monotonic_ns() < deadline_ns) return Status();
      return error(Code::timeout, "a barrier on trial does not end");
    }));
    TUTTI_RETURN_IF_ERROR(calls_.settle());
    runner_.settle();
    return is_early;
  }

 private:
  Status post(bool is_absent_one) {
    for (std::size_t i = 0; i < has_left_.size(); ++i) {
      if ((runner_.ranks()[i] == absent_) == is_absent_one) TUTTI_RETURN_IF_ERROR(calls_.post(i));
    }
    return {};
  }
  Status look(bool has_come) {
    for (std::size_t i = 0; i < has_left_.size(); ++i) {
      if (has_left_[i] || (!has_come && runner_.ranks()[i] == absent_)) continue;
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, calls_.test(i));
      has_left_[i] = is_done;
    }
    return {};
  }

  Runner& runner_;
  Prepared& calls_;
  int absent_;
  std::vector<bool> has_left_;  ///< by index of the rank
};

}  // namespace

Result<bool> leaves_early(Runner& runner, Prepared& calls) {
  bool is_early = false;
  for (int absent = 0; absent < runner.job_ranks(); ++absent) {
    TUTTI_ASSIGN_OR_RETURN(const bool one, EarlyLeave(runner, calls, absent).run());
    is_early |= one;
  }
  return is_early;
}

}  // namespace tutti::harness::faults

// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/block.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/verify/check.h"

namespace tutti::harness {
namespace {

constexpr std::size_t kReasonBytes = 512;

/// One host's part of a sample.
struct SampleRecord {
  std::int64_t first_enter = 0;
  std::int64_t last_enter = 0;
  std::int64_t first_leave = 0;
  std::int64_t last_leave = 0;
  std::int32_t last_rank = 0;  ///< who left last
};

/// One host's part of a block, as it is exchanged.
struct BlockRecord {
  std::array<SampleRecord, kMostSamplesPerBlock + 1> samples{};  ///< and the last call
  std::int64_t wrong = 0;
  std::array<char, kReasonBytes> reason{};
};

SampleRecord record_of(const Host& host, const RankTimes& times) {
  const auto first_last = [](const std::vector<std::int64_t>& list) {
    return std::minmax_element(list.begin(), list.end());
  };
  const auto [first_enter, last_enter] = first_last(times.enter_ns);
  const auto [first_leave, last_leave] = first_last(times.leave_ns);
  return {.first_enter = *first_enter,
          .last_enter = *last_enter,
          .first_leave = *first_leave,
          .last_leave = *last_leave,
          .last_rank = host.ranks()[static_cast<std::size_t>(last_leave - times.leave_ns.begin())]};
}

SampleRecord merge(SampleRecord a, const SampleRecord& b) {
  if (b.last_leave > a.last_leave) a.last_rank = b.last_rank;
  a.first_enter = std::min(a.first_enter, b.first_enter);
  a.last_enter = std::max(a.last_enter, b.last_enter);
  a.first_leave = std::min(a.first_leave, b.first_leave);
  a.last_leave = std::max(a.last_leave, b.last_leave);
  return a;
}

/// The calls of one block on one host.
class Calls {
 public:
  Calls(Host& host, Variant& variant, BlockRecord& record) : host_(host), variant_(variant), record_(record) {}

  Status run(const BlockOptions& options) {
    const bool is_further = checks_further(variant_.instance());
    variant_.refill(options.salt);
    for (int i = -options.discarded; i < options.samples; ++i) {
      if (variant_.instance().is_in_place) variant_.refill(options.salt);  // the last result is no input
      TUTTI_RETURN_IF_ERROR(call(options.operations));
      if (i >= 0) keep(samples_++);
      if (is_time_up(options.end_ns) && (samples_ > 0 || !is_further)) break;
    }
    variant_.refill(options.salt + 1);
    TUTTI_RETURN_IF_ERROR(call(is_further ? 1 : options.operations));
    keep(samples_);
    return {};
  }

  /// Without the last call; the same on all hosts.
  [[nodiscard]] std::size_t samples() const { return samples_; }
  [[nodiscard]] std::int64_t last_instant_ns() const { return instant_ns_; }

 private:
  Status call(int operations) {
    host_.announce(Activity::operation);
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t instant_ns, host_.start_together());
    TUTTI_RETURN_IF_ERROR(operations == 1 ? variant_.run(times_)
                                          : variant_.run_loop(times_, {.operations = operations}));
    host_.settle();
    if (instant_ns_ != 0) period_ns_ = instant_ns - instant_ns_;
    instant_ns_ = instant_ns;
    return {};
  }
  /// Whether the call just made, one more sample and the last call end after `end_ns`, if they take as long as the one
  /// before. Decided by instants alone, so that all hosts decide alike.
  [[nodiscard]] bool is_time_up(std::int64_t end_ns) const { return instant_ns_ > end_ns - 3 * period_ns_; }
  void keep(std::size_t index) { record_.samples[index] = record_of(host_, times_); }

  Host& host_;
  Variant& variant_;
  BlockRecord& record_;
  RankTimes times_;
  std::size_t samples_ = 0;
  std::int64_t instant_ns_ = 0;  ///< of the call before
  std::int64_t period_ns_ = 0;   ///< from one call to the next
};

void judge_barrier(const SampleRecord& sample, std::size_t index, BlockResult& result) {
  const CheckResult check = check_barrier({.first_leave_ns = sample.first_leave, .last_enter_ns = sample.last_enter});
  if (!check.is_ok() && result.wrong == 0) result.reason = fmt::format("in sample {} {}", index, check.diagnosis);
  result.wrong += check.wrong;
}

}  // namespace

bool checks_further(const Case& one) {
  return one.cadence == Cadence::streaming && (one.is_in_place || one.collective == Collective::barrier);
}

bool is_same_state(double line_ns, double other_line_ns) {
  return std::max(line_ns, other_line_ns) <= kSameState * std::min(line_ns, other_line_ns);
}

bool BlockResult::is_steady() const {
  return !line_before_ns || !line_after_ns || is_same_state(*line_before_ns, *line_after_ns);
}

Result<BlockResult> run_block(Host& host, Variant& variant, const BlockOptions& options) {
  BlockResult result;
  BlockRecord mine;
  TUTTI_ASSIGN_OR_RETURN(result.line_before_ns, host.probe_line());
  Calls calls(host, variant, mine);
  TUTTI_RETURN_IF_ERROR(calls.run(options));
  result.last_instant_ns = calls.last_instant_ns();
  TUTTI_ASSIGN_OR_RETURN(result.line_after_ns, host.probe_line());

  const Damage damage = variant.verify();
  mine.wrong = damage.wrong;
  std::strncpy(mine.reason.data(), damage.text.c_str(), kReasonBytes - 1);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<BlockRecord> all, host.exchange(mine));
  for (const BlockRecord& record : all) {
    if (record.wrong > 0 && result.wrong == 0) result.reason = record.reason.data();
    result.wrong += record.wrong;
  }
  for (std::size_t i = 0; i <= calls.samples(); ++i) {
    SampleRecord sample = all.front().samples[i];
    for (const BlockRecord& record : all) sample = merge(sample, record.samples[i]);
    if (variant.instance().collective == Collective::barrier) judge_barrier(sample, i, result);
    if (i > 0 && i == calls.samples()) break;  // the last call is no sample, where there are others
    const auto loop_ns = static_cast<double>(sample.last_leave - sample.first_enter);
    result.times_us.push_back(loop_ns * 1e-3 / options.operations);
    result.slowest.push_back(sample.last_rank);
  }
  return result;
}

}  // namespace tutti::harness

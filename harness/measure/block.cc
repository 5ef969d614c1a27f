// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/block.h"

#include <algorithm>
#include <array>
#include <span>

#include "harness/measure/check.h"
#include "harness/measure/settling.h"
#include "harness/statistics/statistics.h"
#include "harness/verify/check.h"

namespace tutti::harness::measure {
namespace {

constexpr int kCallsPerBatch = 4;  // of warming up
constexpr unsigned kCallBits = 16;

/// One runner's part of a sample.
struct SampleRecord {
  std::int64_t first_enter = 0;
  std::int64_t last_enter = 0;
  std::int64_t first_leave = 0;
  std::int64_t last_leave = 0;
  std::int64_t late = 0;       ///< how long after the announced instant the latest one arrived that was not asked to be
  std::int32_t last_rank = 0;  ///< the rank that left last
  std::int32_t late_rank = 0;  ///< the rank that entered last
};

/// When the last one arrived that was not asked to be late, by the host's own clock, and the instant that was
/// announced.
struct Arrival {
  std::optional<std::int64_t> latest_ns;
  std::int64_t instant_ns = 0;
};

/// One runner's part of a block, as it is exchanged.
struct BlockRecord {
  std::array<SampleRecord, kMostSamplesPerBlock + 1> samples{};  ///< and the last call
  std::int64_t wrong = 0;
  std::int64_t first_call_ns = 0;
  Reason reason;
};

/// By the runner's own clock.
SampleRecord readings_of(const Runner& runner, const RankTimes& times) {
  const auto first_last = [](const std::vector<std::int64_t>& list) {
    return std::minmax_element(list.begin(), list.end());
  };
  const auto [first_enter, last_enter] = first_last(times.enter_ns);
  const auto [first_leave, last_leave] = first_last(times.leave_ns);
  return {.first_enter = *first_enter,
          .last_enter = *last_enter,
          .first_leave = *first_leave,
          .last_leave = *last_leave,
          .last_rank = runner.ranks()[static_cast<std::size_t>(last_leave - times.leave_ns.begin())],
          .late_rank = runner.ranks()[static_cast<std::size_t>(last_enter - times.enter_ns.begin())]};
}

/// The same on the common clock; the call was announced for `instant_ns`.
SampleRecord on_clock(const RunnerClock& clock, const Arrival& arrival, SampleRecord record) {
  for (std::int64_t SampleRecord::*const each :
       {&SampleRecord::first_enter, &SampleRecord::last_enter, &SampleRecord::first_leave, &SampleRecord::last_leave}) {
    record.*each = clock.common(record.*each);
  }
  if (arrival.latest_ns) record.late = std::max<std::int64_t>(0, clock.common(*arrival.latest_ns) - arrival.instant_ns);
  return record;
}

SampleRecord merge(SampleRecord a, const SampleRecord& b) {
  if (b.last_leave > a.last_leave) a.last_rank = b.last_rank;
  if (b.last_enter > a.last_enter) a.late_rank = b.late_rank;
  a.first_enter = std::min(a.first_enter, b.first_enter);
  a.last_enter = std::max(a.last_enter, b.last_enter);
  a.first_leave = std::min(a.first_leave, b.first_leave);
  a.last_leave = std::max(a.last_leave, b.last_leave);
  a.late = std::max(a.late, b.late);
  return a;
}

/// The calls of one block on one host.
class Calls {
 public:
  Calls(Runner& runner, Variant& variant, BlockRecord& record, const BlockOptions& options)
      : runner_(runner),
        variant_(variant),
        record_(record),
        start_(options.start),
        cache_(options.conditions.cache),
        skew_(options.conditions.skew) {}

  Status run(const BlockOptions& options) {
    const bool is_further = checks_further(variant_.instance());
    const bool checks_every = options.conditions.checking == Checking::every;
    const bool checks_some = options.conditions.checking == Checking::sample;
    const bool checks_timed = checks_some && !is_further;
    const bool has_last = checks_every || checks_some;
    poisons_ = checks_timed && !has_peers_lines_;
    salt_ = options.salt;
    refill_all();
    for (int i = -options.discarded; i < options.samples; ++i) {
      const bool is_sample = i >= 0;
      const bool is_chosen = checks_timed && is_sample && i == options.chosen && i + 1 < options.samples;
      TUTTI_RETURN_IF_ERROR(make_call(options.operations, checks_every && is_sample));
      is_sample ? keep(samples_++) : static_cast<void>(++discarded_);
      if (checks_every && is_sample) TUTTI_RETURN_IF_ERROR(verify_sample(is_further));
      const int more = is_chosen ? options.discarded : 0;
      if (is_time_up(options.end_ns, more + (has_peers_lines_ ? 2 : 0)) && (samples_ > 0 || (has_last && !is_further)))
        break;
      if (is_chosen) TUTTI_RETURN_IF_ERROR(verify_timed(options.operations));
      for (int again = 0; again < more; ++again) TUTTI_RETURN_IF_ERROR(make_call(options.operations, false));
      if (i == -1 && is_warming_up(options.warm_up_end_ns)) --i;
    }
    if (checks_timed && samples_ > 0) TUTTI_RETURN_IF_ERROR(verify_timed(options.operations));
    if (!has_last) return {};
    variant_.next_set();
    variant_.refill(++salt_);
    TUTTI_RETURN_IF_ERROR(call(is_further ? 1 : options.operations));
    keep(samples_);
    Damage last = variant_.verify();
    if (last.wrong == 0) return {};
    is_of_last_ = true;
    last.wrong += damage_.wrong;
    damage_ = std::move(last);
    return {};
  }

  /// The readings of the block become instants of the common clock, once it is known what that was.
  void convert(const RunnerClock& clock) {
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      record_.samples[i] = on_clock(clock, arrivals_[i], record_.samples[i]);
    }
  }

  /// Without the last call; the same on all runners.
  [[nodiscard]] std::size_t samples() const { return samples_; }
  /// With it, where there is one.
  [[nodiscard]] std::size_t kept() const { return all_times_.size(); }
  [[nodiscard]] std::uint64_t last_salt() const { return salt_; }
  /// Elements that were found to be wrong on this runner, and why.
  [[nodiscard]] std::int64_t wrong() const { return damage_.wrong; }
  [[nodiscard]] Reason reason() const { return Reason::of(damage_.wrong, damage_.text, is_of_last_); }
  [[nodiscard]] std::int64_t first_call_ns() const { return first_call_ns_; }
  [[nodiscard]] int discarded() const { return discarded_; }
  /// Of one sample or the last call, on the ranks of this runner.
  [[nodiscard]] const RankTimes& times_of(std::size_t index) const { return all_times_[index]; }
  [[nodiscard]] std::int64_t last_instant_ns() const { return instant_ns_; }

 private:
  void refill_all() {
    variant_.refill_all(salt_);
    unused_ = variant_.sets();
  }
  /// On the next set of buffers. In place the last result is no input: each set is used once after a refill. All sets
  /// are refilled together, so that the one that is used next was written longest ago.
  Status make_call(int operations, bool has_other_data) {
    if (variant_.instance().is_in_place && unused_ == 0) refill_all();
    variant_.next_set();
    --unused_;
    if (has_other_data) variant_.refill(++salt_);
    if (poisons_) variant_.poison_places((salt_ << kCallBits) + static_cast<std::uint64_t>(made_++));
    return call(operations);
  }
  Status call(int operations) {
    if (cache_ == CacheState::cold) variant_.flush_buffers();
    variant_.announce();
    late_rank_ = next_late_rank();
    TUTTI_RETURN_IF_ERROR(start(runner_, start_));
    TUTTI_RETURN_IF_ERROR(operations == 1 ? variant_.run(times_, late_rank_, skew_.count())
                                          : variant_.run_loop(times_, {.operations = operations}));
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t instant_ns, starting(runner_, start_).last_start());
    runner_.settle();
    if (first_call_ns_ == 0) first_call_ns_ = longest_of(times_);
    if (instant_ns_ != 0) period_ns_ = instant_ns - instant_ns_;
    instant_ns_ = instant_ns;
    return {};
  }
  /// Another one in each call, the same on all runners.
  std::optional<int> next_late_rank() {
    if (skew_ <= std::chrono::nanoseconds(0)) return std::nullopt;
    return calls_++ % runner_.job_ranks();
  }
  /// Whether the call just made, `more` further calls, a sample and the last call end after `end_ns`, if each takes as
  /// long as the one before. Decided by instants alone, so that all runners decide alike.
  [[nodiscard]] bool is_time_up(std::int64_t end_ns, int more) const {
    return instant_ns_ > end_ns - (3 + more) * period_ns_;
  }
  /// Whether one more call is to be discarded. Decided by instants alone as well.
  bool is_warming_up(std::int64_t end_ns) {
    if (warming_since_ns_ == 0) warming_since_ns_ = instant_ns_;
    if (++warming_calls_ % kCallsPerBatch == 0) {
      warm_up_.add(static_cast<double>(instant_ns_ - warming_since_ns_));
      warming_since_ns_ = instant_ns_;
    }
    return !warm_up_.is_over() && instant_ns_ + 2 * period_ns_ < end_ns;
  }
  /// The call just made, or one more on the same input.
  Status verify_timed(int operations) {
    if (has_peers_lines_) {
      variant_.next_set();
      variant_.poison_outputs();
      TUTTI_RETURN_IF_ERROR(call(operations));
    }
    add_operation(damage_, variant_.verify());
    return {};
  }
  /// The call just made, or one operation more where that is what can be verified.
  Status verify_sample(bool is_further) {
    if (is_further) {
      variant_.refill(++salt_);
      TUTTI_RETURN_IF_ERROR(call(1));
    }
    add_operation(damage_, variant_.verify());
    return {};
  }
  void keep(std::size_t index) {
    record_.samples[index] = readings_of(runner_, times_);
    arrivals_.push_back({.latest_ns = latest_arrival(), .instant_ns = instant_ns_});
    all_times_.push_back(times_);
  }
  /// When the first rank of this runner entered the call just made. The runner lets its others enter one after the
  /// other, so they are not late. Nothing if the runner has all ranks.
  [[nodiscard]] std::optional<std::int64_t> latest_arrival() const {
    if (runner_.count() == 1) return {};
    for (std::size_t i = 0; i < times_.enter_ns.size(); ++i) {
      if (late_rank_ == runner_.ranks()[i]) continue;  // as it was asked to be
      return times_.enter_ns[i] - times_.marking_ns;
    }
    return {};
  }

  Runner& runner_;
  Variant& variant_;
  BlockRecord& record_;
  Start start_;
  CacheState cache_;
  std::chrono::nanoseconds skew_;
  /// Poisoned lines of an output would be taken back from peers: out of place where buffers are shared.
  const bool has_peers_lines_ = variant_.instance().buffers == Buffers::shared && !variant_.instance().is_in_place;
  bool poisons_ = false;          ///< places of the outputs, before each call
  int made_ = 0;                  ///< calls but the last one
  int unused_ = 0;                ///< sets of buffers since they were refilled
  int calls_ = 0;                 ///< with a skew
  std::optional<int> late_rank_;  ///< in the call just made
  RankTimes times_;
  std::vector<RankTimes> all_times_;
  std::vector<Arrival> arrivals_;  ///< as many
  std::size_t samples_ = 0;
  int discarded_ = 0;
  std::uint64_t salt_ = 0;  ///< of the last refill
  Damage damage_;
  bool is_of_last_ = false;  ///< the damage: on fresh buffers, where none is what an earlier call has left
  WarmUp warm_up_;
  int warming_calls_ = 0;
  std::int64_t warming_since_ns_ = 0;  ///< the first call of the batch began
  std::int64_t first_call_ns_ = 0;     ///< that it took on the slowest rank of this runner
  std::int64_t instant_ns_ = 0;        ///< of the call before
  std::int64_t period_ns_ = 0;         ///< from one call to the next
};

/// What each sample took on the stream of the slowest rank.
Status add_stream_times(Runner& runner, const Calls& calls, int operations, std::span<Sample> samples) {
  std::array<double, kMostSamplesPerBlock + 1> mine{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::vector<double>& times = calls.times_of(i).stream_us;
    if (!times.empty()) mine[i] = std::ranges::max(times) / operations;
  }
  TUTTI_ASSIGN_OR_RETURN(const auto all, runner.exchange(mine));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    double slowest = 0;
    for (const auto& one : all) slowest = std::max(slowest, one[i]);
    if (slowest > 0) samples[i].stream_us = slowest;
  }
  return {};
}

void judge_barrier(const SampleRecord& sample, std::size_t index, std::int64_t doubt_ns, BlockResult& result) {
  const CheckResult check =
      check_barrier({.first_leave_ns = sample.first_leave + doubt_ns, .last_enter_ns = sample.last_enter});
  if (!check.is_ok() && result.wrong == 0) result.reason = fmt::format("in sample {} {}", index, check.diagnosis);
  result.wrong += check.wrong;
}

/// A sample in all detail, from all runners' records. A job has one runner, or one rank on each.
Sample detail_of(const SampleRecord& merged, std::span<const SampleRecord> runners, const RankTimes& here,
                 const BlockOptions& options) {
  const auto us = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
  const int operations = options.operations;
  Sample sample{.global_us = us(merged.last_leave - merged.first_enter) / operations,
                .last_arrival_us = us(merged.last_leave - merged.last_enter) / operations,
                .skew_us = us(merged.last_enter - merged.first_enter),
                .arrived_last = merged.late_rank,
                .finished_last = merged.last_rank,
                .operations = operations};
  if (options.start.how == Synchronisation::roundtime) sample.late_us = us(merged.late);
  if (runners.size() > 1) {
    for (const SampleRecord& one : runners) {
      sample.rank_us.push_back(us(one.last_leave - one.first_enter) / operations);
      sample.rank_arrived_us.push_back(us(one.first_enter - merged.first_enter));
    }
  } else {
    for (std::size_t i = 0; i < here.enter_ns.size(); ++i) {
      sample.rank_us.push_back(us(here.leave_ns[i] - here.enter_ns[i]) / operations);
      sample.rank_arrived_us.push_back(us(here.enter_ns[i] - *std::ranges::min_element(here.enter_ns)));
    }
  }
  return sample;
}

}  // namespace

bool checks_further(const Case& one) {
  return one.cadence == Cadence::streaming && (one.is_in_place || one.collective == Collective::barrier);
}

bool is_same_state(const RoundTrips& one, const RoundTrips& other) {
  const auto are_alike = [](std::optional<double> a, std::optional<double> b) {
    return !a || !b || std::max(*a, *b) <= kSameState * std::min(*a, *b);
  };
  return are_alike(one.line_ns, other.line_ns) && are_alike(one.net_ns, other.net_ns);
}

double time_of(const Sample& sample, std::chrono::nanoseconds skew) {
  return skew.count() > 0 ? sample.last_arrival_us : sample.global_us;
}

Tolerance tolerance_of(const Runner& runner) { return {.least_us = static_cast<double>(runner.in_time_ns()) * 1e-3}; }

double mark_late(std::span<Sample> samples, const Tolerance& tolerance, int operations) {
  std::vector<double> times;
  for (const Sample& one : samples) times.push_back(one.last_arrival_us * operations);
  const double most_us = std::max(tolerance.least_us, tolerance.share * median_of(std::move(times)));
  for (Sample& one : samples) one.is_valid = one.late_us.value_or(0) <= most_us;
  const auto late = std::ranges::count(samples, false, &Sample::is_valid);
  return static_cast<double>(late) / static_cast<double>(samples.size());
}

bool BlockResult::is_steady() const { return is_same_state(before, after); }

Result<BlockResult> run_block(Runner& runner, Variant& variant, const BlockOptions& options) {
  BlockResult result;
  BlockRecord mine;
  TUTTI_RETURN_IF_ERROR(runner.compare_clocks());
  result.clocks_bound_ns = runner.clocks().round_ns / 2;
  TUTTI_ASSIGN_OR_RETURN(result.before, runner.probe());
  Calls calls(runner, variant, mine, options);
  TUTTI_RETURN_IF_ERROR(calls.run(options));
  result.last_instant_ns = calls.last_instant_ns();
  result.discarded = calls.discarded();
  result.last_salt = calls.last_salt();
  TUTTI_ASSIGN_OR_RETURN(result.after, runner.probe());
  TUTTI_RETURN_IF_ERROR(runner.compare_clocks());
  result.clocks_bound_ns = std::max(result.clocks_bound_ns, runner.clocks().round_ns / 2);
  calls.convert(runner.clock_between());

  mine.wrong = calls.wrong();
  mine.reason = calls.reason();
  mine.first_call_ns = calls.first_call_ns();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<BlockRecord> all, runner.exchange(mine));
  result.reason = first_reason(all, &BlockRecord::reason).text();
  for (const BlockRecord& record : all) {
    result.wrong += record.wrong;
    result.first_call_ns = std::max(result.first_call_ns, record.first_call_ns);
  }
  const bool judges_samples =
      variant.instance().collective == Collective::barrier && options.conditions.checking != Checking::none;
  for (std::size_t i = 0; i < calls.kept(); ++i) {
    std::vector<SampleRecord> parts;
    for (const BlockRecord& record : all) parts.push_back(record.samples[i]);
    SampleRecord sample = parts.front();
    for (const SampleRecord& part : parts) sample = merge(sample, part);
    if (judges_samples) judge_barrier(sample, i, runner.clock().doubt_ns, result);
    if (i > 0 && i == calls.samples()) break;  // the last call is no sample, where there are others
    result.samples.push_back(detail_of(sample, parts, calls.times_of(i), options));
  }
  if (variant.has_streams()) TUTTI_RETURN_IF_ERROR(add_stream_times(runner, calls, options.operations, result.samples));
  if (result.samples.empty()) return result;  // of a block that is verified only
  result.late_share = mark_late(result.samples, tolerance_of(runner), options.operations);
  if (result.late_share > kMostLateSamples && options.start.together == nullptr) runner.widen_slack();
  return result;
}

}  // namespace tutti::harness::measure

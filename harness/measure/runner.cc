// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/runner.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <utility>

#include "harness/machine/clock.h"

namespace tutti::harness::measure {
namespace {

// A single trip is not much longer than reading the clock, so trips are timed in batches.
constexpr int kProbeBatches = 9;
constexpr int kBouncesPerBatch = 25;
constexpr int kBouncesBetweenClocks = 8;
constexpr std::int64_t kLongestBatchNs = 10'000'000;  // where ranks get no core at the same time
// The announcement must reach every runner before the instant. That takes a few transfers of a line where every rank
// has a core, a turn of the run queue where not.
constexpr std::int64_t kSlackNs = 1500;
constexpr std::int64_t kSlackPerRunnerYieldingNs = 3000;
constexpr std::int64_t kSlackPerRunnerAcrossNs = 2000;
constexpr std::int64_t kMostSlackTimes = 16;
constexpr int kClockTrips = 40;
constexpr std::int64_t kInTimeNs = 1000;
constexpr std::int64_t kInTimeSharingNs = 10'000'000;  // two to three time slices of the scheduler
constexpr int kTurnsBeforeNaps = 64;
constexpr std::chrono::microseconds kNap{50};
constexpr std::chrono::microseconds kRest{200};
constexpr int kOperationsOfRest = 64;  ///< that others may take while a runner rests: more than a block has

}  // namespace

void Runner::relax(int turn) const {
  if (is_resting_ && turn >= kTurnsBeforeNaps) {
    std::this_thread::sleep_for(kRest);
    return;
  }
  if (options_.yields) {
    if (options_.naps && turn >= kTurnsBeforeNaps) {
      std::this_thread::sleep_for(kNap);
    } else {
      sched_yield();
    }
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

bool Runner::take_stood() {
  const std::int64_t now_ns = board_.stood_ns().load(std::memory_order_relaxed);
  return now_ns > std::exchange(stood_ns_, now_ns).value_or(0);
}

Status Runner::check_abort() const {
  TUTTI_RETURN_IF_ERROR(options_.exchange->failure());
  if (!options_.exchange->is_aborted(board_)) return {};
  return error(Code::aborted, "the job was given up");
}

template <class Predicate>
Status Runner::wait_until(Predicate is_done, const char* what, int whom) {
  if (is_done()) return {};
  Deadline deadline(board_, monotonic_ns() + options_.timeout.count() * (is_resting_ ? kOperationsOfRest : 1));
  const bool needs_look = options_.exchange->needs_look();
  return poll(
      [&]() -> Result<Turn> {
        if (needs_look) options_.exchange->look(board_);
        return is_done() ? Turn::done : Turn::idle;
      },
      [&] {
        if (!deadline.has_passed(monotonic_ns())) return Status();
        return error(Code::timeout, "rank {} did not come to {}", whom, what);
      });
}

// Two halves of a page alternate. A runner that writes the record of exchange n has completed n-1, so every runner has
// read n-2.
Status Runner::exchange_bytes(const void* mine, void* all, std::size_t bytes) {
  if (options_.runners == 1) {
    std::memcpy(all, mine, bytes);
    return {};
  }
  announce(Activity::exchange);
  if (is_resting_) renew(options_.timeout * (kOperationsOfRest - 1));
  const std::uint64_t number = ++exchanges_;
  const std::size_t half = number % 2 * kMostBytes;
  RunnerPage& page = board_.page(options_.runner);
  std::memcpy(page.payload + half, mine, bytes);
  page.sequence.store(number, std::memory_order_release);
  tell(Exchange::Part::page);
  for (int runner = 0; runner < options_.runners; ++runner) {
    const RunnerPage& other = seen(runner).page(runner);
    const auto has_come = [&] { return other.sequence.load(std::memory_order_acquire) >= number; };
    if (!has_come()) await(runner);
    TUTTI_RETURN_IF_ERROR(wait_until(has_come, "an exchange", runner));
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(runner) * bytes, other.payload + half, bytes);
  }
  settle();
  return {};
}

Result<Reason> Runner::first_reason(const Status& mine) {
  struct Maybe {
    Reason reason;
  };
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Maybe> all, exchange(Maybe{Reason::of(mine)}));
  return measure::first_reason(all, &Maybe::reason);
}

Result<std::int64_t> Runner::start_together() {
  if (options_.runners == 1) {
    TUTTI_RETURN_IF_ERROR(start_after([] { return Status(); }));
    return last_start();
  }
  const std::uint64_t number = ++starts_;
  if (options_.runner == 0) {
    SyncLine& announcement = board_.sync(0);
    for (int runner = 1; runner < options_.runners; ++runner) {
      const SyncLine& line = seen(runner).sync(runner);
      TUTTI_RETURN_IF_ERROR(wait_until([&] { return line.word.load(std::memory_order_acquire) >= number; },
                                       "the start of a sample", runner));
    }
    const std::int64_t slack = options_.yields ? options_.runners * kSlackPerRunnerYieldingNs : kSlackNs;
    // Between machines an announcement takes half a round trip, and a word for each runner is sent.
    const std::int64_t across = has_machines() ? 4 * clocks_.round_ns + options_.runners * kSlackPerRunnerAcrossNs : 0;
    announcement.instants_ns[number % 2].store(common_now_ns() + (slack + across) * slack_times_,
                                               std::memory_order_relaxed);
    announcement.word.store(number, std::memory_order_release);
    tell(Exchange::Part::sync);
  } else {
    board_.sync(options_.runner).word.store(number, std::memory_order_release);
    tell(Exchange::Part::sync);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t instant, last_start());
  const std::int64_t here = clock().here(instant);
  while (now_ns() < here) {
    if (options_.yields) sched_yield();
  }
  if (options_.on_start) options_.on_start();
  return instant;
}

Status Runner::start_after(const std::function<Status()>& barrier) {
  const std::uint64_t number = ++starts_;
  if (options_.runner == 0) {
    SyncLine& announcement = board_.sync(0);
    announcement.instants_ns[number % 2].store(common_now_ns(), std::memory_order_relaxed);
    announcement.word.store(number, std::memory_order_release);
    tell(Exchange::Part::sync);
  }
  return barrier();
}

// Of two instants one is still there. Runner 0 announces the next one but one when all have begun the next one, and a
// runner that has begun it has read this one.
Result<std::int64_t> Runner::last_start() {
  const SyncLine& announcement = seen(0).sync(0);
  TUTTI_RETURN_IF_ERROR(wait_until([&] { return announcement.word.load(std::memory_order_acquire) >= starts_; },
                                   "the start of a sample", 0));
  return announcement.instants_ns[starts_ % 2].load(std::memory_order_relaxed);
}

// Hensgen, Finkel & Manber, Two algorithms for barrier synchronization, 1988.
Status Runner::pass_barrier() {
  for (int distance = 1; distance < options_.runners; distance *= 2) {
    board_.sync(options_.runner).round.store(++rounds_, std::memory_order_release);
    tell(Exchange::Part::sync);
    const int before = (options_.runner - distance + options_.runners) % options_.runners;
    const SyncLine& line = seen(before).sync(before);
    TUTTI_RETURN_IF_ERROR(
        wait_until([&] { return line.round.load(std::memory_order_acquire) >= rounds_; }, "a barrier", before));
  }
  return {};
}

std::int64_t Runner::in_time_ns() const {
  return (shares_cores() ? kInTimeSharingNs : kInTimeNs) + options_.clock.doubt_ns;
}

// A machine's first runner asks for all of that machine. They ask one after the other, while runner 0 looks for
// questions as it waits for the exchange behind. The quickest of several answers counts, and half of its round trip
// bounds the error: Cristian, Probabilistic clock synchronization, 1989.
Status Runner::compare_clocks() {
  const std::vector<int>& machines = options_.exchange->machines();
  if (machines.empty()) return {};
  const auto machine_of = [&](int runner) { return machines[static_cast<std::size_t>(runner)]; };
  const auto asker_of = [&](int runner) {
    return static_cast<int>(std::ranges::find(machines, machine_of(runner)) - machines.begin());
  };
  ClockEstimate mine;
  mine.since_ns = now_ns();
  for (int runner = 0; runner < options_.runners; ++runner) {
    if (asker_of(runner) != runner || machine_of(runner) == machine_of(0)) continue;
    if (runner == options_.runner) {
      ClockTrip best;
      for (int i = 0; i < kClockTrips; ++i) {
        TUTTI_ASSIGN_OR_RETURN(const ClockTrip trip, options_.exchange->ask_clock(0, options_.clock, board_));
        if (i == 0 || trip.round_ns() < best.round_ns()) best = trip;
      }
      mine.bound_ns = (best.round_ns() + 1) / 2;
      mine.offset_ns = best.asked_ns + best.round_ns() / 2 - best.there_ns;
      mine.since_ns = best.heard_ns;
    }
    TUTTI_RETURN_IF_ERROR(exchange(char{}).status());
  }
  struct Record {
    ClockEstimate estimate;
    std::int64_t change_ns;  ///< against what was foreseen
    bool yields;
  };
  std::int64_t change_ns = 0;
  if (first_estimate_ && asker_of(options_.runner) == options_.runner) {
    const std::int64_t foreseen = mine.since_ns - options_.clock.common(mine.since_ns);
    change_ns = std::abs(mine.offset_ns - foreseen);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Record> all, exchange(Record{mine, change_ns, options_.yields}));
  std::int64_t doubt_ns = clocks_.round_ns;  // of readings since the estimate before
  clocks_.round_ns = 0;
  for (const Record& one : all) {
    options_.yields |= one.yields;  // probes, and which samples count, depend on it
    clocks_.most_bound_ns = std::max(clocks_.most_bound_ns, one.estimate.bound_ns);
    clocks_.most_change_ns = std::max(clocks_.most_change_ns, one.change_ns);
    clocks_.round_ns = std::max(clocks_.round_ns, 2 * one.estimate.bound_ns);
    doubt_ns = std::max(doubt_ns, 2 * (one.estimate.bound_ns + one.change_ns));
  }
  const ClockEstimate& estimate = all[static_cast<std::size_t>(asker_of(options_.runner))].estimate;
  estimate_before_ = std::exchange(last_estimate_, estimate);
  RunnerClock& clock = options_.clock;
  clock.offset_ns = estimate.offset_ns;
  clock.since_ns = estimate.since_ns;
  clock.doubt_ns = doubt_ns;
  if (!first_estimate_) {
    first_estimate_ = estimate;
    return {};
  }
  const std::int64_t moved = estimate.offset_ns - first_estimate_->offset_ns;
  const std::int64_t time = estimate.since_ns - first_estimate_->since_ns;
  const bool tells = std::abs(moved) > estimate.bound_ns + first_estimate_->bound_ns;
  clock.drift = tells && time > 0 ? static_cast<double>(moved) / static_cast<double>(time) : 0;
  return {};
}

RunnerClock Runner::clock_between() const {
  return estimate_before_ ? between(*estimate_before_, *last_estimate_, options_.clock) : options_.clock;
}

bool Runner::is_first_on_machine() const {
  const std::vector<int>& machines = options_.exchange->machines();
  if (machines.empty()) return options_.runner == 0;
  const auto own = machines.begin() + options_.runner;
  return std::find(machines.begin(), machines.end(), *own) == own;
}

void Runner::widen_slack() { slack_times_ = std::min(2 * slack_times_, kMostSlackTimes); }

Result<double> Runner::bounce(int other, std::uint64_t last) {
  const int peer = options_.runner == 0 ? other : 0;
  std::atomic<std::uint64_t>& mine = board_.probe(options_.runner).word;
  const std::atomic<std::uint64_t>& its = seen(peer).probe(peer).word;
  const bool is_told = !has_machines() || !are_on_one_machine(0, other);  // else both see one board
  const auto tell_mine = [&] {
    mine.store(bounces_, std::memory_order_release);
    if (is_told) tell(Exchange::Part::probe);
  };
  std::int64_t begin = 0;
  for (int i = 0; i <= kBouncesPerBatch; ++i) {
    ++bounces_;
    if (i == 1) begin = monotonic_ns();  // the first one only brings both runners here
    if (options_.runner == 0) tell_mine();
    TUTTI_RETURN_IF_ERROR(wait_until([&] { return its.load(std::memory_order_acquire) >= bounces_; }, "a probe", peer));
    if (options_.runner != 0) tell_mine();
    if (options_.runner != 0 || i == 0 || i % kBouncesBetweenClocks != 0) continue;
    if (monotonic_ns() - begin < kLongestBatchNs) continue;
    // The other runner takes part in all bounces. Once the last number is there, it waits for none of them.
    bounces_ = last;
    tell_mine();
    return static_cast<double>(monotonic_ns() - begin) / i;
  }
  return static_cast<double>(monotonic_ns() - begin) / kBouncesPerBatch;
}

Result<double> Runner::round_trip(int other) {
  double median = 0;
  const std::uint64_t last = bounces_ + kProbeBatches * (kBouncesPerBatch + 1);
  if (options_.runner == 0 || options_.runner == other) {
    std::array<double, kProbeBatches> trips{};
    auto end = trips.begin();
    while (bounces_ < last) {
      TUTTI_ASSIGN_OR_RETURN(*end++, bounce(other, last));
    }
    const auto middle = trips.begin() + (end - trips.begin()) / 2;
    std::nth_element(trips.begin(), middle, end);
    median = *middle;
  }
  bounces_ = last;
  return agree(median);
}

Result<RoundTrips> Runner::probe() {
  RoundTrips trips;
  if (options_.runners == 1 || shares_cores()) return trips;
  int last = options_.runners - 1;
  if (!are_on_one_machine(0, last)) {
    TUTTI_ASSIGN_OR_RETURN(trips.net_ns, round_trip(last));
    while (!are_on_one_machine(0, last)) --last;
  }
  if (last > 0) {
    TUTTI_ASSIGN_OR_RETURN(trips.line_ns, round_trip(last));
  }
  return trips;
}

void Runner::announce(Activity activity) {
  for (const int place : places()) harness::announce(board_.status(place), activity, case_index_);
}

void Runner::await(int runner) {
  for (const int place : places()) harness::await(board_.status(place), runner);
}

void Runner::renew(std::chrono::nanoseconds granted) {
  for (const int place : places()) harness::renew(board_.status(place), granted);
}

void Runner::settle() {
  for (const int place : places()) harness::settle(board_.status(place));
}

}  // namespace tutti::harness::measure

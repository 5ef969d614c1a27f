// SPDX-License-Identifier: Apache-2.0
// A runner is the thread that runs one or more ranks: one rank as process or thread, all ranks as tasks. Measuring and
// checking are written against class Runner. A runner never blocks inside a rank: it polls.
//
// The runners of a job agree through the board (harness/board/board.h), memory that they share, or boards that mirror
// each other (exchange.h). They exchange small records, start together at an announced instant, and probe how long a
// cache line takes between them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/rank_place.h"
#include "harness/machine/clock.h"
#include "harness/measure/deadline.h"
#include "harness/measure/exchange.h"
#include "harness/measure/reason.h"
#include "harness/measure/runner_clock.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// What a turn of a waiting loop came to: nothing, something but not all that it waits for, or all of it.
enum class Turn : std::uint8_t { idle, busy, done };

class Order;

struct RunnerOptions {
  int runner = 0;
  int runners = 1;
  int job_ranks = 1;
  std::vector<int> ranks;  ///< of this runner
  /// Of several groups that run side by side: the one that `ranks` are numbers in.
  int group = 0;
  RankPlace at = {};             ///< of the first of `ranks`, in the machines of the job
  std::vector<int> places = {};  ///< of `ranks` on the board; empty: their numbers
  RunnerClock clock = {};
  Exchange* exchange = &shared_board();  ///< with the other runners; it outlives the runner
  bool yields = false;                   ///< ranks outnumber cores: waits yield at once instead of spinning
  bool has_crowd = false;                ///< ranks share their cores with others, on purpose (crowd.h)
  bool naps = false;                     ///< and sleep after a while: nothing is timed, and others may need the core
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of every wait
  /// Beyond it, before an operation is given up here: the launcher, which watches the same deadline, sees the memory
  /// that processes share and knows more. It sees nothing of ranks in one process.
  std::chrono::nanoseconds grace = std::chrono::seconds(3);
  Order* order = nullptr;               ///< of the steps of all ranks, which are this runner's; nullptr: in turn
  std::function<void()> on_start = {};  ///< at each announced instant, before its ranks begin: how a test is late
};

/// What tells the states of machines: nanoseconds of round trips. Empty: there is nobody to and fro between.
struct RoundTrips {
  std::optional<double> line_ns;  ///< of a cache line, between two runners of one machine
  std::optional<double> net_ns;   ///< of 8 bytes, between two machines, beside the system under test
};

class Runner {
 public:
  /// Most bytes of one runner's record in an exchange.
  static constexpr std::size_t kMostBytes = RunnerPage::kPayload / 2;

  Runner(Board board, RunnerOptions options) : board_(board), options_(std::move(options)) {}

  [[nodiscard]] const Board& board() const { return board_; }
  [[nodiscard]] const RunnerOptions& options() const { return options_; }
  [[nodiscard]] int index() const { return options_.runner; }
  /// From the first call on, has_stood looks for stops.
  void watch_stood() {
    if (!stood_ns_) stood_ns_ = board_.stood_ns().load(std::memory_order_relaxed);
  }
  /// Whether the ranks of this machine were all stopped and continued since the last take_stood, or since the first
  /// watch_stood. What watches them may find that out between two cells.
  [[nodiscard]] bool has_stood() const {
    return board_.stood_ns().load(std::memory_order_relaxed) > stood_ns_.value_or(0);
  }
  /// has_stood, and from now on only what comes later.
  [[nodiscard]] bool take_stood();
  [[nodiscard]] int count() const { return options_.runners; }
  [[nodiscard]] int job_ranks() const { return options_.job_ranks; }
  [[nodiscard]] const std::vector<int>& ranks() const { return options_.ranks; }
  [[nodiscard]] const RankPlace& at() const { return options_.at; }
  [[nodiscard]] int group() const { return options_.group; }
  /// Of all readings of this runner.
  [[nodiscard]] const RunnerClock& clock() const { return options_.clock; }
  [[nodiscard]] std::int64_t now_ns() const { return options_.clock.now(); }
  /// Now, on the common clock.
  [[nodiscard]] std::int64_t common_now_ns() const { return options_.clock.common(now_ns()); }
  [[nodiscard]] Order* order() const { return options_.order; }
  [[nodiscard]] bool yields() const { return options_.yields; }
  /// Whether ranks are taken off their cores as they should be.
  [[nodiscard]] bool shares_cores() const { return options_.yields || options_.has_crowd; }
  [[nodiscard]] std::chrono::nanoseconds timeout() const { return options_.timeout; }
  [[nodiscard]] std::chrono::nanoseconds grace() const { return options_.grace; }

  /// Every runner's record, by runner. All runners call it in the same order. Errors: timeout naming the runner that is
  /// missing, aborted when the job was given up.
  template <class Record>
  [[nodiscard]] Result<std::vector<Record>> exchange(const Record& mine) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= kMostBytes);
    std::vector<Record> all(static_cast<std::size_t>(options_.runners));
    TUTTI_RETURN_IF_ERROR(exchange_bytes(&mine, all.data(), sizeof(Record)));
    return all;
  }
  /// The same of `bytes` bytes, at most kMostBytes: `all` has room for every runner's.
  Status exchange_bytes(const void* mine, void* all, std::size_t bytes);
  /// Estimates the clocks of other machines against runner 0's, from the quickest of some tens of questions. Where an
  /// earlier estimate is so far back that both tell more than their bounds, also the drift. Where ranks of one machine
  /// outnumber its cores, all runners yield from then on. All runners call it. Errors: as exchange.
  Status compare_clocks();
  /// For what was read between the last two estimates: the offset moved evenly from one to the other.
  [[nodiscard]] RunnerClock clock_between() const;
  /// What that has come to so far: bounds of the estimates, with what the last one was found to be off by.
  struct Clocks {
    std::int64_t most_bound_ns = 0;   ///< half of a least round trip, the largest of all machines and estimates
    std::int64_t most_change_ns = 0;  ///< by which an estimate differed from what the one before had foreseen
    std::int64_t round_ns = 0;        ///< least round trip to the furthest machine, in the last estimate
  };
  [[nodiscard]] const Clocks& clocks() const { return clocks_; }
  [[nodiscard]] bool has_machines() const { return !options_.exchange->machines().empty(); }
  /// Whether this runner is the first of its machine's: what is there once for a machine is its to do.
  [[nodiscard]] bool is_first_on_machine() const;

  /// Runner 0's value, on every runner.
  template <class Value>
  [[nodiscard]] Result<Value> agree(const Value& mine) {
    struct Box {
      Value value;
    };
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Box> all, exchange(Box{mine}));
    return all.front().value;
  }

  /// The first runner's that has one, on every runner: its code and its text; none where all are ok.
  [[nodiscard]] Result<Reason> first_reason(const Status& mine);

  /// Waits for all runners, agrees on an instant a little ahead and returns at it. The instant is on the common clock,
  /// in nanoseconds; a runner may be late, which its own start time then says.
  [[nodiscard]] Result<std::int64_t> start_together();
  /// Another way to start: returns what `barrier` does, which is to return on each runner when all have called it.
  Status start_after(const std::function<Status()>& barrier);
  /// The instant of the last start, on all runners the same: the announced one, or when runner 0 came to the barrier.
  [[nodiscard]] Result<std::int64_t> last_start();
  /// A dissemination barrier: ceil(log2 runners) rounds, in each of which a runner hears of twice as many.
  Status pass_barrier();

  /// How late a rank may enter after an announced instant and be in time nevertheless. That is some looks at the clock
  /// or, where ranks share cores, turns of the run queue, for which the operation waits as well.
  [[nodiscard]] std::int64_t in_time_ns() const;
  /// From here on instants are announced twice as far ahead, up to 16 times as far as at first. For when too many ranks
  /// hear of them too late. All runners call it.
  void widen_slack();

  /// Between the first and the last runner, of one machine; between the first and the last machine where there are
  /// several, and then also between the first and the last runner of machine 0. Each is the median of some batches.
  /// Both are empty where ranks share cores: there a scheduler would be measured instead.
  [[nodiscard]] Result<RoundTrips> probe();

  /// Says on the board what all ranks of this runner are about to do, and that it is done.
  void announce(Activity activity);
  void settle();
  /// In an exchange: the page of `runner` is awaited.
  void await(int runner);
  /// What they are about to do has got on: its deadline begins anew, and is later by `granted`.
  void renew(std::chrono::nanoseconds granted);
  void set_case(std::uint32_t index) { case_index_ = index; }
  /// While it rests a runner sleeps in its waits, so that the runners that work have the cores. The deadline of each
  /// wait is then that of many operations.
  void rest(bool is_resting) { is_resting_ = is_resting; }

  /// The one way in which ranks wait. Takes turns until `look`, which returns a Result<Turn>, is done, and relaxes
  /// after an idle one. Now and then it calls `look_around`, which returns a Status: deadlines are looked at there.
  /// Errors: those of `look` and `look_around`; aborted when the job was given up.
  template <class Look, class LookAround>
  Status poll(Look look, LookAround look_around) const;
  /// Calls `look` again and again for `time_ns`, as a rank that waits. The last look is after that, however late this
  /// thread gets on. Errors: those of `look`, which returns a Status; aborted when the job was given up.
  template <class Look>
  Status look_for(std::int64_t time_ns, Look look) const;
  /// Errors: aborted when the job was given up.
  [[nodiscard]] Status check_abort() const;

 private:
  /// Nanoseconds of one round trip, over a batch. By runner 0 and `other`. A batch that takes long ends the probe,
  /// whose last bounce has the number `last`.
  [[nodiscard]] Result<double> bounce(int other, std::uint64_t last);
  /// The median of some batches, on all runners.
  [[nodiscard]] Result<double> round_trip(int other);
  /// What this runner has just written on its board is for the others.
  void tell(Exchange::Part part) const { options_.exchange->tell(board_, options_.runner, part); }
  /// A turn of a waiting loop, by its number.
  void relax(int turn) const;
  /// Polls `is_done` until it holds, with the deadline.
  template <class Predicate>
  Status wait_until(Predicate is_done, const char* what, int whom);

  [[nodiscard]] const std::vector<int>& places() const {
    return options_.places.empty() ? options_.ranks : options_.places;
  }

  [[nodiscard]] bool are_on_one_machine(int runner, int other) const {
    const std::vector<int>& machines = options_.exchange->machines();
    return machines.empty() || machines[static_cast<std::size_t>(runner)] == machines[static_cast<std::size_t>(other)];
  }
  /// On which another runner's lines and pages are seen.
  [[nodiscard]] Board seen(int runner) const { return options_.exchange->seen(board_, runner); }

  Board board_;
  RunnerOptions options_;
  Clocks clocks_;
  std::optional<ClockEstimate> first_estimate_, last_estimate_, estimate_before_;
  std::uint64_t exchanges_ = 0;
  std::uint64_t starts_ = 0;
  std::uint64_t rounds_ = 0;      ///< of barriers
  std::int64_t slack_times_ = 1;  ///< that instants are announced further ahead
  std::uint64_t bounces_ = 0;
  std::optional<std::int64_t> stood_ns_;  ///< of Board::stood_ns, at the last take_stood
  std::uint32_t case_index_ = 0;
  bool is_resting_ = false;
};

// Inline, since what is timed waits in it.
template <class Look, class LookAround>
[[gnu::always_inline]] inline Status Runner::poll(Look look, LookAround look_around) const {
  constexpr int kTurnsBetweenChecks = 256;
  for (int turn = 1;; ++turn) {
    TUTTI_ASSIGN_OR_RETURN(const Turn came_to, look());
    if (came_to == Turn::done) return {};
    if (came_to == Turn::idle) relax(turn);
    if (turn % kTurnsBetweenChecks != 0) continue;
    TUTTI_RETURN_IF_ERROR(check_abort());
    TUTTI_RETURN_IF_ERROR(look_around());
  }
}

template <class Look>
Status Runner::look_for(std::int64_t time_ns, Look look) const {
  const std::int64_t end_ns = monotonic_ns() + time_ns;
  const auto once = [&]() -> Result<Turn> {
    const bool is_over = monotonic_ns() >= end_ns;
    TUTTI_RETURN_IF_ERROR(look());
    return is_over ? Turn::done : Turn::idle;
  };
  return poll(once, [] { return Status(); });
}

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
// A variant is one case made ready on one host: its operation prepared, with guarded buffers for each of the runner's
// ranks. It can be refilled, run once, and verified. It may have several sets of buffers (rotation.h). Refilling,
// running and verifying work on the current set.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/backends/system.h"
#include "harness/measure/computation.h"
#include "harness/measure/rotation.h"
#include "harness/measure/runner.h"
#include "harness/verify/buffers.h"
#include "harness/verify/check.h"
#include "harness/verify/rounding.h"
#include "harness/verify/sight.h"

namespace tutti::harness::measure {

/// When each rank of the runner entered and left an operation, on the host's clock.
struct RankTimes {
  std::vector<std::int64_t> enter_ns;
  std::vector<std::int64_t> leave_ns;
  std::int64_t marking_ns = 0;         ///< before they entered, for the instants on their streams
  std::vector<double> stream_us = {};  ///< how long it took on each rank's stream; empty where there are none
};

/// Of the ranks of the runner, from its entry to its leave.
[[nodiscard]] std::int64_t longest_of(const RankTimes& times);

/// Operations of one case back to back on each rank: a rank begins the next one as soon as it has ended the last. On
/// streams all are posted at once, unless something is to be done after each.
struct Loop {
  int operations = 1;
  /// Each of them is so many, which the library is told of as one group. More than 1 on streams only.
  int grouped = 1;
  /// Not 0: all of them are captured into a graph, and that is launched so often. Only launches are timed. On streams,
  /// and with backends that have graphs.
  int launches = 0;
  bool ends_each = false;                ///< also on a stream one has ended when the next is posted
  std::function<Status()> start = {};    ///< when all is ready, before the time
  std::function<Status()> between = {};  ///< after each operation but the last, within the time; one rank per runner
  /// Where not null: gets, for each rank of the runner, when it left each operation. With `intervals_us`, on streams,
  /// nothing.
  std::vector<std::vector<std::int64_t>>* leaves_ns = nullptr;
  /// Where not null: gets, for each rank with a stream, how long each operation or launch took there, from the end of
  /// the last one on.
  std::vector<std::vector<double>>* intervals_us = nullptr;
  /// Where not null: gets when all was posted; 0 where that was not before the end of what came before.
  std::int64_t* posted_ns = nullptr;
};

/// What verification on this runner found.
struct Damage {
  std::int64_t wrong = 0;    ///< elements, or bytes of a guard
  std::string text;          ///< empty: nothing is wrong
  bool tells_cause = false;  ///< of the text: more than that something was not written
  int wrong_outputs = 0;     ///< ranks
  int wrong_rank = -1;       ///< the first of them
  bool is_late = false;      ///< memory was written after the operation was complete
};

/// One of a rank's two buffers.
enum class Side : std::uint8_t { input, output };
/// Bytes by which a buffer starts after a cache line: 0, 1 or 3 bytes or elements. They are drawn from the case's id,
/// the seed and the rank, so that the id brings them back. In place there is the output only. `takes_elements`: never
/// bytes, since threads of a GPU take whole elements.
[[nodiscard]] std::size_t misalignment_of(const Case& one, std::uint64_t seed, int rank, Side side,
                                          bool takes_elements = false);

class Order;
/// The case as the oracle sees it, of salt 0.
[[nodiscard]] Operation operation_of(const Cell& cell, std::uint64_t seed);

class Variant {
 public:
  struct Request {
    Backend& backend;
    MemorySource memory;
    const Case& instance;
    std::uint64_t seed = 1;
    Conditions conditions = {};
    bool misaligns = false;        ///< buffers start by misalignment_of, not all at a cache line
    bool takes_elements = false;   ///< see misalignment_of
    std::size_t misalignment = 0;  ///< otherwise: bytes by which all of them start after one, or after a page
    bool is_asynchronous = false;  ///< calls that return at once, of references too
    Rotation rotation = {};
    std::span<const std::byte> filler = {};    ///< of the rotation; it outlives the variant
    std::optional<std::uint32_t> number = {};  ///< of the case in its job; empty: the one that the runner has
  };
  /// Errors: those of memory and of the backend.
  [[nodiscard]] static Result<Variant> create(Runner& runner, const Request& request);

  [[nodiscard]] const Case& instance() const { return case_; }
  /// Where the buffers of this runner's ranks lie: the same kind for all.
  [[nodiscard]] const verify::Memory& memory() const { return kind_of(0); }
  [[nodiscard]] std::optional<std::uint32_t> number() const { return number_; }
  /// Says on the board that all ranks of the runner are about to run this case; the runner says when it is done.
  void announce();
  /// Whether calls are posted on streams that have a clock: RankTimes::stream_us.
  [[nodiscard]] bool has_streams() const { return !ends_.empty(); }
  [[nodiscard]] int sets() const { return static_cast<int>(others_.size()) + 1; }
  /// The next set of buffers is the current one; reads a part of the filler.
  void next_set();
  /// Every set is refilled, the current one first.
  void refill_all(std::uint64_t salt);

  /// What refills from here on are made of.
  [[nodiscard]] Values values() const { return shape_.values; }
  void set_values(Values values) { shape_.values = values; }
  /// From here on the case runs on `backend`, in the same buffers. Errors: those of the backend.
  Status prepare(Backend& backend);

  /// Bytes that all ranks of the runner have for this case, without guards.
  [[nodiscard]] std::int64_t buffer_bytes_here() const;
  /// Writes the poison of the last refill again, out of place: an output that is right was written since.
  void poison_outputs();
  /// The same at places of each output that `draw` and the seed choose (places.h), before a call that is timed.
  void poison_places(std::uint64_t draw);
  /// Inputs of `salt`, outputs poisoned with it. In place the input lies over the poison.
  void refill(std::uint64_t salt);
  /// The memory of this case is then in no cache (flush.h). Requires: can_flush.
  void flush_buffers() const;
  /// Posts on all ranks of the runner and polls until all are done. A rank named by `late` posts `late_ns` after the
  /// others.
  Status run(RankTimes& times, std::optional<int> late = std::nullopt, std::int64_t late_ns = 0);
  /// The same on a runner of one rank, which computes after it has posted, in parts between which it makes `calls`
  /// tests.
  Status run_overlapped(RankTimes& times, const Compute& compute, int calls);
  /// The same for a loop: `times` are those of its first entry and its last leave. The deadline is each operation's.
  /// Where several end without a sign, as within a graph, they have one, and a hundred times what they are known to
  /// take.
  Status run_loop(RankTimes& times, const Loop& loop);
  /// `rounds` operations back to back on every rank of a runner that has them all, each rank's steps when `order` says
  /// so. A rank verifies its result and refills its buffers as soon as its call has returned. Errors: as of run;
  /// timeout where no rank can go on.
  [[nodiscard]] Result<Damage> run_simulated(Order& order, int rounds);
  /// Of the memory that each of the runner's ranks has for this case, guards and all.
  [[nodiscard]] std::vector<std::uint64_t> fingerprints() const;
  /// Looks at the completed operation again and again for `time_ns`, as a rank that waits for others does.
  Status linger(std::int64_t time_ns);
  /// Writes guards again that were damaged.
  void restore_guards();
  /// Checks outputs, inputs and guards of all ranks of the runner against the last refill.
  [[nodiscard]] Damage verify(const Sight& sight = {}) const;
  /// Of the result on random values of rank `index` of the runner: what is not within its bound, and how far `most`
  /// elements of each block are from the exact ones. Requires: results that are rounded, a rank that has some.
  [[nodiscard]] Damage verify_rounding(std::size_t index, Count most, Accuracy& accuracy) const;
  /// The result of rank `index` of the runner, without guards; empty where the rank has none.
  [[nodiscard]] std::vector<std::byte> result_bytes(std::size_t index) const;
  /// Of the results of each of the runner's ranks, without guards; 0 where the rank has no result.
  [[nodiscard]] std::vector<std::uint64_t> result_fingerprints() const;

 private:
  /// Instants on each rank's stream around what is timed.
  Status reserve_ends();
  Status mark_ends() const;
  /// The first ones.
  Status mark_begin(RankTimes& times) const;
  /// Requires: all calls are complete.
  Status read_ends(RankTimes& times) const;

  struct Memory {
    std::optional<GuardedBuffer> input;  ///< empty in place
    GuardedBuffer output;                ///< in place the larger of both, which holds the other
  };
  struct Set {
    std::vector<Memory> memory;
    std::unique_ptr<Prepared> prepared;
    std::uint64_t salt = 0;
  };
  Variant(Runner& runner, Case one, std::uint64_t seed);
  void take_next_set();
  Status allocate(const Request& request);
  class LoopOnRunner;
  class Simulated;
  void refill_rank(std::size_t index);
  /// As verify, for the ranks [first, end) of the runner.
  [[nodiscard]] Damage verify_ranks(std::size_t first, std::size_t end, const Sight& sight = {}) const;
  /// Of those ranks; outputs on one device are compared in one pass.
  [[nodiscard]] std::vector<CheckResult> verify_outputs(const Operation& operation, std::size_t first,
                                                        std::size_t end) const;
  /// The error of the first rank that has not left.
  [[nodiscard]] Status overdue(const RankTimes& times) const;
  /// That of an operation which began at `begin_ns`.
  [[nodiscard]] std::int64_t deadline_after(std::int64_t begin_ns) const;
  [[nodiscard]] std::span<std::byte> input_of(std::size_t index) const;
  [[nodiscard]] std::span<std::byte> output_of(std::size_t index) const;
  /// Of the buffers of a rank.
  [[nodiscard]] verify::Memory& kind_of(std::size_t index) const { return memory_[index].output.kind(); }
  /// Whether the input is all of the memory: in place, where it is no smaller than the output.
  [[nodiscard]] bool is_covered(std::size_t index) const;
  [[nodiscard]] InputSpec spec_of(std::size_t index) const;
  /// The input of a rank, all of it or, in place, what does not belong to the output, is as it was filled.
  [[nodiscard]] CheckResult verify_input(const Operation& operation, std::size_t index) const;
  /// `elements` from `first` on of the memory that holds both buffers in place.
  [[nodiscard]] std::span<std::byte> part_of(std::size_t index, Count first, Count elements) const;

  Runner* runner_;
  Case case_;
  std::uint64_t seed_;
  bool is_asynchronous_ = false;
  std::optional<std::uint32_t> number_;
  Operation shape_;
  // Of the current set.
  std::uint64_t salt_ = 0;
  std::vector<Memory> memory_;
  std::unique_ptr<Prepared> prepared_;

  std::int64_t took_ns_ = 0;  ///< an operation, when it was last run; 0: it was not

  std::vector<std::unique_ptr<verify::Instants>> ends_;  ///< by rank of the runner; empty: nothing is on their streams

  std::deque<Set> others_;  ///< in their order, after the current one
  std::span<const std::byte> filler_;
  std::size_t filler_read_ = 0;  ///< bytes, of this round
};

}  // namespace tutti::harness::measure

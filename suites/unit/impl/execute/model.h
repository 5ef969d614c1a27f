// SPDX-License-Identifier: Apache-2.0
// A model of the memory that ranks share, small enough to try every interleaving. The step logic that CPU ranks and GPU
// kernels use (impl/execute/step.h) walks its machine, one atomic action at a time. An action is the load or store of a
// flag, of a slot's header or of a counter. It may also be the reading or writing of the data of one operand on one
// rank. Which rank acts next is the explorer's choice (explorer.h).
//
// The rules are those of CpuMachine and of Engine, said again. They say when a slot is free and when it is full, in
// which order data, header and counters are stored, and when a generation may be used. A `Fault` breaks one of them.
//
// Stores may be delayed: then a store reaches the others at any later moment, and only a release waits for the stores
// before it.
//
// Ranks may lie on hosts. What one rank writes and a rank of another host reads has a copy at the reader, which a link
// of that ordered pair fills in (model_links.h). Messages of a link arrive in order, those of two links in any order,
// at any later moment: the explorer's choice too.
//
// What is wrong is seen where it happens. Every cell of scratch, line and slot carries the number of the operation, or
// slice, that it was written for, and each reader compares it. A rank's input changes as soon as its call has returned,
// as a caller may change it: a late reader has wrong data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "impl/execute/step.h"
#include "impl/schedule/bind.h"

namespace tutti::model {

enum class Fault : std::uint8_t {
  none,
  publishes_before_write,   ///< a slot's header is stored before its payload
  consumes_before_read,     ///< a slot is given back before it is read
  counts_a_slot_too_few,    ///< of those in use: one more seems free
  reuses_without_wait,      ///< a generation is used again without a look at the others' completions
  credits_all_generations,  ///< a rank that has heard everybody in operation s starts s + K, not s + K/2
  tells_before_read,        ///< "complete" is stored before the operation's steps
  never_tells,              ///< that an operation is complete
  publishes_relaxed,        ///< a slot's header is not stored with release
  announces_relaxed,        ///< a flag is not stored with release
  // between hosts
  keeps_counts_when_idle,   ///< counts of released slices go with data or when half of the slots are owed only
  keeps_counts,             ///< and those go with data only
  delivers_header_first,    ///< a slice's header arrives before its payload
  delivers_flag_first,      ///< a flag arrives before the rest of its line
  delivers_out_of_order,    ///< a link's second message may come before its first
  omits_fence,              ///< a flag crosses though not all ranks were heard shortly before
  fences_late,              ///< that all were heard K operations before is taken for K/2
  hears_completion_across,  ///< a generation waits for completions of ranks of other hosts too
};

using Word = std::uint32_t;
using State = std::vector<Word>;

/// A tagged cell: which rank wrote it for what, and 24 bits of data.
constexpr Word kDataBits = 24;
constexpr Word kDataMask = (1U << kDataBits) - 1;

struct World {
  int ranks = 2;
  int generations = 2;  ///< K
  int slots = 1;
  bool delays_stores = false;
  Fault fault = Fault::none;
  int cell_bytes = 4;  ///< what the model takes for one value
  /// [rank]; empty: all on one.
  std::vector<int> hosts;
  bool shares_outputs = false;  ///< some rank addresses another one's output
  /// [operation][rank], one segment each; of int32, and op sum where it reduces.
  std::vector<std::vector<Plan>> plans;
  std::vector<Problem> problems;  ///< [operation]
  std::vector<int> counts;        ///< [operation]: cells per block
  /// [operation]: it starts only where all ranks were heard at most K/2 before. Its flags cross, and it waits for all.
  std::vector<bool> needs_fence;

  static constexpr int kCells = 16;      ///< of a line, of a generation's scratch, of a slot and of an output
  static constexpr int kMostStores = 8;  ///< of a rank on their way
  static constexpr int kRegisters = kCells;
  static constexpr int kCrossing = 4;    ///< cells of a line or a slot that a link carries
  static constexpr int kLinkWords = 20;  ///< of messages on their way between two ranks

  [[nodiscard]] int operations() const { return static_cast<int>(plans.size()); }
  [[nodiscard]] bool is_across(int one, int other) const {
    return !hosts.empty() && hosts[static_cast<std::size_t>(one)] != hosts[static_cast<std::size_t>(other)];
  }
  [[nodiscard]] bool is_alone(int rank) const {
    return !hosts.empty() && std::ranges::count(hosts, hosts[static_cast<std::size_t>(rank)]) == 1;
  }
  /// Whether any rank's flag of an operation goes to another host.
  [[nodiscard]] bool signals_across(const std::vector<Plan>& plans_of_ranks) const;

  // ---- where things are in a State

  [[nodiscard]] int lines(int rank, int generation) const { return (rank * generations + generation) * kLine; }
  [[nodiscard]] int flag(int rank, int generation) const { return lines(rank, generation); }
  [[nodiscard]] int line(int rank, int generation) const { return lines(rank, generation) + 1; }
  [[nodiscard]] int references(int rank, int generation) const { return line(rank, generation) + kCells; }
  [[nodiscard]] int scratch(int rank, int generation) const { return references(rank, generation) + 1; }
  [[nodiscard]] int completion(int rank) const { return lines(ranks, 0) + rank; }
  [[nodiscard]] int output(int rank) const { return completion(ranks) + rank * kCells; }
  [[nodiscard]] int channel(int from, int to) const {
    return output(ranks) + (from * ranks + to) * (2 + slots * (1 + kCells));
  }
  [[nodiscard]] int consumed(int from, int to) const { return channel(from, to); }
  /// Slices that were read: nobody looks at it but the model.
  [[nodiscard]] int read(int from, int to) const { return channel(from, to) + 1; }
  [[nodiscard]] int header(int from, int to, Word slot) const {
    return channel(from, to) + 2 + static_cast<int>(slot) * (1 + kCells);
  }
  [[nodiscard]] int payload(int from, int to, Word slot) const { return header(from, to, slot) + 1; }
  [[nodiscard]] int seat(int rank) const { return channel(ranks, 0) + rank * seat_words(); }
  [[nodiscard]] int seat_words() const { return kSeat + 3 * ranks + kRegisters + 3 * kMostStores; }

  // ---- of an ordered pair of ranks of two hosts

  [[nodiscard]] int link(int from, int to) const {
    return seat(ranks) + (from * ranks + to) * (4 + kLinkWords + (generations + slots) * (1 + kCrossing));
  }
  /// What is on its way: as many words as the first one says.
  [[nodiscard]] int on_the_way(int from, int to) const { return link(from, to); }
  /// Slices from `to` that `from` has released: what it has told of them, and what `to` knows.
  [[nodiscard]] int told_count(int from, int to) const { return link(from, to) + 1 + kLinkWords; }
  [[nodiscard]] int count_copy(int from, int to) const { return told_count(from, to) + 1; }
  /// Slices of `from` that have arrived.
  [[nodiscard]] int arrived(int from, int to) const { return count_copy(from, to) + 1; }
  /// The line of `from`, and a slot that it has filled, as `to` sees them: a flag or a header, then cells.
  [[nodiscard]] int line_copy(int from, int to, int generation) const {
    return arrived(from, to) + 1 + generation * (1 + kCrossing);
  }
  [[nodiscard]] int slot_copy(int from, int to, Word slot) const {
    return line_copy(from, to, generations + static_cast<int>(slot));
  }
  [[nodiscard]] int words() const { return hosts.empty() ? seat(ranks) : link(ranks, 0); }

  static constexpr int kLine = 1 + kCells + 1 + kCells;
  enum SeatWord { operation, stage, at, cursor, actions, free_until, heard_until, stores, kSeat };
  enum Stage : Word { to_start, walking, to_tell };
};

/// Element `index` of the input of `rank` for operation `number`: a byte of its own for each rank, so that a sum says
/// which ranks are in it.
inline Word input_element(int rank, Word number, int index) {
  return (1 + static_cast<Word>(index) + 16 * number) << (8U * static_cast<unsigned>(rank));
}
constexpr Word kPoison = 0xabcdef;

/// One rank's view of a state, and the Machine that `advance` asks for. Takes one action.
class ModelMachine {
 public:
  ModelMachine(const World& world, State& state, int rank)
      : world_(world), state_(state), rank_(rank), seat_(world.seat(rank)) {}

  /// Takes the rank's next action; false where it waits, and the state is as it was. See violation().
  bool act();
  /// Lets a store of the rank reach the others; false where it may not, or no store has that index.
  bool commit(Word index);
  /// Takes the next message of the link from that rank; false where there is none. `index`: 1 for the one after it.
  bool deliver(int from, Word index = 0);
  /// What a rank does that waits: it tells the counts that it owes. False where it owes none, or where it has nothing
  /// to wait for. Requires: act() was false.
  bool idle();
  [[nodiscard]] Word stores() const { return at(World::stores); }
  [[nodiscard]] bool is_done() const { return at(World::operation) > static_cast<Word>(world_.operations()); }
  /// The action touched nothing that another rank looks at: no other order of it matters.
  [[nodiscard]] bool was_local() const { return was_local_; }
  /// Empty, or what this action showed to be wrong.
  [[nodiscard]] const std::string& violation() const { return violation_; }

  // ---- what step.h asks for

  bool heard(int rank, std::uint16_t phase) {
    if (is_past()) return true;
    if (!is_next(true)) return false;
    const Word flag = load(flag_of(rank));
    is_waiting_ = flag < (number() << 16U | phase);
    if (is_across(rank) && flag >> 16U > number()) fail("hears a flag that was overwritten");
    return !is_waiting_;
  }
  void announce(const PlanOp& op, const PlanOperand* operand) {
    if ((op.marks & mark_exposes) != 0 && takes()) store(world_.references(rank_, generation()), number());
    if (!takes()) return;
    check_generation();
    store(world_.flag(rank_, generation()), number() << 16U | op.phase, world_.fault != Fault::announces_relaxed);
    if (!world_.hosts.empty()) announce_across(op, operand->ranks);
  }
  bool channels_ready(const PlanOp& op, const PlanOperand* operand);
  void move(const PlanOp& op, const PlanOperand* operand);
  void close_channels(const PlanOp& op, const PlanOperand* operand);

 private:
  /// What the first call after the action was.
  enum class After : std::uint8_t { nothing, a_wait, a_step };

  [[nodiscard]] Word& at(int word) { return state_[static_cast<std::size_t>(seat_ + word)]; }
  [[nodiscard]] Word at(int word) const { return state_[static_cast<std::size_t>(seat_ + word)]; }
  [[nodiscard]] Word& sent(int peer) { return at(World::kSeat + peer); }
  [[nodiscard]] Word& received(int peer) { return at(World::kSeat + world_.ranks + peer); }
  [[nodiscard]] Word& consumed_seen(int peer) { return at(World::kSeat + 2 * world_.ranks + peer); }
  [[nodiscard]] Word& register_(int cell) { return at(World::kSeat + 3 * world_.ranks + cell); }
  [[nodiscard]] Word* store_at(Word index) {
    return &at(World::kSeat + 3 * world_.ranks + World::kRegisters + 3 * static_cast<int>(index));
  }

  [[nodiscard]] Word number() const { return at(World::operation); }
  [[nodiscard]] int generation() const { return static_cast<int>(number()) % world_.generations; }
  [[nodiscard]] const Plan& plan() const { return world_.plans[number() - 1][static_cast<std::size_t>(rank_)]; }

  // Actions of the walk since its lane was kept are counted: those before the one at hand were taken already.
  [[nodiscard]] bool is_past() {
    ++counted_;
    return counted_ <= at(World::actions);
  }
  [[nodiscard]] bool is_next(bool is_wait) {
    if (!has_acted_) return has_acted_ = true;
    if (after_ == After::nothing) after_ = is_wait ? After::a_wait : After::a_step;
    return false;
  }
  /// Whether this is the action to take, for those that do not wait.
  [[nodiscard]] bool takes() { return !is_past() && is_next(false); }

  // What this rank sees of another one: the place itself, or the copy that it has (model_links.h).
  [[nodiscard]] bool is_across(int rank) const { return world_.is_across(rank, rank_); }
  [[nodiscard]] int flag_of(int rank) const;
  [[nodiscard]] int cell_of_line(int rank, int cell);
  [[nodiscard]] int count_of(int rank) const;
  [[nodiscard]] int header_of(int rank, Word slot) const;
  [[nodiscard]] int cell_of_slot(int rank, Word slot, int cell) const;
  /// Of what does not cross.
  void demand_near(int rank, Space space);
  void demand_crossing(int cell);

  void announce_across(const PlanOp& op, RankSet to);
  void publish_across(int peer);
  void release_across(int peer, Word count);
  bool tell_count(int peer, Word count);
  void push(int peer, std::span<const Word> message);
  /// A part of a message, of those that have two.
  void take_slice(int from, Word slice, bool is_header);
  void take_count(int from, Word count);
  void take_line(int from, std::span<const Word> message, bool is_flag);

  bool start();
  bool walk();
  void tell();
  void return_from_call();

  [[nodiscard]] Word load(int address);
  void store(int address, Word value, bool releases = false);
  void fail(std::string what) {
    if (violation_.empty()) violation_ = fmt::format("rank {}, operation {}: {}", rank_, number(), what);
  }
  void check_generation();
  void check_output();
  void check_reference(int rank);
  void publish(int peer);
  void consume(int peer);
  void count_as_read(int peer);
  [[nodiscard]] bool is_private(const PlanOperand& operand, bool is_written) const;
  [[nodiscard]] Word read_cell(const PlanOperand& operand, int rank, int cell);
  void write_cell(const PlanOperand& operand, int rank, int cell, Word value);
  [[nodiscard]] Word untagged(Word cell, Word wanted, const char* what);

  const World& world_;
  State& state_;
  int rank_;
  int seat_;
  Word counted_ = 0;
  bool has_acted_ = false;
  bool is_waiting_ = false;
  bool was_local_ = false;
  After after_ = After::nothing;
  std::string violation_;
};

/// Before the first operation.
[[nodiscard]] State initial_state(const World& world);

}  // namespace tutti::model

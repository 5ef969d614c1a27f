// SPDX-License-Identifier: Apache-2.0
// The schedule: what every rank does in a collective, counted in units. It knows no bytes, no dtype and no transport.
//
// A rank's program is a list of steps of three kinds. MOVE computes `every destination <- source [op source ...]`,
// element by element: all sources of an element are read before any destination of it is written. SIGNAL announces a
// phase to a set of ranks. It says which of my memory they may read and write from here until I have waited for a later
// phase of theirs. WAIT waits until ranks have announced a phase. Channels (a FIFO to or from one peer) synchronise by
// themselves: a MOVE into a channel is complete when its source may be overwritten.
//
// Units. A block of the user's buffer is cut into `Shape::units_per_block` units; unit u of the input or output is part
// u mod units_per_block of block u / units_per_block. Scratch has `Shape::scratch_units` units, each with room for the
// largest. One of them is as long as its MOVE's other operands. Where a block is one unit a MOVE may have several.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "impl/collective/collective.h"
#include "impl/schedule/tuning.h"
#include "impl/types/host_device.h"

namespace tutti {

/// The ranks (first + i * stride) mod P for i in [0, n).
struct RankSet {
  int first = 0;
  int stride = 1;
  int n = 1;

  [[nodiscard]] TUTTI_HOST_DEVICE int at(int i, int ranks) const {
    return i == 0 ? first : static_cast<int>((first + static_cast<std::int64_t>(i) * stride) % ranks);
  }
  /// The member after `rank`, without a division. Requires: 0 <= stride < ranks.
  [[nodiscard]] TUTTI_HOST_DEVICE int after(int rank, int ranks) const {
    const int next = rank + stride;
    return next < ranks ? next : next - ranks;
  }
  bool operator==(const RankSet&) const = default;
};

[[nodiscard]] inline RankSet only(int rank) { return {.first = rank, .stride = 1, .n = 1}; }
/// All ranks in rank order, so that every rank reduces in the same order.
[[nodiscard]] inline RankSet everyone(int ranks) { return {.first = 0, .stride = 1, .n = ranks}; }
/// All ranks but `rank`, beginning with its successor.
[[nodiscard]] inline RankSet others(int rank, int ranks) {
  return {.first = (rank + 1) % ranks, .stride = 1, .n = ranks - 1};
}

/// The units start + j * stride + [0, length) for j in [0, repeat), all modulo the number of units of the space.
struct UnitSet {
  int start = 0;
  int length = 0;
  int stride = 0;
  int repeat = 1;

  bool operator==(const UnitSet&) const = default;
};

/// How many units `set` has.
[[nodiscard]] inline std::int64_t count_of(const UnitSet& set) {
  return static_cast<std::int64_t>(set.length) * set.repeat;
}
[[nodiscard]] inline UnitSet unit(int index) { return {.start = index, .length = 1}; }
[[nodiscard]] inline UnitSet units(int start, int length) { return {.start = start, .length = length}; }

/// `line` appears in plans only: scratch that binding placed in the flag's own cache line.
enum class Space : std::uint8_t { input, output, scratch, channel, line };

/// Memory of a set of ranks (the same units on each), or the channel to (destination) or from (source) one peer.
struct Operand {
  Space space = Space::input;
  RankSet ranks;
  UnitSet units;  ///< unused for a channel: its length is the other operands'

  bool operator==(const Operand&) const = default;
};

[[nodiscard]] inline Operand input(int rank, UnitSet set) {
  return {.space = Space::input, .ranks = only(rank), .units = set};
}
[[nodiscard]] inline Operand output(int rank, UnitSet set) {
  return {.space = Space::output, .ranks = only(rank), .units = set};
}
[[nodiscard]] inline Operand scratch(int rank, UnitSet set) {
  return {.space = Space::scratch, .ranks = only(rank), .units = set};
}
[[nodiscard]] inline Operand channel(int peer) { return {.space = Space::channel, .ranks = only(peer), .units = {}}; }
/// The same operand on a set of ranks: `on(everyone(P), input(r, unit(r)))`.
[[nodiscard]] inline Operand on(RankSet ranks, Operand operand) {
  operand.ranks = ranks;
  return operand;
}

/// What a SIGNAL lets each rank t of its set touch of my `space`: `units` shifted by t * per_target units.
struct Exposure {
  Space space = Space::input;
  UnitSet units;
  int per_target = 0;

  [[nodiscard]] bool is_empty() const { return units.length == 0; }
  bool operator==(const Exposure&) const = default;
};

enum class Verb : std::uint8_t { move, signal, wait };

/// A list of at most `N` operands; a vector without memory of its own, so that steps are plain values. What is beyond
/// `size` is never set nor copied: most steps have one operand on each side.
template <int N>
struct Operands {
  union {
    std::array<Operand, N> items;
  };
  int size = 0;

  Operands() {}  // NOLINT(modernize-use-equals-default): a union has no default
  Operands(std::initializer_list<Operand> list) { append(list.begin(), list.end()); }
  Operands(const Operands& other) { append(other.begin(), other.end()); }
  Operands& operator=(const Operands& other) {
    if (this != &other) {
      size = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  ~Operands() = default;

  void push_back(const Operand& operand) { std::construct_at(items.data() + size++, operand); }
  [[nodiscard]] const Operand* begin() const { return items.data(); }
  [[nodiscard]] const Operand* end() const { return items.data() + size; }
  bool operator==(const Operands& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  void append(const Operand* from, const Operand* end) {
    for (; from != end; ++from) push_back(*from);
  }
};

struct Step {
  Verb verb = Verb::move;
  Operands<4> destinations;  ///< MOVE
  Operands<4> sources;       ///< MOVE; reduced in the order written, a set in its own order
  bool is_final = false;  ///< MOVE: completes its output units (avg divides here); exactly one per reduced output unit
  /// MOVE through a channel: takes turns with the next step, which is one too. Of such a chain the first slices of
  /// every MOVE are done, then the next ones of every MOVE, and so on. A turn has as many slices of each as the slots
  /// allow. A MOVE that has run out of slices is passed over. A send and a receive in turn need one slot each, of any
  /// length.
  bool in_turn_with_next = false;
  /// MOVE of channels alone, or of scratch where a block has several units: whose length it has; else empty.
  Operand as_long_as;
  /// SIGNAL, WAIT: to or for which ranks. A set may hold the rank itself, where it signals before it waits.
  RankSet ranks;
  int phase = 0;   ///< SIGNAL, WAIT: >= 1, rising in program order
  Exposure read;   ///< SIGNAL
  Exposure write;  ///< SIGNAL
  /// SIGNAL, WAIT: only ends a read exposure. Where binding stages that exposure (a copy in scratch, protected by its
  /// generation), both ends drop the step.
  bool only_closes_reads = false;

  bool operator==(const Step&) const = default;
};

/// Units that a MOVE moves: those of its operands in memory, or as many as it states.
[[nodiscard]] inline std::int64_t length_of(const Step& step) {
  std::int64_t length = -1;
  for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
    for (const Operand& operand : *list) {
      if (operand.space != Space::channel && count_of(operand.units) > length) length = count_of(operand.units);
    }
  }
  return length < 0 ? count_of(step.as_long_as.units) : length;
}

[[nodiscard]] inline Step move(const Operands<4>& destinations, const Operands<4>& sources) {
  return {.verb = Verb::move, .destinations = destinations, .sources = sources};
}
/// The same of operands that are written out: they are put into the step at once.
[[nodiscard]] inline Step move(std::initializer_list<Operand> destinations, std::initializer_list<Operand> sources) {
  Step step;
  for (const Operand& operand : destinations) step.destinations.push_back(operand);
  for (const Operand& operand : sources) step.sources.push_back(operand);
  return step;
}
[[nodiscard]] inline Step final_move(const Operands<4>& destinations, const Operands<4>& sources) {
  Step step = move(destinations, sources);
  step.is_final = true;
  return step;
}
[[nodiscard]] inline Step final_move(std::initializer_list<Operand> destinations,
                                     std::initializer_list<Operand> sources) {
  Step step = move(destinations, sources);
  step.is_final = true;
  return step;
}
[[nodiscard]] inline Step in_turn(Step step) {
  step.in_turn_with_next = true;
  return step;
}
/// Sends on to rank `to` what arrives from rank `from`, a message as long as `as_long_as`, without keeping it.
[[nodiscard]] inline Step relay(int to, int from, Operand as_long_as) {
  Step step = move({channel(to)}, {channel(from)});
  step.as_long_as = as_long_as;
  return step;
}
[[nodiscard]] inline Step signal(RankSet ranks, int phase, Exposure read = {}, Exposure write = {}) {
  return {.verb = Verb::signal, .ranks = ranks, .phase = phase, .read = read, .write = write};
}
[[nodiscard]] inline Step wait(RankSet ranks, int phase) {
  return {.verb = Verb::wait, .ranks = ranks, .phase = phase};
}
/// A SIGNAL or WAIT that only ends a read exposure.
[[nodiscard]] inline Step closing_reads(Step step) {
  step.only_closes_reads = true;
  return step;
}

/// Sizes that binding needs, all functions of the problem alone.
struct Shape {
  int units_per_block = 1;  ///< the smallest number that the algorithm needs
  int scratch_units = 0;
  int largest_message = 0;     ///< units of the longest MOVE through a channel; 0: no channels
  bool exposes_input = false;  ///< some rank's SIGNAL exposes its input; it gets a mirror in scratch where staged
  bool exposes_output = false;
};

/// What a schedule costs, as a formula. The prover derives the same numbers from the steps and demands equality, which
/// also catches a doubled step or a late signal that leave the result right.
struct Cost {
  std::int64_t steps = 0;     ///< steps of this rank's program
  std::int64_t messages = 0;  ///< MOVEs of this rank into a channel, per channel
  std::int64_t units = 0;     ///< units this rank moves into channels and over remote operands
  std::int64_t depth = 0;     ///< of the problem: the longest chain of MOVEs and of transfers between ranks

  bool operator==(const Cost&) const = default;
};

/// Whether every rank's steps are rank 0's, taken there by the library, and how (turning.h).
enum class Turning : std::uint8_t { none, around, columns };

/// All ranks' programs, by random access: a generator's, or steps made by hand in a test. Pure.
struct Schedule {
  Problem problem;
  std::string name;
  Shape shape;
  std::function<int(int rank)> step_count;
  std::function<Step(int rank, int index)> step;
  std::function<Cost(int rank)> cost;
  std::function<int(int slices)> least_slots;  ///< channel slots needed when a message is cut into this many slices
  bool synchronises = false;                   ///< no rank finishes before every rank has started
  bool stages_in_place = false;                ///< in place, exposed inputs are staged as if buffers were private
  bool takes_counts = false;                   ///< right for blocks of different lengths: carries the v form as well
  Turning turning = Turning::none;             ///< of `step`: whoever gives it another one resets this
  Tuning tuning = {};                          ///< how its plans are made and run
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// What the proofs in units share: steps as they are, without bytes and plans. A
// message is one slice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/schedule/schedule.h"

namespace tutti::steps {

/// Which form of the schedule is proved.
struct Form {
  int slots = 1;  ///< of each channel
  bool is_in_place = false;
};

inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}
/// What the input units `unit` of the ranks [first, end) are worth together.
/// The worth of one is the difference of two random numbers that belong to its
/// ends. The P differences are independent of each other, as P random numbers
/// would be: so sums modulo 2^64 are equal where their terms are.
inline std::uint64_t input_values(int first, int end, int unit) {
  const auto at = [unit](int rank) {
    return mix(static_cast<std::uint64_t>(rank) << 32U | static_cast<std::uint32_t>(unit));
  };
  return at(end) - at(first);
}
inline std::uint64_t input_value(int rank, int unit) { return input_values(rank, rank + 1, unit); }
/// What an output is worth that is made of these inputs, where `unit` is
/// counted in the inputs.
inline std::uint64_t sum_of_inputs(const Origin& origin, int unit) {
  return input_values(origin.first, origin.last + 1, unit);
}

/// The tree of operations of two values, blind to their order; after the store
/// that ends a reduction, or divides.
inline std::uint64_t tree_of(std::uint64_t a, std::uint64_t b) { return mix(std::min(a, b) ^ mix(std::max(a, b))); }
inline std::uint64_t tree_of_input(int rank) { return mix(~static_cast<std::uint64_t>(rank)); }
/// After a MOVE: the store that ends a reduction rounds, and `final` divides. A copy leaves the tree as it is.
inline std::uint64_t tree_of_move(std::uint64_t tree, bool is_rounded, bool is_final) {
  if (is_rounded) tree = mix(tree + 1);
  return is_final ? mix(tree + 2) : tree;
}

/// What a unit holds.
struct Sum {
  std::uint64_t sum = 0;
  int finals = kUnwritten;  ///< times it was made final
  int first = 0;            ///< the ranks that were reduced, one after the other from this one ...
  int ranks = 0;            ///< ... so many; kDisordered: in another order
  std::uint64_t tree = 0;   ///< of operations

  static constexpr int kUnwritten = -1;
  static constexpr int kDisordered = -1;

  /// That of an input unit.
  static Sum of_input(int rank, int unit) {
    return {.sum = input_value(rank, unit), .finals = 0, .first = rank, .ranks = 1, .tree = tree_of_input(rank)};
  }
  /// Nothing yet, for `reduce`.
  static Sum nothing() { return {.sum = 0, .finals = 0, .first = 0, .ranks = 0, .tree = 0}; }

  void reduce(const Sum& next) {
    sum += next.sum;
    finals += next.finals;
    if (ranks == 0) {
      first = next.first;
      ranks = next.ranks;
      tree = next.tree;
      return;
    }
    ranks = ranks > 0 && next.ranks > 0 && next.first == first + ranks ? ranks + next.ranks : kDisordered;
    tree = tree_of(tree, next.tree);
  }
  [[nodiscard]] bool is_in_order(const Origin& origin) const {
    return first == origin.first && ranks == origin.ranks();
  }
};

/// What a proof in units says of values.
struct ValueLabels {
  std::optional<bool> keeps_order = true;  ///< none: not derived
  std::optional<bool> same_bits = true;
};

inline const char* name_of(Space space) {
  return space == Space::input ? "input" : space == Space::output ? "output" : "scratch";
}
inline bool is_user(Space space) { return space == Space::input || space == Space::output; }

/// Calls f(k, unit) for the k-th unit of `set`, modulo the `count` units of its
/// space.
template <class F>
void for_units(const UnitSet& set, int count, F f) {
  int k = 0;
  for (int j = 0; j < set.repeat; ++j) {
    int unit = static_cast<int>((set.start + static_cast<std::int64_t>(j) * set.stride) % count);
    for (int i = 0; i < set.length; ++i, ++k) {
      f(k, unit);
      if (++unit == count) unit = 0;
    }
  }
}

/// Whether `unit` is one of `set`.
inline bool contains(const UnitSet& set, int unit, int count) {
  const auto from = [&](std::int64_t start) { return ((unit - start) % count + count) % count; };
  if (set.repeat == 1) return from(set.start) < set.length;
  if (set.length == 1 && set.stride > 0 && count % set.stride == 0) {
    const std::int64_t distance = from(set.start);
    if (set.repeat >= count / set.stride) return distance % set.stride == 0;
    return distance % set.stride == 0 && distance / set.stride < set.repeat;
  }
  for (int j = 0; j < set.repeat; ++j) {
    if (from(set.start + static_cast<std::int64_t>(j) * set.stride) < set.length) return true;
  }
  return false;
}

/// What `exposure` shows to `target`.
inline UnitSet shown_to(const Exposure& exposure, int target, int count) {
  UnitSet shown = exposure.units;
  shown.start = static_cast<int>((shown.start + static_cast<std::int64_t>(target) * exposure.per_target) % count);
  return shown;
}

/// In place one buffer is both: where in it the input or the output of `rank`
/// begins, in units.
inline int begin_in_place(const Problem& problem, int units_per_block, int rank, Space space) {
  const int input_after = in_place_block(problem, rank) * units_per_block;
  return std::max(0, space == Space::input ? input_after : -input_after);
}

/// Whether binding drops this destination: it is the only source itself. A MOVE that divides for avg is kept.
inline bool is_copy_onto_itself(const Problem& problem, int units_per_block, const Form& form, const Step& step,
                                const Operand& to) {
  const bool divides = is_reducing(problem.collective) && takes_op(problem.collective, Op::avg) && problem.ranks > 1;
  if (step.is_final && divides) return false;
  const Operand& from = *step.sources.begin();
  if (step.sources.size != 1 || to.space == Space::channel || from.space == Space::channel) return false;
  if (to.ranks.n != 1 || from.ranks.n != 1 || to.ranks.first != from.ranks.first) return false;
  if (to.space == from.space) return to.units == from.units;
  if (!form.is_in_place || !is_user(to.space) || !is_user(from.space)) return false;
  UnitSet there = from.units, here = to.units;
  there.start += begin_in_place(problem, units_per_block, from.ranks.first, from.space);
  here.start += begin_in_place(problem, units_per_block, to.ranks.first, to.space);
  return there == here;
}

/// What is wrong with the memory that one MOVE touches: nothing, where the text
/// is empty.
class Overlaps {
 public:
  Overlaps(const Problem& problem, int units_per_block, const Form& form)
      : problem_(problem), per_block_(units_per_block), form_(form) {}

  /// `units_of(rank, space)` says how many units there are.
  template <class UnitsOf>
  const char* find(const Step& step, std::int64_t length, UnitsOf units_of) {
    int destinations = 0;
    for (const Operand& to : step.destinations) destinations += to.space != Space::channel ? 1 : 0;
    if (destinations == 0 || (length == 1 && (destinations == 1 || are_apart(step, units_of)))) return "";
    for (const Operand& first : step.destinations) {
      for (int i = 0; first.space != Space::channel && i < first.ranks.n; ++i) {
        const int rank = first.ranks.at(i, problem_.ranks);
        marks_.assign(marks_.size(), -1);
        for (const Operand& to : step.destinations) {
          if (touches(to, rank) && !mark(to, rank, units_of(rank, to.space))) return "two destinations overlap";
        }
        for (const Operand& from : step.sources) {
          if (touches(from, rank) && crosses(from, rank, units_of(rank, from.space))) {
            return "a destination overlaps a source partly";
          }
        }
      }
    }
    return "";
  }

 private:
  /// Whether destinations of one unit each, of one rank each, are no two the
  /// same.
  template <class UnitsOf>
  [[nodiscard]] bool are_apart(const Step& step, UnitsOf units_of) const {
    const auto at = [&](const Operand& to) {
      const int rank = to.ranks.first;
      const bool is_aliased = form_.is_in_place && is_user(to.space);
      const int begin = is_aliased ? begin_in_place(problem_, per_block_, rank, to.space) : 0;
      return std::pair(is_aliased ? Space::output : to.space,
                       begin + to.units.start % std::max(1, units_of(rank, to.space)));
    };
    for (const Operand& to : step.destinations) {
      if (to.space == Space::channel) continue;
      if (to.ranks.n != 1) return false;
      for (const Operand* other = step.destinations.begin(); other != &to; ++other) {
        if (other->space == Space::channel || other->ranks.first != to.ranks.first) continue;
        if (at(*other) == at(to)) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool touches(const Operand& operand, int rank) const {
    return operand.space != Space::channel && tutti::contains(operand.ranks, rank, problem_.ranks);
  }
  /// Where a unit is kept: scratch, the input, the output, and in place the one
  /// of the two in the other.
  [[nodiscard]] std::size_t place(Space space, int rank, int unit) {
    const bool is_aliased = form_.is_in_place && is_user(space);
    const int begin = is_aliased ? begin_in_place(problem_, per_block_, rank, space) : 0;
    const auto memory = static_cast<std::size_t>(is_aliased ? Space::output : space);
    const std::size_t at = 3 * static_cast<std::size_t>(begin + unit) + memory;
    if (at >= marks_.size()) marks_.resize(at + 1, -1);
    return at;
  }
  bool mark(const Operand& to, int rank, int count) {
    bool is_free = true;
    for_units(to.units, std::max(1, count), [&](int k, int unit) {
      const std::size_t at = place(to.space, rank, unit);
      is_free = is_free && marks_[at] < 0;
      marks_[at] = k;
    });
    return is_free;
  }
  bool crosses(const Operand& from, int rank, int count) {
    bool is_crossing = false;
    for_units(from.units, std::max(1, count), [&](int k, int unit) {
      const int written = marks_[place(from.space, rank, unit)];
      is_crossing = is_crossing || (written >= 0 && written != k);
    });
    return is_crossing;
  }

  const Problem& problem_;
  int per_block_;
  Form form_;
  std::vector<int> marks_;  ///< by place: which unit of a destination it is; -1: of none
};

}  // namespace tutti::steps

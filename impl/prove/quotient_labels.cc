// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/quotient_labels.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "impl/prove/rank_arcs.h"

namespace tutti {
namespace {

using steps::RankArc;

/// What rank 0's value is, taken by an element: as in steps::Sum.
struct Made {
  int first = 0;
  int ranks = 0;  ///< 0: nothing yet
  std::uint64_t tree = 0;
};

class LabelFinder {
 public:
  LabelFinder(const QuotientNodes& nodes, std::span<const Taken> outputs)
      : of_(nodes), outputs_(outputs), ranks_(nodes.symmetry.ranks()), folds_{0} {}

  steps::ValueLabels find() { return {.keeps_order = keeps_order(), .same_bits = same_bits()}; }

 private:
  static constexpr std::size_t kMostMade = std::size_t{1} << 22U;
  static constexpr std::int64_t kMostLooks = std::int64_t{1} << 22;  ///< at children: about a second
  static constexpr int kMostChildren = 64;                           ///< that are looked at one by one

  [[nodiscard]] const QuotientValues::Node& node(int number) const {
    return of_.nodes[static_cast<std::size_t>(number - of_.inputs)];
  }
  [[nodiscard]] const Taken& child(const QuotientValues::Node& of, int i) const {
    return of_.children[of.first + static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const QuotientValues::Place& place(const QuotientValues::Node& of, int i) const {
    return of_.places[of.first + static_cast<std::size_t>(i)];
  }

  /// Every distinct node of the outputs, on every rank.
  std::optional<bool> keeps_order() {
    std::vector<int> tops;
    for (const Taken& output : outputs_) tops.push_back(output.node);
    std::ranges::sort(tops);
    tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
    for (const int top : tops) {
      for (int rank = 0; rank < ranks_; ++rank) {
        const auto whole = made_of({.node = top, .element = rank});
        if (!whole) return {};
        if (whole->first != 0 || whole->ranks != ranks_) return false;
      }
    }
    return true;
  }

  /// Of a unit that every rank has: all took the value from the same rank, or made it in the same way.
  std::optional<bool> same_bits() {
    if (of_.schedule.problem.collective != Collective::all_reduce) return true;
    const auto units = static_cast<int>(outputs_.size());
    const auto value_at = [&](int rank, int unit) {
      Taken value =
          outputs_[static_cast<std::size_t>(of_.symmetry.unit(Space::output, of_.symmetry.inverse(rank), unit))];
      value.element = of_.symmetry.rank(rank, value.element);
      return value;
    };
    std::size_t looked_at = 0;
    std::vector<bool> is_done(static_cast<std::size_t>(units));
    for (int unit = 0; unit < units; ++unit) {
      if (is_done[static_cast<std::size_t>(unit)]) continue;
      const Taken first = value_at(0, unit);
      bool is_copied = true;
      for (int rank = 0; rank < ranks_; ++rank) {
        if (++looked_at > 4 * kMostMade) return {};
        const Taken value = value_at(rank, unit);
        if (value.node == first.node && value.element == first.element) continue;
        is_copied = false;
        const auto whole = made_of(value), other = made_of(first);
        if (!whole || !other) return {};
        if (whole->tree != other->tree) return false;
      }
      // Where it was made says the same of the units to which this one is taken.
      for (int rank = 0; is_copied && rank < ranks_; ++rank) {
        is_done[static_cast<std::size_t>(of_.symmetry.unit(Space::output, rank, unit))] = true;
      }
    }
    return true;
  }

  /// Without recursion: chains are as long as programs.
  std::optional<Made> made_of(Taken top) {
    open_.assign(1, top);
    std::optional<Made> result;
    while (!open_.empty()) {
      const Taken value = open_.back();
      result = known(value);
      if (!result) {
        if (const int children = node(value.node).count; children <= kMostChildren) looks_ += children;
        if (made_.size() > kMostMade || looks_ > kMostLooks) return {};
        const std::size_t before = open_.size();
        const auto now = make(value);
        if (open_.size() > before) continue;  // its children first
        if (!now) return {};
        result = now;
        made_.emplace(key(value), *now);
      }
      open_.pop_back();
    }
    return result;
  }
  [[nodiscard]] static std::uint64_t key(Taken value) {
    return static_cast<std::uint64_t>(value.node) << 32U | static_cast<std::uint32_t>(value.element);
  }
  [[nodiscard]] std::optional<Made> known(Taken value) const {
    if (value.node < of_.inputs) {
      return Made{.first = value.element, .ranks = 1, .tree = steps::tree_of_input(value.element)};
    }
    const auto found = made_.find(key(value));
    if (found == made_.end()) return {};
    return found->second;
  }

  /// A node of which every child is the input of the rank where it was read.
  [[nodiscard]] bool is_of_inputs(const QuotientValues::Node& of) const {
    for (int i = 0; i < of.count; ++i) {
      if (child(of, i).node >= of_.inputs || child(of, i).element != place(of, i).rank) return false;
    }
    return true;
  }

  /// The node as the rank of the element makes it, in the order of its own step. None, with children in open_: they are
  /// to be known first; else: it cannot be told.
  std::optional<Made> make(Taken value) {
    const QuotientValues::Node& of = node(value.node);
    Made whole;
    bool is_told = true;
    if (of.count > kMostChildren) {
      const auto [found, is_new] = of_inputs_.try_emplace(value.node, false);
      if (is_new) found->second = is_of_inputs(of);
      if (!found->second) return {};
    }
    const Step step = of_.schedule.step(value.element, of.step);
    bool is_waiting = false;
    for (const Operand& from : step.sources) {
      if (of.count > kMostChildren) {
        if (from.ranks.n > 1 && from.ranks.stride != 1) return {};
        steps::for_arcs(from.ranks, ranks_, -1, [&](RankArc arc) { append(whole, arc); });
        continue;
      }
      for (int i = 0; i < from.ranks.n && is_told; ++i) {
        const int found = find(of, value.element, from.space, from.ranks.at(i, ranks_));
        is_told = found >= 0;
        if (!is_told) break;
        Taken part = child(of, found);
        part.element = of_.symmetry.rank(value.element, part.element);
        const auto of_part = known(part);
        if (of_part) {
          append(whole, *of_part);
        } else {
          open_.push_back(part);
          is_waiting = true;
        }
      }
    }
    if (!is_told) return {};
    if (is_waiting) return {};
    whole.tree = steps::tree_of_move(whole.tree, of.count > 1, of.is_final);
    return whole;
  }
  /// The child that the rank of `element` reads at `rank`; -1: there are several, or none.
  [[nodiscard]] int find(const QuotientValues::Node& of, int element, Space space, int rank) const {
    int found = -1;
    for (int i = 0; i < of.count; ++i) {
      if (place(of, i).space != space || of_.symmetry.rank(element, place(of, i).rank) != rank) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }

  static void append(Made& whole, const Made& next) {
    if (whole.ranks == 0) {
      whole = next;
      return;
    }
    const bool follows = whole.ranks > 0 && next.ranks > 0 && next.first == whole.first + whole.ranks;
    whole.ranks = follows ? whole.ranks + next.ranks : steps::Sum::kDisordered;
    whole.tree = steps::tree_of(whole.tree, next.tree);
  }
  /// The inputs of these ranks, one by one.
  void append(Made& whole, RankArc arc) {
    const bool is_from_zero = arc.begin == 0 ? whole.ranks == 0 : is_fold(whole) && whole.ranks == arc.begin;
    if (is_from_zero) {
      whole = {.first = 0, .ranks = arc.end, .tree = fold(arc.end)};
      return;
    }
    for (int rank = arc.begin; rank < arc.end; ++rank) {
      append(whole, {.first = rank, .ranks = 1, .tree = steps::tree_of_input(rank)});
    }
  }
  bool is_fold(const Made& whole) { return whole.ranks > 0 && whole.first == 0 && whole.tree == fold(whole.ranks); }
  /// The tree of the inputs of the first `count` ranks, one by one.
  std::uint64_t fold(int count) {
    while (static_cast<int>(folds_.size()) <= count) {
      const std::uint64_t next = steps::tree_of_input(static_cast<int>(folds_.size()) - 1);
      folds_.push_back(folds_.size() == 1 ? next : steps::tree_of(folds_.back(), next));
    }
    return folds_[static_cast<std::size_t>(count)];
  }

  const QuotientNodes& of_;
  std::span<const Taken> outputs_;
  int ranks_;
  std::vector<std::uint64_t> folds_;  ///< by count
  std::unordered_map<std::uint64_t, Made> made_;
  std::int64_t looks_ = 0;
  std::unordered_map<int, bool> of_inputs_;  ///< by node
  std::vector<Taken> open_;
};

}  // namespace

steps::ValueLabels quotient_labels(const QuotientNodes& nodes, std::span<const Taken> outputs) {
  return LabelFinder(nodes, outputs).find();
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/quotient_values.h"

#include <algorithm>

#include "impl/prove/quotient_labels.h"

namespace tutti {

Taken QuotientValues::of(const std::vector<Term>& terms, bool is_final, int index) {
  if (terms.size() == 1 && !is_final) return terms[0].value;
  Node node{.first = children_.size(),
            .count = static_cast<int>(terms.size()),
            .finals = is_final ? 1 : 0,
            .step = index,
            .is_final = is_final};
  for (const Term& term : terms) {
    node.finals += finals_of(term.value.node);
    children_.push_back(term.value);
    if (is_reducing(problem_.collective)) places_.push_back({.space = term.space, .rank = term.rank});
  }
  nodes_.push_back(node);
  return {.node = inputs_ + static_cast<int>(nodes_.size()) - 1, .element = 0};
}

std::uint64_t QuotientValues::worth_of_input(Taken value) const {
  return steps::input_value(value.element, symmetry_.unit(Space::input, value.element, value.node));
}
/// The sum of the contributions of `top`. Without recursion: chains are as long as programs.
std::uint64_t QuotientValues::worth_of(Taken top) {
  const auto key = [](Taken value) {
    return static_cast<std::uint64_t>(value.node) << 32U | static_cast<std::uint32_t>(value.element);
  };
  if (top.node < inputs_) return worth_of_input(top);
  std::vector<Taken> open{top};
  while (!open.empty()) {
    const Taken value = open.back();
    if (worth_.contains(key(value))) {
      open.pop_back();
      continue;
    }
    const Node& of = node(value.node);
    std::uint64_t sum = 0;
    bool is_ready = true;
    for (int i = 0; i < of.count; ++i) {
      Taken child = children_[of.first + static_cast<std::size_t>(i)];
      child.element = symmetry_.rank(value.element, child.element);
      if (child.node < inputs_) {
        sum += worth_of_input(child);
      } else if (const auto known = worth_.find(key(child)); known != worth_.end()) {
        sum += known->second;
      } else {
        is_ready = false;
        open.push_back(child);
      }
    }
    if (!is_ready) continue;
    worth_.emplace(key(value), sum);
    open.pop_back();
  }
  return worth_.at(key(top));
}

/// Output `unit` is compared where its node was made: at the rank that its element takes back to 0.
void QuotientValues::check_outputs(std::span<const Taken> outputs, Findings& findings) {
  const bool reduces = is_reducing(problem_.collective) && problem_.ranks > 1;
  for (int unit = 0; unit < symmetry_.units(Space::output); ++unit) {
    const Taken value = outputs[static_cast<std::size_t>(unit)];
    if (value.node < 0) {
      findings.add(0, -1, "output unit {} is never written", unit);
      continue;
    }
    const int rank = symmetry_.inverse(value.element);
    const int there = symmetry_.unit(Space::output, rank, unit);
    const Origin origin = origin_of(problem_, rank, there / per_block_);
    const int from = origin.block * per_block_ + there % per_block_;
    if (worth_of({.node = value.node, .element = 0}) != steps::sum_of_inputs(origin, from)) {
      findings.add(0, -1, "output unit {} does not hold what it should{}", unit, difference(value, unit));
    } else if (reduces && finals_of(value.node) != 1) {
      findings.add(0, -1, "output unit {} is made final {} times instead of once", unit, finals_of(value.node));
    }
  }
}

/// `: it lacks the contribution of rank 3`, of rank 0's output; empty where there is too much to look at.
std::string QuotientValues::difference(Taken output, int unit) const {
  constexpr std::size_t kMostTerms = 1U << 22U;
  std::unordered_map<std::uint64_t, int> counts;
  std::vector<Taken> open{output};
  std::size_t looked_at = 0;
  while (!open.empty()) {
    if (++looked_at > kMostTerms) return {};
    const Taken value = open.back();
    open.pop_back();
    if (value.node < inputs_) {
      const int there = symmetry_.unit(Space::input, value.element, value.node);
      ++counts[static_cast<std::uint64_t>(value.element) << 32U | static_cast<std::uint32_t>(there)];
      continue;
    }
    const Node& of = node(value.node);
    for (int i = of.count; i-- > 0;) {
      Taken child = children_[of.first + static_cast<std::size_t>(i)];
      child.element = symmetry_.rank(value.element, child.element);
      open.push_back(child);
    }
  }
  const Origin origin = origin_of(problem_, 0, unit / per_block_);
  const int from = origin.block * per_block_ + unit % per_block_;
  for (int rank = origin.first; rank <= origin.last; ++rank) {
    const auto key = static_cast<std::uint64_t>(rank) << 32U | static_cast<std::uint32_t>(from);
    const auto found = counts.find(key);
    if (found == counts.end()) return fmt::format(": it lacks input unit {} of rank {}", from, rank);
    if (found->second != 1) {
      return fmt::format(": it holds input unit {} of rank {} {} times", from, rank, found->second);
    }
    counts.erase(found);
  }
  if (counts.empty()) return {};
  const std::uint64_t extra = std::min_element(counts.begin(), counts.end())->first;
  return fmt::format(": it holds input unit {} of rank {}", extra & UINT32_MAX, extra >> 32U);
}

steps::ValueLabels QuotientValues::labels(const Schedule& schedule, std::span<const Taken> outputs) const {
  if (!is_reducing(problem_.collective)) return {};
  return quotient_labels({.schedule = schedule,
                          .symmetry = symmetry_,
                          .inputs = inputs_,
                          .nodes = nodes_,
                          .children = children_,
                          .places = places_},
                         outputs);
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/outputs.h"

#include <map>
#include <optional>
#include <utility>

#include "impl/prove/walk.h"

namespace tutti {
namespace {

/// What every byte of output block `block` of `rank` should hold.
template <class Lane>
typename Lane::Value expected(const Lane& lane, const Layout& layout, Op op, int rank, int block) {
  const Origin origin = origin_of(layout.problem(), rank, block);
  const auto distance = [&](int from) {
    return layout.input_block(from, origin.block).offset - layout.output_block(rank, block).offset;
  };
  const auto contribution = [&](int from) {
    typename Lane::Value value = lane.contribution(from);
    if (op == Op::premul_sum) lane.scale(value);
    if (!layout.has_equal_blocks()) lane.shift(value, distance(from));
    return value;
  };
  typename Lane::Value value = contribution(origin.first);
  for (int r = origin.first + 1; r <= origin.last; ++r) lane.combine(value, contribution(r));
  if (layout.has_equal_blocks()) lane.shift(value, distance(origin.first));  // the same for all
  return value;
}

/// The outputs once more, with the contributions themselves instead of their hashes.
class Explanation {
 public:
  Explanation(const PlanSet& set, const Layout& layout)
      : layout_(layout),
        op_(set.plans.front().header().op),
        races_(set, layout, ignored_),
        contents_(set, layout, races_, ignored_) {
    Walk<Contents<ExactLane>>(set, contents_, ignored_).run();
  }

  void explain(int rank, int block, Interval wrong, Findings& findings) {
    const std::string place = is_divided(layout_.problem().collective)
                                  ? fmt::format("{} (block {})", Layout::describe(wrong), block)
                                  : Layout::describe(wrong);
    const auto* const run = contents_.memory(rank, memory_output).find(wrong.begin);
    const ExactLane::Value should = expected(contents_.lane(), layout_, op_, rank, block);
    if (run == nullptr) {
      findings.add(rank, -1, "{} are never written", place);
    } else if (run->value.terms == should.terms) {
      findings.add(rank, -1, "{} are made final {} times instead of once", place, run->value.finals);
    } else {
      findings.add(rank, -1, "{} {}", place, difference(run->value.terms, should.terms, wrong));
    }
  }

 private:
  using Terms = std::vector<ExactLane::Term>;

  /// The term of these bytes, however often scaled; nullptr: none.
  [[nodiscard]] static const ExactLane::Term* find(const Terms& terms, const ExactLane::Term& like) {
    const ExactLane::Term* found = nullptr;
    for (const ExactLane::Term& term : terms) {
      if (term.rank != like.rank || term.delta != like.delta) continue;
      if (found == nullptr || term.scales == like.scales) found = &term;
    }
    return found;
  }

  /// `lack the contribution of rank 5; hold rank 1's contribution 2 times`
  [[nodiscard]] std::string difference(const Terms& is, const Terms& should, const Interval& at) const {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> parts;
    for (const ExactLane::Term& term : should) {
      if (find(is, term) == nullptr) parts.push_back(fmt::format("lack the contribution of rank {}", term.rank));
    }
    const std::size_t missing = parts.size();
    for (const ExactLane::Term& term : is) {
      const ExactLane::Term* const right = find(should, term);
      if (right == nullptr) {
        parts.push_back(fmt::format("hold bytes [{}, {}) of rank {}'s input, which do not belong there",
                                    at.begin + term.delta, at.end + term.delta, term.rank));
      } else if (term.scales != right->scales) {
        parts.push_back(fmt::format("hold the contribution of rank {} multiplied by {} factors instead of {}",
                                    term.rank, term.scales, right->scales));
      } else if (term.count != right->count) {
        parts.push_back(fmt::format("hold the contribution of rank {} {} times", term.rank, term.count));
      }
    }
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t place = i < missing ? i : i - missing;
      if (place < kMost) text += (text.empty() ? "" : "; ") + parts[i];
      if (place == kMost) text += "; ...";
    }
    return text;
  }

  const Layout& layout_;
  Op op_;
  Findings ignored_;
  Races races_;
  Contents<ExactLane> contents_;
};

/// Whether both hold trees of the same shape, in the bytes of one output block.
bool is_same_tree(const Runs<HashLane::Value>& a, const Runs<HashLane::Value>& b, std::int64_t begin,
                  std::int64_t end) {
  for (std::int64_t at = begin; at < end;) {
    const auto* const left = a.find(at);
    const auto* const right = b.find(at);
    if (left == nullptr || right == nullptr || left->value.tree != right->value.tree) return false;
    at = std::min(left->end, right->end);
  }
  return true;
}

}  // namespace

void check_outputs(const PlanSet& set, const Layout& layout, Contents<HashLane>& contents, Labels& labels,
                   Findings& findings) {
  const Problem& problem = layout.problem();
  const Op op = set.plans.front().header().op;
  const bool divides = op == Op::avg && problem.ranks > 1;
  std::optional<Explanation> explanation;
  const bool reduces = is_reducing(problem.collective);
  std::optional<HashLane::Value> reduced;  // what comes of `reduced_from`
  Origin reduced_from{};
  std::map<std::pair<int, int>, int> first_holder;  // of what is reduced, by its last rank and its input block
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const Runs<HashLane::Value>& output = contents.memory(rank, memory_output);
    for (int block = 0; block < output_blocks(problem, rank); ++block) {
      const Block place = layout.output_block(rank, block);
      if (place.bytes == 0) continue;
      const std::int64_t begin = place.offset;
      const std::int64_t end = begin + place.bytes;
      const Origin origin = origin_of(problem, rank, block);
      const bool is_known = reduces && reduced && reduced_from == origin;
      const HashLane::Value should = is_known ? *reduced : expected(contents.lane(), layout, op, rank, block);
      reduced = should;
      reduced_from = origin;
      for (std::int64_t at = begin; at < end;) {
        const auto* const run = output.find(at);
        const std::int64_t next = run != nullptr ? std::min(run->end, end) : output.gap_end(at, end);
        const bool is_right = run != nullptr && run->value.sum == should.sum && (!divides || run->value.finals == 1);
        labels.keeps_order = labels.keeps_order && is_right && run->value.order == should.order;
        if (!is_right) {
          if (!explanation) explanation.emplace(set, layout);
          explanation->explain(rank, block, {.memory = memory_output, .begin = at, .end = next}, findings);
        }
        at = next;
      }
      if (!reduces) continue;
      const int first = first_holder.try_emplace({origin.last, origin.block}, rank).first->second;
      labels.same_bits = labels.same_bits && is_same_tree(contents.memory(first, memory_output), output, begin, end);
    }
  }
}

}  // namespace tutti

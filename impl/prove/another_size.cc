// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/another_size.h"

#include <algorithm>

namespace tutti {
namespace {

class Comparison {
 public:
  Comparison(const PlanSet& set, const PlanSet& other)
      : set_(set), other_(other), size_(set.block_bytes), other_size_(other.block_bytes) {}

  [[nodiscard]] bool holds() const {
    if (size_ <= 0 || other_size_ <= 0 || !set_.blocks.empty() || !other_.blocks.empty()) return false;
    return is_scaled(set_.block_stride, other_.block_stride) && set_.slot_bytes == other_.slot_bytes &&
           std::ranges::equal(set_.plans, other_.plans, [this](const Plan& a, const Plan& b) { return is_same(a, b); });
  }

 private:
  [[nodiscard]] bool is_scaled(std::int64_t bytes, std::int64_t other) const {
    return bytes * other_size_ == other * size_;
  }

  [[nodiscard]] bool is_same(const Plan& a, const Plan& b) const {
    return is_same(a.header(), b.header()) &&
           std::ranges::equal(a.ops(), b.ops(),
                              [&](const PlanOp& x, const PlanOp& y) {
                                return is_same(x, y) && has_same_operands(x, a.operands(), b.operands());
                              }) &&
           std::ranges::equal(a.exposures(), b.exposures(),
                              [this](const PlanExposure& x, const PlanExposure& y) { return is_same(x, y); });
  }

  [[nodiscard]] bool is_same(const PlanHeader& a, const PlanHeader& b) const {
    if (a.op != b.op || a.is_in_place != b.is_in_place || a.synchronises != b.synchronises ||
        a.uses_generation != b.uses_generation || a.uses_channels != b.uses_channels) {
      return false;
    }
    if (a.uses_channels && (size_ > other_size_ || set_.slots != other_.slots)) return false;
    return a.scratch_bytes * other_size_ >= b.scratch_bytes * size_;
  }

  /// All that a proof looks at: which shortcut a MOVE takes depends on its length, and check_plans has judged it.
  [[nodiscard]] bool is_same(const PlanOp& a, const PlanOp& b) const {
    return a.verb == b.verb && a.marks == b.marks && a.phase == b.phase && a.destinations == b.destinations &&
           a.sources == b.sources && a.has_channel == b.has_channel && a.first_operand == b.first_operand &&
           a.step == b.step && is_scaled(a.bytes, b.bytes) && is_scaled(a.rest_bytes, b.rest_bytes);
  }

  [[nodiscard]] bool has_same_operands(const PlanOp& op, std::span<const PlanOperand> a,
                                       std::span<const PlanOperand> b) const {
    const bool is_move = op.verb == Verb::move;
    const std::size_t end = op.first_operand + (is_move ? std::size_t{op.destinations} + op.sources : 1);
    for (std::size_t i = op.first_operand; i < end; ++i) {
      if (a[i].space != b[i].space || a[i].ranks != b[i].ranks || a[i].is_mine != b[i].is_mine) return false;
      if (is_move && (a[i].space == Space::line || !is_scaled(a[i].offset, b[i].offset))) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_same(const PlanExposure& a, const PlanExposure& b) const {
    return a.op == b.op && a.target == b.target && a.space == b.space && a.is_write == b.is_write &&
           a.space != Space::line && is_scaled(a.offset, b.offset) && is_scaled(a.bytes, b.bytes);
  }

  const PlanSet& set_;
  const PlanSet& other_;
  std::int64_t size_;
  std::int64_t other_size_;
};

}  // namespace

bool is_in_another_size(const PlanSet& set, const PlanSet& other) { return Comparison(set, other).holds(); }

}  // namespace tutti

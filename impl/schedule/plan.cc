// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/plan.h"

#include <cstring>

namespace tutti {

Shortcut shortcut_of(const PlanOp& op, std::span<const PlanOperand> operands, Op reduction) {
  const bool computes = (reduction == Op::avg && (op.marks & mark_final) != 0) || (op.marks & mark_scales) != 0;
  if (op.bytes > kLineBytes || op.destinations != 1 || !operands[0].is_mine || computes) return Shortcut::none;
  const auto sources = operands.subspan(1, op.sources);
  if (sources.size() == 1 && sources[0].is_mine) return Shortcut::copy;
  int count = 0;
  for (const PlanOperand& source : sources) {
    if (!source.is_mine && source.space != Space::line) return Shortcut::none;
    count += source.ranks.n;
  }
  return reduction != Op::none && count > 0 && count <= kMostShortcutSources ? Shortcut::reduce : Shortcut::none;
}

bool is_exchange(std::span<const PlanOp> ops) {
  const auto is_short = [](const PlanOp& op) { return op.verb == Verb::move && op.shortcut != Shortcut::none; };
  return ops.size() == 4 && is_short(ops[0]) && ops[1].verb == Verb::signal && ops[2].verb == Verb::wait &&
         is_short(ops[3]);
}

Plan::Plan(PlanHeader header, std::span<const PlanOp> ops, std::span<const PlanOperand> operands,
           std::span<const PlanExposure> exposures) {
  header.ops = static_cast<std::uint32_t>(ops.size());
  header.operands = static_cast<std::uint32_t>(operands.size());
  header.exposures = static_cast<std::uint32_t>(exposures.size());
  const std::size_t bytes = sizeof header + ops.size_bytes() + operands.size_bytes() + exposures.size_bytes();
  block_.resize((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));

  std::byte* cursor = reinterpret_cast<std::byte*>(block_.data());
  const auto append = [&cursor](const void* data, std::size_t size) {
    if (size > 0) std::memcpy(cursor, data, size);
    cursor += size;
  };
  append(&header, sizeof header);
  append(ops.data(), ops.size_bytes());
  append(operands.data(), operands.size_bytes());
  append(exposures.data(), exposures.size_bytes());
}

}  // namespace tutti

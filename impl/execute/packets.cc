// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/packets.h"

#include <algorithm>

namespace tutti {
namespace {

bool is_scratch(const PlanOperand& operand) { return operand.space == Space::scratch || operand.space == Space::line; }
bool is_my_buffer(const PlanOperand& operand) {
  return operand.is_mine && (operand.space == Space::input || operand.space == Space::output);
}

}  // namespace

std::optional<PacketForm> packet_form(const Plan& plan, std::int64_t most_bytes) {
  constexpr std::size_t kLeastOps = 4;
  const std::span<const PlanOp> ops = plan.ops();
  if (ops.size() < kLeastOps || plan.header().uses_channels) return std::nullopt;
  const PlanOp& staging = ops[0];
  const bool is_copy = staging.verb == Verb::move && staging.destinations == 1 && staging.sources == 1 &&
                       (staging.marks & (mark_final | mark_scales)) == 0;
  if (!is_copy || staging.bytes < 1 || staging.bytes > most_bytes) return std::nullopt;
  const PlanOperand& staged = plan.destinations(staging)[0];
  if (!staged.is_mine || !is_scratch(staged) || !is_my_buffer(plan.sources(staging)[0])) return std::nullopt;
  const bool is_told = ops[1].verb == Verb::signal && (ops[1].marks & mark_exposes) == 0 && ops[2].verb == Verb::wait;
  if (!is_told) return std::nullopt;
  for (const PlanOp& op : ops.subspan(3)) {
    if (op.verb != Verb::move || !std::ranges::all_of(plan.destinations(op), is_my_buffer)) return std::nullopt;
    const auto is_there = [&](const PlanOperand& source) {
      return is_my_buffer(source) || (source.space == staged.space && source.offset >= staged.offset &&
                                      source.offset + op.bytes <= staged.offset + staging.bytes);
    };
    if (!std::ranges::all_of(plan.sources(op), is_there)) return std::nullopt;
  }
  return PacketForm{.bytes = staging.bytes, .offset = staged.offset, .space = staged.space};
}

}  // namespace tutti

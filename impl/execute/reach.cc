// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/reach.h"

#include <optional>

namespace tutti {
namespace {

/// The first rank of the set that is behind a link.
std::optional<int> behind_link(const RankSet& set, const PlanHeader& header, Domain& domain) {
  int rank = set.first;
  for (int i = 0; i < set.n; ++i, rank = set.after(rank, header.ranks)) {
    if (rank != header.rank && domain.link(rank) != nullptr) return rank;
  }
  return std::nullopt;
}

const char* memory_named(Space space) {
  if (space == Space::input) return "the input";
  return space == Space::output ? "the output" : "the scratch";
}

}  // namespace

Status check_reach(const PlanView& plan, Domain& domain) {
  const PlanHeader& header = plan.header();
  const auto refused = [&](int rank, const std::string& what) {
    return error(Code::unavailable, "{} shares no memory with {}, and the algorithm {}: name one of channels",
                 domain.name_of(header.rank), domain.name_of(rank), what);
  };
  for (std::uint32_t at = 0; at < header.ops; ++at) {
    const PlanOp& op = plan.ops()[at];
    const PlanOperand* const operands = plan.operands() + op.first_operand;
    if (op.verb == Verb::signal) {
      const auto rank = behind_link(operands->ranks, header, domain);
      if (rank && (op.marks & mark_exposes) != 0) return refused(*rank, "shows it buffers");
      if (rank && !header.synchronises) return refused(*rank, "tells it without waiting for all ranks");
    }
    for (int i = 0; op.verb == Verb::move && i < op.destinations + op.sources; ++i) {
      const PlanOperand& operand = operands[i];
      if (operand.is_mine || operand.space == Space::channel || operand.space == Space::line) continue;
      const auto rank = behind_link(operand.ranks, header, domain);
      if (rank) return refused(*rank, fmt::format("touches {} there", memory_named(operand.space)));
    }
  }
  return {};
}

}  // namespace tutti

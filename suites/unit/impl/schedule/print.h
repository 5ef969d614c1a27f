// SPDX-License-Identifier: Apache-2.0
// Steps and plans as text, so that a test can say literally what it expects:
//   step  OUT[0,2) <- CH(2) op IN[0,2), in turn   SIGNAL {1,2} phase 1, read IN[t]      WAIT {1} phase 1
//   plan  OUT+0 <- CH(2)+0 op IN+0, 128 bytes, opens, closes, slice 128           SIGNAL {1} phase 1, exposes
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "impl/schedule/plan.h"
#include "impl/schedule/schedule.h"

namespace tutti {

inline std::string_view name_of(Space space) {
  static constexpr std::string_view kNames[] = {"IN", "OUT", "SCR", "CH", "LINE"};
  return kNames[static_cast<std::size_t>(space)];
}

inline std::vector<int> members(const RankSet& set, int ranks) {
  std::vector<int> list;
  for (int i = 0; i < set.n; ++i) list.push_back(set.at(i, ranks));
  return list;
}

/// `where` on every rank of the set: nothing behind it for me alone, @r for another, joined by `separator` for several.
inline std::string on_ranks(const std::string& where, const RankSet& set, int rank, int ranks,
                            std::string_view separator) {
  if (set.n == 1 && set.first == rank) return where;
  std::vector<std::string> list;
  for (const int member : members(set, ranks)) list.push_back(fmt::format("{}@{}", where, member));
  return fmt::format("{}", fmt::join(list, separator));
}

inline std::string text_of(const UnitSet& set) {
  return set.length == 1 ? fmt::format("[{}]", set.start) : fmt::format("[{},{})", set.start, set.start + set.length);
}
/// `[4]+[3]+[2]`: the runs of a set that has several, of one-unit blocks on `ranks` ranks.
inline std::string text_of(const UnitSet& set, int ranks) {
  std::vector<std::string> runs;
  for (int j = 0; j < set.repeat; ++j) {
    const int start = set.start + j * set.stride;
    runs.push_back(text_of(units(set.repeat == 1 ? start : start % ranks, set.length)));
  }
  return fmt::format("{}", fmt::join(runs, "+"));
}

inline std::string text_of(const Operand& operand, int rank, int ranks, std::string_view separator) {
  if (operand.space == Space::channel) return fmt::format("CH({})", operand.ranks.first);
  const std::string where = fmt::format("{}{}", name_of(operand.space), text_of(operand.units, ranks));
  if (separator == ", " && operand.ranks.n > 1) {
    return fmt::format("{}@{{{}..{}}}", where, operand.ranks.first, operand.ranks.at(operand.ranks.n - 1, ranks));
  }
  return on_ranks(where, operand.ranks, rank, ranks, separator);
}

inline std::string text_of(std::string_view what, const Exposure& exposure) {
  if (exposure.is_empty()) return {};
  const std::string units = exposure.per_target == 1 && exposure.units == unit(0) ? "[t]" : text_of(exposure.units);
  return fmt::format(", {} {}{}", what, name_of(exposure.space), units);
}

inline std::string text_of(const Step& step, int rank, int ranks) {
  if (step.verb != Verb::move) {
    return fmt::format("{} {{{}}} phase {}{}{}", step.verb == Verb::signal ? "SIGNAL" : "WAIT",
                       fmt::join(members(step.ranks, ranks), ","), step.phase, text_of("read", step.read),
                       text_of("write", step.write));
  }
  std::vector<std::string> destinations, sources;
  for (const Operand& operand : step.destinations) destinations.push_back(text_of(operand, rank, ranks, ", "));
  for (const Operand& operand : step.sources) sources.push_back(text_of(operand, rank, ranks, " op "));
  return fmt::format("{} <- {}{}", fmt::join(destinations, ", "), fmt::join(sources, " op "),
                     step.in_turn_with_next ? ", in turn" : "");
}

/// The steps of one rank.
inline std::vector<std::string> texts_of(const Schedule& schedule, int rank) {
  std::vector<std::string> list;
  for (int i = 0; i < schedule.step_count(rank); ++i) {
    list.push_back(text_of(schedule.step(rank, i), rank, schedule.problem.ranks));
  }
  return list;
}

/// The ops of a plan.
inline std::vector<std::string> texts_of(const Plan& plan) {
  const int rank = plan.header().rank, ranks = plan.header().ranks;
  const auto operands = [&](std::span<const PlanOperand> list, std::string_view separator) {
    std::vector<std::string> texts;
    for (const PlanOperand& operand : list) {
      const std::string where = fmt::format("{}+{}", name_of(operand.space), operand.offset);
      texts.push_back(operand.space == Space::channel ? fmt::format("CH({})+{}", operand.ranks.first, operand.offset)
                                                      : on_ranks(where, operand.ranks, rank, ranks, separator));
    }
    return fmt::format("{}", fmt::join(texts, separator));
  };
  const auto slice_bytes = [&](std::size_t index) {
    while ((plan.ops()[index].marks & mark_opens) == 0) --index;
    std::int64_t bytes = plan.ops()[index].bytes;
    while ((plan.ops()[index].marks & mark_closes) == 0) bytes += plan.ops()[++index].bytes;
    return bytes;
  };
  std::vector<std::string> list;
  for (std::size_t index = 0; index < plan.ops().size(); ++index) {
    const PlanOp& op = plan.ops()[index];
    std::string text;
    if (op.verb == Verb::move) {
      text = fmt::format("{} <- {}, {} bytes", operands(plan.destinations(op), ", "),
                         operands(plan.sources(op), " op "), op.bytes);
    } else {
      text = fmt::format("{} {{{}}} phase {}", op.verb == Verb::signal ? "SIGNAL" : "WAIT",
                         fmt::join(members(plan.ranks(op), ranks), ","), op.phase);
    }
    if ((op.marks & mark_exposes) != 0) text += ", exposes";
    if ((op.marks & mark_final) != 0) text += ", final";
    if ((op.marks & mark_streams) != 0) text += ", streams";
    if ((op.marks & mark_opens) != 0) text += ", opens";
    if ((op.marks & mark_closes) != 0) text += ", closes";
    if (op.has_channel != 0) text += fmt::format(", slice {}", slice_bytes(index));
    list.push_back(std::move(text));
  }
  return list;
}

}  // namespace tutti

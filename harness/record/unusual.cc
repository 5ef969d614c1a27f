// SPDX-License-Identifier: Apache-2.0
#include "harness/record/unusual.h"

#include <fmt/format.h>

#include "harness/cases/conditions.h"

namespace tutti::harness::record {
namespace {

/// What a row says of a condition where that is not as usual.
std::string unusual_field(const Row& row, const Condition& condition) {
  if (condition.told.unusual != nullptr) return condition.told.unusual(row.checked_on);
  const auto field = row.conditions.find(condition.column.name);
  const std::string_view usual = condition.column.type == ConditionColumn::Type::text ? condition.usual : "0";
  if (field == row.conditions.end() || field->second == usual) return {};
  return field->second;
}

}  // namespace

std::vector<Unusual> unusual_conditions(const Row& row) {
  std::vector<Unusual> list;
  for (const Condition& condition : conditions()) {
    const std::string field = unusual_field(row, condition);
    if (field.empty()) continue;
    const ConditionColumn& column = condition.column;
    const std::string_view name = column.name.empty() ? condition.told.column : column.name;
    list.push_back({.column = name,
                    .value = column.unit.empty() ? field : fmt::format("{} {}", field, column.unit),
                    .usual = column.usual,
                    .words = column.words.empty() ? fmt::format("{} {}", name, field)
                                                  : fmt::format(fmt::runtime(column.words), field)});
  }
  // The drop-in programs' -G, -m and -R.
  if (!row.graph.empty()) {
    list.push_back({.column = "graph", .value = row.graph, .usual = "none", .words = "operations of a graph"});
  }
  if (row.grouped) {
    list.push_back({.column = "grouped",
                    .value = fmt::format("{} operations", *row.grouped),
                    .usual = "1 operation",
                    .words = fmt::format("groups of {} operations", *row.grouped)});
  }
  if (!row.registered.empty()) {
    list.push_back({.column = "registered",
                    .value = row.registered,
                    .usual = "none",
                    .words = fmt::format("registered {}", row.registered)});
  }
  // Nobody chose it, and times on another one are others.
  if (!row.gpu.empty()) {
    list.push_back({.column = "gpu", .value = row.gpu, .usual = "none", .words = fmt::format("GPU {}", row.gpu)});
  }
  return list;
}

}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/unusual.h"

#include <fmt/format.h>

#include "harness/cases/sweep.h"

namespace tutti::harness::record {

std::vector<Unusual> unusual_conditions(const Row& row) {
  std::vector<Unusual> list;
  const auto add_other_than = [&](std::string_view usual, std::string_view column, const std::string& value) {
    if (value.empty() || value == usual) return;
    list.push_back({.column = column, .value = value, .usual = usual, .words = fmt::format("{} {}", column, value)});
  };
  add_other_than(to_string(CacheState::hot), "cache", row.cache);
  add_other_than(to_string(Synchronisation::roundtime), "sync", row.sync);
  if (row.skew.value_or(0) > 0) {
    list.push_back({.column = "skew",
                    .value = fmt::format("{} us", *row.skew),
                    .usual = "none",
                    .words = fmt::format("skew {} us (times are from the late rank's entry on)", *row.skew)});
  }
  if (row.overlap_calls) {
    list.push_back({.column = "overlap_calls",
                    .value = fmt::to_string(*row.overlap_calls),
                    .usual = "none",
                    .words = "nonblocking calls"});
  }
  // `every timed; random values`: often, what, and the kind of inputs last (see cell.cc).
  if (row.checked_on.starts_with("every ")) {
    list.push_back(
        {.column = "checked_on", .value = "every", .usual = "sample", .words = "other data in every sample"});
  }
  for (const Values values : {Values::random, Values::special}) {
    const std::string name = fmt::format("{} values", to_string(values));
    if (!row.checked_on.ends_with("; " + name)) continue;
    list.push_back({.column = "checked_on", .value = name, .usual = "exact values", .words = name});
  }
  return list;
}

}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/plan.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "harness/record/launches.h"

namespace tutti::harness::gate {
namespace {

constexpr std::string_view kAuto = "auto";

/// Everything but the sizes.
std::vector<std::string> arguments_of(const Case& one) {
  std::vector<std::string> words{"run", std::string(to_string(one.collective))};
  const auto add = [&words](const char* option, std::string_view value) {
    words.emplace_back(option);
    words.emplace_back(value);
  };
  add("--ranks", fmt::to_string(one.ranks));
  add("--ranks-as", to_string(one.ranks_as));
  if (one.transport != usual_transport(one.ranks_as)) add("--transports", one.transport);
  add("--cadence", to_string(one.cadence));
  add("--algorithms", one.algorithm);
  if (!has_data(one.collective)) return words;
  add("--dtypes", dtype_name(one));
  if (one.op != Op::none) add("--ops", to_string(one.op));
  if (is_rooted(one.collective)) add("--roots", fmt::to_string(one.root));
  add("--placement", placement_name(one));
  add("--buffers", buffers_name(one));
  if (has_counts(one.collective)) add("--counts", counts_name(one));
  if (has_window(one.collective)) add("--window", fmt::to_string(one.pairing.window));
  if (has_pairs(one.collective)) add("--pairs", pair_name(one));
  return words;
}

}  // namespace

std::vector<CellGroup> groups_of(std::span<const Case> cases) {
  std::vector<CellGroup> groups;
  for (const Case& one : cases) {
    const auto alike = [&](const CellGroup& group) { return arguments_of(group.cases.front()) == arguments_of(one); };
    const auto group = std::ranges::find_if(groups, alike);
    if (group == groups.end()) {
      groups.push_back({.cases = {one}});
    } else {
      group->cases.push_back(one);
    }
  }
  return groups;
}

std::vector<std::string> run_arguments(const CellGroup& group) {
  std::vector<std::string> words = arguments_of(group.cases.front());
  if (!has_data(group.cases.front().collective)) return words;
  std::vector<std::int64_t> sizes;
  for (const Case& one : group.cases) sizes.push_back(one.bytes);
  words.insert(words.end(), {"--sizes", fmt::format("{}", fmt::join(sizes, ","))});
  return words;
}

bool is_of_case(const Case& one, std::string_view case_id_of_row) {
  const bool is_own = case_id_of_row.find(fmt::format("/{}.", kOwnBackend)) != std::string_view::npos;
  if (one.algorithm != kAuto && is_own) return case_id(one) == case_id_of_row;
  return cell_of_case(case_id(one)) == cell_of_case(case_id_of_row);
}

}  // namespace tutti::harness::gate

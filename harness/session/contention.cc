// SPDX-License-Identifier: Apache-2.0
#include "harness/session/contention.h"

#include <algorithm>
#include <optional>

#include "harness/measure/rows.h"
#include "harness/record/row_json.h"

namespace tutti::harness::session {
namespace {

std::vector<std::vector<int>> members_of_all(const Groups& groups, int ranks) {
  std::vector<std::vector<int>> all;
  for (int group = 0; group < groups.count; ++group) all.push_back(members_of(groups, group, ranks));
  return all;
}

/// What a row of a group has of its place in the contention, which the group itself does not know.
void put_in_contention(Row& row, const Case& one) {
  const Row of_case = row_of(one);
  row.case_id = of_case.case_id;
  row.groups = of_case.groups;
  row.group = of_case.group;
  row.contention = of_case.contention;
  row.deal = of_case.deal;
}

}  // namespace

bool has_groups(const SessionSpec& spec) { return !spec.cells.empty() && spec.cells.front().front().among.is_any(); }

Contention::Contention(const Place& place, const Groups& groups)
    : place_(place),
      groups_(groups),
      group_(group_of(groups, place.runner.index())),
      members_(members_of_all(groups, place.runner.count())),
      in_group_(runner_in_group(place.runner, group_, members_[static_cast<std::size_t>(group_)])) {
  for (int runner = 0; runner < place.runner.count(); ++runner) group_of_all_.push_back(group_of(groups, runner));
}

Result<std::unique_ptr<Contention>> Contention::open(const Place& place) {
  TUTTI_ASSIGN_OR_RETURN(const Groups groups, parse_groups(place.spec.cells.front().front().among.groups));
  TUTTI_RETURN_IF_ERROR(check_groups(groups, place.spec.ranks));
  if (place.runner.count() != place.spec.ranks) {
    return error(Code::unavailable, "groups need a thread or a process for each of {} ranks", place.spec.ranks);
  }
  std::unique_ptr<Contention> contention(new Contention(place, groups));
  TUTTI_RETURN_IF_ERROR(place.systems.enter_group(contention->group_, contention->in_group_.index()));
  return contention;
}

std::vector<Contention::OfSystem> Contention::systems_of(std::size_t index) const {
  const std::vector<Case>& cases = place_.spec.cells[index];
  const std::size_t each = 2 * members_.size();
  TUTTI_ASSERT(cases.size() % each == 0, "{} cases of {} groups", cases.size(), members_.size());
  std::vector<OfSystem> systems;
  for (std::size_t first = 0; first < cases.size(); first += each) {
    const auto begin = cases.begin() + static_cast<std::ptrdiff_t>(first);
    systems.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return systems;
}

Result<Variant> Contention::make_ready(const Case& alone, std::uint32_t number) {
  const Case one = within_group(alone);
  Backend& backend = place_.systems.named(one.backend);
  TUTTI_RETURN_IF_ERROR(place_.systems.supports(one));
  Variant::Request request = place_.systems.request_for(backend, one);
  request.number = number;
  return Variant::create(in_group_, request);
}

Result<std::vector<std::vector<Row>>> Contention::collect(const std::vector<Row>& mine) {
  std::string lines;
  for (const Row& row : mine) lines += row_to_json(row) + "\n";
  std::vector<std::vector<Row>> all;
  for (const std::vector<int>& members : members_) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of_runner(place_.runner, members.front(), lines));
    std::vector<Row>& rows = all.emplace_back();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      TUTTI_ASSIGN_OR_RETURN(rows.emplace_back(), row_from_json(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  return all;
}

Result<std::vector<Row>> Contention::rows_of(std::size_t index, const Status& refusal) {
  std::vector<OfSystem> systems = systems_of(index);
  const std::uint32_t first = first_number_of(place_.spec, index);
  std::vector<Variant> variants;
  std::vector<Reason> refusals;
  std::uint32_t number = first;
  for (OfSystem& system : systems) {
    for (Case& one : system) one.algorithm = place_.systems.named(one.backend).algorithm_of(within_group(one));
    const std::size_t mine = 2 * static_cast<std::size_t>(group_);
    const std::uint32_t of_case = number + static_cast<std::uint32_t>(mine);
    number += static_cast<std::uint32_t>(system.size());
    place_.runner.set_case(of_case);
    const bool is_too_many = variants.size() == kMostContending;
    Result<Variant> variant = is_too_many
                                  ? error(Code::unavailable, "a contention has at most {} systems", kMostContending)
                              : refusal.is_ok() ? make_ready(system[mine], of_case)
                                                : Result<Variant>(refusal);
    TUTTI_ASSIGN_OR_RETURN(refusals.emplace_back(), place_.runner.first_reason(variant.status()));
    if (!refusals.back().is_any()) variants.push_back(std::move(variant).value());
  }
  std::vector<std::vector<Row>> measured;
  if (!variants.empty()) {
    const ContentionPlace place{.world = place_.runner,
                                .group = in_group_,
                                .group_of_all = group_of_all_,
                                .groups = static_cast<int>(members_.size())};
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Row> mine, place_.measuring.contend(place, variants, index));
    TUTTI_ASSIGN_OR_RETURN(measured, collect(mine));
  }
  std::vector<Row> rows;
  std::size_t at = 0;
  for (std::size_t system = 0; system < systems.size(); ++system) {
    for (std::size_t i = 0; i < systems[system].size(); ++i) {
      const Case& one = systems[system][i];
      if (refusals[system].is_any()) {
        rows.push_back(refused_row(one, refusals[system]));
        continue;
      }
      Row& row = rows.emplace_back(std::move(measured[i / 2].at(2 * at + i % 2)));
      put_in_contention(row, one);
    }
    if (!refusals[system].is_any()) ++at;
  }
  return rows;
}

}  // namespace tutti::harness::session

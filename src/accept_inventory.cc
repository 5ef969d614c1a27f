// SPDX-License-Identifier: Apache-2.0
#include "src/accept_inventory.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/doctor/hosts_diagnosis.h"
#include "harness/text/text.h"
#include "impl/types/names.h"
#include "src/doctor.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;

constexpr std::array kAlways{std::string_view("unreachable"), std::string_view("build")};  // without being named

bool is_always(std::string_view difference) { return std::ranges::find(kAlways, difference) != kAlways.end(); }

accept::InventoryNote note_of(std::string what) {
  return {.severity = "note", .what = std::move(what), .why = {}, .advice = {}};
}

bool is_asked(const accept::AcceptPlan& plan) {
  return std::ranges::find(plan.stages, "inventory") != plan.stages.end();
}

Inventory inventory_by(const std::vector<harness::Visit>& visits, const accept::AcceptPlan& plan) {
  Inventory inventory;
  for (harness::Symptom& one : harness::findings_of(visits)) {
    inventory.notes.push_back({.severity = std::string(to_string(one.severity)),
                               .what = harness::text::one_line(std::move(one.what)),
                               .why = std::move(one.why),
                               .advice = std::move(one.advice)});
  }
  for (const std::string& name : plan.differences) {
    if (is_always(name)) continue;
    for (harness::Difference& one : harness::differing_hosts(visits, name)) {
      inventory.kept_out.emplace(std::move(one.host), harness::text::one_line(std::move(one.what)));
    }
  }
  return inventory;
}

}  // namespace

Status check_differences(const accept::AcceptPlan& plan) {
  std::vector<std::string> known{kAlways.begin(), kAlways.end()};
  for (std::string& name : harness::names_of_differences()) {
    if (!is_always(name)) known.push_back(std::move(name));
  }
  for (const std::string& name : plan.differences) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return error(Code::invalid_argument, "'blocking' of stage 'inventory': {}",
                 unknown_name("difference", name, known).message());
  }
  return {};
}

Inventory inventory_of(const AcceptRequest& request, const accept::AcceptPlan& plan) {
  if (!is_asked(plan) || request.places.reach.joined != nullptr) return {};
  if (!request.pretend.empty()) {
    if (std::ranges::all_of(plan.differences, is_always)) return {};
    return {.notes = {note_of("differences between hosts are not known in a pretended cluster: none keeps a host out")},
            .kept_out = {}};
  }
  const auto visits = visit_hosts_of(request.places);
  if (!visits.is_ok()) return {.notes = {note_of(std::string(visits.status().message()))}, .kept_out = {}};
  return inventory_by(visits.value(), plan);
}

Result<Inventory> inventory_of_joined(HostsCrew& crew, const accept::AcceptPlan& plan) {
  if (!is_asked(plan)) return Inventory{};
  TUTTI_ASSIGN_OR_RETURN(std::vector<harness::Visit> visits, crew.visit());
  // A finding would advise to look at the agent.
  std::vector<accept::InventoryNote> silent;
  for (const harness::Visit& visit : visits) {
    if (!visit.failure.is_ok()) {
      silent.push_back(note_of(fmt::format("host {} is not examined: {}", visit.host, visit.failure.message())));
    }
  }
  std::erase_if(visits, [](const harness::Visit& visit) { return !visit.failure.is_ok(); });
  Inventory inventory = inventory_by(visits, plan);
  std::ranges::move(silent, std::back_inserter(inventory.notes));
  return inventory;
}

}  // namespace tutti::program

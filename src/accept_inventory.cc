// SPDX-License-Identifier: Apache-2.0
#include "src/accept_inventory.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "harness/doctor/hosts_diagnosis.h"
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
  const bool is_asked = std::ranges::find(plan.stages, "inventory") != plan.stages.end();
  if (!is_asked) return {};
  Inventory inventory;
  const bool is_joined = request.places.reach.joined != nullptr;
  if (is_joined || !request.pretend.empty()) {
    if (!std::ranges::all_of(plan.differences, is_always)) {
      inventory.notes.push_back(note_of(
          "differences between hosts are not known " +
          (is_joined ? "inside " + request.places.reach.joined->starter : std::string("in a pretended cluster")) +
          ": none keeps a host out"));
    }
    return inventory;
  }
  const auto visits = visit_hosts_of(request.places);
  if (!visits.is_ok()) {
    inventory.notes.push_back(note_of(std::string(visits.status().message())));
    return inventory;
  }
  for (harness::Symptom& one : harness::findings_of(visits.value())) {
    inventory.notes.push_back({.severity = std::string(to_string(one.severity)),
                               .what = std::move(one.what),
                               .why = std::move(one.why),
                               .advice = std::move(one.advice)});
  }
  for (const std::string& name : plan.differences) {
    if (is_always(name)) continue;
    for (harness::Difference& one : harness::differing_hosts(visits.value(), name)) {
      inventory.kept_out.emplace(std::move(one.host), std::move(one.what));
    }
  }
  return inventory;
}

}  // namespace tutti::program

// SPDX-License-Identifier: Apache-2.0
// Several hosts beside each other: what differs between them, as findings, as text and as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/host_visits.h"

namespace tutti::harness::doctor {

/// What all hosts should have alike, of one of them. `build`: what all machines of a job must have; `libraries`: of its
/// references, by name.
[[nodiscard]] std::vector<Fact> facts_of(const MachineCondition& condition, const std::string& build,
                                         std::span<const Fact> libraries);

/// Where the hosts differ, whom nobody reaches, and what each host has found of itself; the most severe first. Pure.
[[nodiscard]] std::vector<Symptom> findings_of(std::span<const Visit> visits);

/// What hosts may differ in, as the names of findings: "memory", "link_speed".
[[nodiscard]] std::vector<std::string> names_of_differences();
struct Difference {
  std::string host, what;
};
/// Hosts whose value is not that of more than half of those that answered; what it is, and what most have. Empty if no
/// value is that of so many.
[[nodiscard]] std::vector<Difference> differing_hosts(std::span<const Visit> visits, std::string_view name);

[[nodiscard]] std::string diagnosis_text(std::span<const Visit> visits, std::span<const Symptom> findings);
/// {"hosts": [{"name", "failure", "hostname", "address", "facts", "clock", "routes", "machine", "findings"}],
/// "findings": [{"name", "severity", "what", "why", "advice"}]}; what is not known is null.
[[nodiscard]] std::string diagnosis_json(std::span<const Visit> visits, std::span<const Symptom> findings);

}  // namespace tutti::harness::doctor

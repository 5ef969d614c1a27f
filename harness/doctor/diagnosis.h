// SPDX-License-Identifier: Apache-2.0
// A machine's condition and its findings, as text and as JSON.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "harness/doctor/findings.h"

namespace tutti::harness::doctor {

/// What would spoil a measurement, as a page and as JSON tell it.
[[nodiscard]] std::string findings_text(std::span<const Symptom> findings);
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const Symptom> findings);

[[nodiscard]] std::string diagnosis_text(const MachineCondition& condition, std::span<const Symptom> findings);
/// {"machine": {...}, "findings": [{"name", "severity", "what", "why", "advice"}]}; what is not known is null.
[[nodiscard]] std::string diagnosis_json(const MachineCondition& condition, std::span<const Symptom> findings);

}  // namespace tutti::harness::doctor

// SPDX-License-Identifier: Apache-2.0
// What would spoil a measurement on a machine in this condition. Pure: the same condition has the same findings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/condition.h"

namespace tutti::harness::doctor {

enum class Severity : std::uint8_t {
  blocks,  ///< tutti cannot run here at all
  spoils,  ///< times will be wrong, or will not repeat
  note,    ///< changes what the times mean, or what can be measured
};
[[nodiscard]] std::string_view to_string(Severity severity);

struct Symptom {
  std::string name;  ///< a word that scripts may rely on: "quota"
  Severity severity = Severity::note;
  std::string what;
  std::string why;     ///< it matters
  std::string advice;  ///< what to do
};

/// The most severe first.
[[nodiscard]] std::vector<Symptom> findings_of(const MachineCondition& condition);

}  // namespace tutti::harness::doctor

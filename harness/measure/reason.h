// SPDX-License-Identifier: Apache-2.0
// Reasons: each runner of a job maybe has one why something cannot go on, or is wrong. The first runner's that has one
// is what all take. Runner::first_reason asks for no more than that; other records have a reason beside what else they
// tell.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// As runners exchange it: it has no pointers, and longer texts are cut.
struct Reason {
  /// `cause`: it explains what others only see, and goes before their reasons.
  enum class Weight : std::uint8_t { none, symptom, cause };

  Weight weight = Weight::none;
  Code code = Code::ok;  ///< of a Status
  std::array<char, 984> bytes{};

  /// None where `status` is ok.
  [[nodiscard]] static Reason of(const Status& status);
  /// None where nothing is wrong.
  [[nodiscard]] static Reason of(std::int64_t wrong, std::string_view text, bool tells_cause = false);

  [[nodiscard]] bool is_any() const { return weight != Weight::none; }
  [[nodiscard]] std::string text() const { return bytes.data(); }
};

/// Of the records of all runners (at least one) that of the first runner with the heaviest; none where no runner has
/// one.
template <class Record>
[[nodiscard]] const Reason& first_reason(const std::vector<Record>& all, Reason Record::*reason) {
  const auto weight = [reason](const Record& record) { return (record.*reason).weight; };
  return (*std::ranges::max_element(all, {}, weight)).*reason;
}

}  // namespace tutti::harness::measure

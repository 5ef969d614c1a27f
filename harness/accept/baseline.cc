// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/baseline.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

/// Empty: it is not there, or is no speed.
std::optional<double> log_speed_of(const nlohmann::json& fleet, const char* key) {
  const nlohmann::json& value = fleet.at(key);
  if (!value.is_number()) return std::nullopt;
  const double speed = value.get<double>();
  constexpr double kLeast = 1, kMost = 1e15;  // bytes per second
  if (!(speed >= kLeast && speed <= kMost)) return std::nullopt;
  return std::log(speed);
}

Result<Baseline> speeds_of(const nlohmann::json& fleet) {
  const std::optional<double> near = log_speed_of(fleet, "near_bytes_per_second");
  const std::optional<double> far = log_speed_of(fleet, "far_bytes_per_second");
  if (!near && !far) return error(Code::invalid_argument, "it has no speed of pairs");
  return Baseline{.near = near ? *near : *far, .far = far ? *far : *near};
}

}  // namespace

Result<Baseline> baseline_from_json(std::string_view text) {
  const auto read = [](const nlohmann::json& document) -> Result<Baseline> {
    if (document.at("kind").get<std::string>() != "accept") {
      return error(Code::invalid_argument, "it is no result of `tutti accept`");
    }
    int version = 0;
    TUTTI_RETURN_IF_ERROR(text::read_number(document, "version", version, 0));
    if (version != kVersionOfJson) {
      return error(Code::invalid_argument, "it is of version {}: known is {}", version, kVersionOfJson);
    }
    const std::string verdict = document.at("verdict").get<std::string>();
    if (verdict != "PASS") {
      return error(Code::invalid_argument, "its verdict is {}: a baseline is a run that passed", shown(verdict));
    }
    std::int64_t bytes = 0;
    if (document.contains("message_size")) TUTTI_RETURN_IF_ERROR(text::read_number(document, "message_size", bytes, 0));
    if (!document.contains("rails")) {
      TUTTI_ASSIGN_OR_RETURN(Baseline fleet, speeds_of(document.at("fleet")));
      fleet.bytes = static_cast<std::size_t>(bytes);
      return fleet;
    }
    Baseline all;
    all.bytes = static_cast<std::size_t>(bytes);
    for (const nlohmann::json& rail : document.at("rails")) {
      TUTTI_ASSIGN_OR_RETURN(Baseline speeds, speeds_of(rail.at("fleet")));
      all.rails.insert_or_assign(rail.at("rail").get<std::string>(), std::move(speeds));
    }
    if (all.rails.empty()) return error(Code::invalid_argument, "it has no speed of pairs");
    return all;
  };
  return text::read_json(Code::invalid_argument, "a result of `tutti accept`", text, read);
}

}  // namespace tutti::harness::accept

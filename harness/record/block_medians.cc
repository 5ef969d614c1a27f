// SPDX-License-Identifier: Apache-2.0
#include "harness/record/block_medians.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"

namespace tutti::harness::record {
namespace {

using Json = nlohmann::json;

/// To be called in what read_json calls.
Result<BlockMedians> medians_of(const Json& json) {
  BlockMedians medians{.case_id = json.at("case").get<std::string>(), .operations = json.at("operations").get<int>()};
  const auto rounds = json.at("rounds").get<std::vector<int>>();
  const auto times = json.at("us").get<std::vector<double>>();
  if (rounds.size() != times.size() || medians.operations < 1) {
    return error(Code::invalid_argument, "{} rounds, {} medians and {} operations", rounds.size(), times.size(),
                 medians.operations);
  }
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const bool is_in_order = i == 0 ? rounds[i] >= 0 : rounds[i] > rounds[i - 1];
    if (!is_in_order || !std::isfinite(times[i]) || times[i] <= 0) {
      return error(Code::invalid_argument, "round {} after {} others has the median {}", rounds[i], i, times[i]);
    }
    medians.of_rounds.push_back({.round = rounds[i], .median_us = times[i]});
  }
  return medians;
}

}  // namespace

std::string to_json(const BlockMedians& medians) {
  Json rounds = Json::array(), times = Json::array();
  for (const BlockMedian& one : medians.of_rounds) {
    rounds.push_back(one.round);
    times.push_back(one.median_us);
  }
  return Json{{"case", medians.case_id}, {"operations", medians.operations}, {"rounds", rounds}, {"us", times}}.dump();
}

Result<BlockMedians> block_medians_from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "medians of blocks", text, medians_of);
}

}  // namespace tutti::harness::record

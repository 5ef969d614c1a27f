// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/forecast.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tutti::harness::simulate {

std::size_t Forecast::fastest(std::size_t row) const {
  const auto best = std::ranges::min_element(columns, {}, [row](const Column& one) { return one.us[row]; });
  return static_cast<std::size_t>(best - columns.begin());
}

std::string csv_of(std::span<const Forecast> forecasts, const ForecastOf& what) {
  std::string text = "collective,algorithm,ranks,ranks_per_node,bytes,predicted_us,is_fastest,without_faults_us\n";
  for (const Forecast& forecast : forecasts) {
    for (std::size_t row = 0; row < forecast.bytes.size(); ++row) {
      for (const Forecast::Column& column : forecast.columns) {
        text += fmt::format("{},{},{},{},{},{:.6g},{},{}\n", what.collective, column.algorithm, forecast.ranks,
                            what.ranks_per_node, forecast.bytes[row], column.us[row],
                            column.us[row] == forecast.best(row) ? 1 : 0,
                            column.sound_us.empty() ? "" : fmt::format("{:.6g}", column.sound_us[row]));
      }
    }
  }
  return text;
}

std::string json_of(std::span<const Forecast> forecasts, const ForecastOf& what) {
  nlohmann::ordered_json all{{"format", "tutti-simulate"},
                             {"version", 1},
                             {"collective", what.collective},
                             {"machine", what.machine},
                             {"ranks_per_node", what.ranks_per_node},
                             {"forecasts", nlohmann::ordered_json::array()}};
  for (const Forecast& forecast : forecasts) {
    nlohmann::ordered_json one{
        {"ranks", forecast.ranks}, {"bytes", forecast.bytes}, {"algorithms", nlohmann::ordered_json::array()}};
    for (const Forecast::Column& column : forecast.columns) {
      nlohmann::ordered_json times{{"algorithm", column.algorithm}, {"predicted_us", column.us}};
      if (!column.sound_us.empty()) times["without_faults_us"] = column.sound_us;
      one["algorithms"].push_back(std::move(times));
    }
    auto& fastest = one["fastest"] = nlohmann::ordered_json::array();
    for (std::size_t row = 0; row < forecast.bytes.size() && !forecast.columns.empty(); ++row) {
      fastest.push_back(forecast.columns[forecast.fastest(row)].algorithm);
    }
    one["left_out"] = forecast.left_out;
    all["forecasts"].push_back(std::move(one));
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::harness::simulate

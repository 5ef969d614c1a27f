// SPDX-License-Identifier: Apache-2.0
// The predicted times of a collective on one number of ranks: algorithms beside each other, a row for each size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::simulate {

struct Forecast {
  struct Column {
    std::string algorithm;
    std::vector<double> us;             ///< by size
    std::vector<double> sound_us = {};  ///< without the machine's faults; empty if it has none
  };
  int ranks = 0;
  std::vector<std::int64_t> bytes = {};
  std::vector<Column> columns = {};
  std::vector<std::string> left_out = {};  ///< algorithms, and why

  /// The column that is the fastest for size number `row`; of equal ones the first. Requires: there are columns.
  [[nodiscard]] std::size_t fastest(std::size_t row) const;
  [[nodiscard]] double best(std::size_t row) const { return columns[fastest(row)].us[row]; }
};

/// What all forecasts of a table are about.
struct ForecastOf {
  std::string_view collective;
  std::string machine;  ///< its name
  int ranks_per_node = 1;
};

/// A line for each time.
[[nodiscard]] std::string csv_of(std::span<const Forecast> forecasts, const ForecastOf& what);
/// The same as one JSON document, with what was left out.
[[nodiscard]] std::string json_of(std::span<const Forecast> forecasts, const ForecastOf& what);

}  // namespace tutti::harness::simulate

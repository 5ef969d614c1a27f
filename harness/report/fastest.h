// SPDX-License-Identifier: Apache-2.0
// A picture of which algorithm is the fastest where: ranks down, sizes to the right.
#pragma once

#include <span>
#include <string>

#include "harness/floors.h"
#include "harness/simulate/forecast.h"

namespace tutti::harness::report {

/// As SVG: a field for each number of ranks and size, with the fastest algorithm in its colour, its time, and how many
/// times as long the next one takes. Forecasts without a time have an empty row.
[[nodiscard]] std::string fastest_svg(std::span<const simulate::Forecast> forecasts, const simulate::ForecastOf& what);

}  // namespace tutti::harness::report

// SPDX-License-Identifier: Apache-2.0
// `tutti simulate --table`: rows of a selection table, for ranks on which nothing was measured.
#pragma once

#include <span>
#include <string>

#include "harness/simulate/forecast.h"
#include "harness/simulate/model.h"
#include "impl/collective/collective.h"
#include "impl/types/status.h"

namespace tutti::program {

/// A table with the fastest algorithm of each size; their source names the machine. Left out is what was measured
/// already: it needs no prediction. Errors: unavailable, if no row is left.
[[nodiscard]] Result<std::string> table_of_forecasts(Collective collective,
                                                     std::span<const harness::simulate::Forecast> forecasts,
                                                     const harness::simulate::Machine& machine);

}  // namespace tutti::program

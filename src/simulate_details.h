// SPDX-License-Identifier: Apache-2.0
// What `tutti simulate` says of one time: its critical path in words, and the load of interfaces and links.
#pragma once

#include <string>

#include "harness/simulate/predictor.h"

namespace tutti::program {

/// Four digits.
[[nodiscard]] std::string us_text(double us);

/// Which steps decide the time, from both ends if they are many, and where the time goes.
void print_path(const harness::simulate::Prediction& prediction, const harness::simulate::Predictor& predictor,
                double block_bytes, const harness::simulate::Machine& machine);
/// The busiest of them.
void print_loads(const harness::simulate::Prediction& prediction, const harness::simulate::Predictor& predictor,
                 int ranks);

}  // namespace tutti::program

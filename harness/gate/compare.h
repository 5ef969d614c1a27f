// SPDX-License-Identifier: Apache-2.0
// Two recorded results, case by case. Nothing pairs their launches, so the interval of the ratio is that of two lists
// (two_samples.h). It covers what differs between launches of one run. It does not cover what changed on the machine
// between the runs, so the floors are the gate's. A gate measures both sides in turn, and says more.
#pragma once

#include <span>
#include <string>

#include "harness/gate/report.h"
#include "harness/record/record.h"

namespace tutti::harness::gate {

struct ResultSide {
  std::string name;
  std::span<const Row> rows;
};

/// `mine` against `other`: ratios are mine / other. There is a cell for each case of either side and each starter.
/// Where `auto` took other algorithms, the cell is of both, and its reason says so. Results that are not right, of
/// other conditions or of another state of the machine are not comparable; `wrong` and `lost` of the report name them.
[[nodiscard]] GateReport compare_results(const ResultSide& mine, const ResultSide& other);

}  // namespace tutti::harness::gate

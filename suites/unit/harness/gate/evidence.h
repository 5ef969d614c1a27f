// SPDX-License-Identifier: Apache-2.0
// For the tests of the gate: cases, rows and evidence that are made up.
#pragma once

#include <cmath>
#include <vector>

#include "harness/gate/contest.h"

namespace tutti::harness::gate {

inline Case all_reduce_of(std::int64_t bytes, const char* algorithm = "auto") {
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  one.bytes = bytes;
  one.count = bytes / 4;
  one.algorithm = algorithm;
  return one;
}

inline Row row_with(const Case& one, double time_us, const char* algorithm = "two_shot") {
  Case ran = one;
  ran.algorithm = algorithm;
  Row row = row_of(ran);
  row.verdict = Verdict::ok;
  row.time_median = time_us;
  row.time_ci_low = 0.99 * time_us;
  row.time_ci_high = 1.01 * time_us;
  row.line_ns = 100;
  return row;
}

/// Ratios `ratio` times 1 + spread, 1 - spread, 1 + spread / 2, ...: eight of them.
inline std::vector<double> log_ratios_around(double ratio, double spread) {
  std::vector<double> logs;
  for (const double part : {1.0, -1.0, 0.5, -0.5, 0.25, -0.25, 0.75, -0.75}) {
    logs.push_back(std::log(ratio) + part * spread);
  }
  return logs;
}

inline Evidence evidence_around(double ratio, double spread, std::int64_t bytes = std::int64_t{1} << 20,
                                double other_us = 100) {
  Evidence evidence = evidence_for(all_reduce_of(bytes));
  evidence.log_ratios = log_ratios_around(ratio, spread);
  evidence.other_us.assign(16, other_us);
  evidence.this_us.assign(16, other_us * ratio);
  return evidence;
}

}  // namespace tutti::harness::gate

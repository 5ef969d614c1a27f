// SPDX-License-Identifier: Apache-2.0
// For the tests of reports: a row with everything measured, one with nothing, and files: their names and what is in
// them.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "harness/record/record.h"

namespace tutti::harness::record {

inline Row measured_row() {
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  one.bytes = 4096;
  one.count = 1024;
  one.algorithm = "two_shot";
  Row row = row_of(one);
  row.samples = 120;
  row.time_median = 0.512;
  row.time_ci_low = 0.5;
  row.time_ci_high = 0.53;
  row.time_min = 0.1 + 0.2;  // 0.30000000000000004: needs all digits
  row.time_p95 = 1;
  row.time_p99 = 12.25;
  row.time_max = 1e21;
  row.algbw = 8;
  row.busbw = 8;
  row.verdict = Verdict::wrong;
  row.wrong = 3;
  row.slowest_rank = 1;
  row.line_ns = 101.5;
  row.reason = "rank 1, element 7: expected \"3\", got 2,\nas if rank 0 were missing";
  return row;
}

inline Row skipped_row() {
  Case one;
  one.collective = Collective::broadcast;
  one.ranks = 4;
  one.root = 1;
  one.bytes = 8;
  one.count = 2;
  one.backend = "openmpi";
  Row row = row_of(one);
  row.verdict = Verdict::skipped;
  row.reason = "no out-of-place broadcast";
  return row;
}

/// A path of this process's own: tests run at the same time.
inline std::string temporary_path(const std::string& ending) {
  return testing::TempDir() + "tutti_test_" + std::to_string(getpid()) + ending;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tutti::harness::record

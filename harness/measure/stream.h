// SPDX-License-Identifier: Apache-2.0
// Measuring as nccl-tests does: one untimed operation, then one loop back to back on every rank. measure_stream returns
// the loop's mean.
//
//   refill | an untimed operation | poison | loop, timed | verify | (refill, other data | operation | verify) ...
//
// Out of place the first check is that of the loop's own result: its outputs were poisoned just before. In place the
// loop feeds on its own results, so every check there is of a further operation after a refill. Where one operation
// does not have every rank in every element (passes_of in check.h), there are more checks, until they have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/measure/runner.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// What the ranks do between the operations of a loop.
enum class Blocking : std::uint8_t {
  none,  ///< each rank begins the next operation as soon as its last one has ended; on a stream all are posted at once
  each_end,        ///< the same on a stream, too
  barrier_timed,   ///< they wait for each other after every operation, within the time
  barrier_untimed  ///< they wait for each other before every operation, outside the time
};

struct StreamOptions {
  int operations = 20;
  int grouped = 1;   ///< as of Loop: each of the operations is so many, as one group
  int launches = 0;  ///< as of Loop: of a graph of all operations. Requires: Blocking::none
  Blocking blocking = Blocking::none;
  /// The clock is read after every operation, which takes some 30 ns; on streams it is the stream's own, and operations
  /// are those of a group or of a launch: each time is their mean.
  bool times_each = false;
  bool tells_runners = false;  ///< with times_each: those of every runner, too
  int checks = 1;              ///< rounds, and more where passes take them; 0: nothing is checked
  std::uint64_t salt = 0;      ///< of the first refill; those after it have the next numbers
};

/// What all runners know afterwards.
struct StreamResult {
  double rank0_us = 0;  ///< an operation's mean time on rank 0
  double mean_us = 0;   ///< and over the ranks: the mean, the least and the most of the ranks' means
  double least_us = 0;
  double most_us = 0;
  double rank0_posted_us = 0;   ///< until rank 0's process had posted all, by operation; without streams, rank0_us
  std::vector<double> each_us;  ///< each operation on the rank that took longest for it; with times_each
  std::vector<std::vector<double>> each_us_of_runners;  ///< the same by runner, of its ranks; with tells_runners
  std::int64_t wrong = 0;                               ///< elements, on all runners and in all rounds
  std::int64_t failed_checks = 0;                       ///< rounds x runners
  std::string reason;                                   ///< the first runner's that has one
  std::uint64_t last_salt = 0;                          ///< of the last refill
};

/// Errors: those of the runner and of the variant.
[[nodiscard]] Result<StreamResult> measure_stream(Runner& runner, Variant& variant, const StreamOptions& options);

/// Operations of which nothing is kept.
[[nodiscard]] Status warm_up(Runner& runner, Variant& variant, int operations);

}  // namespace tutti::harness::measure

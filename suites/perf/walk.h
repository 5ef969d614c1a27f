// SPDX-License-Identifier: Apache-2.0
// What one rank's thread does from start to end: the walk over cycles, dtypes, ops, roots and sizes, the same on all
// ranks. Every rank knows all results; rank 0 hands them on.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/backends/tutti/backend.h"
#include "harness/machine/memory.h"
#include "harness/measure/runner.h"
#include "harness/record/rank_tally.h"
#include "harness/record/record.h"
#include "suites/perf/case_names.h"
#include "suites/perf/flags.h"
#include "suites/perf/programs.h"
#include "suites/perf/split.h"
#include "suites/perf/text.h"

namespace tutti::perf {

/// What a finished row is to the code that reports it.
struct Report {
  TableRow row;
  std::vector<harness::Row> records;   ///< tutti's own, one per placement
  std::vector<std::string> diagnoses;  ///< why a check failed, one per placement that did
  std::vector<std::string> comments;   ///< lines of the table about the row
};

struct WalkPlace {
  harness::Runner& runner;
  Domain& domain;
  const Split& split;
  Share share;                    ///< of this process
  std::vector<int> cores;         ///< that all ranks use together
  bool has_processes = false;     ///< ranks are in several processes
  std::vector<int> devices = {};  ///< of this runner's ranks, where NCCL is measured
  int first_rank = 0;             ///< of this runner's, in the world; for NCCL
  CaseNames* names = nullptr;     ///< where this rank tells the cases that it comes to; of one rank of a process
};

/// What all ranks know at the end.
struct WalkResult {
  std::int64_t failed_checks = 0;
  double bus_sum = 0;
  std::int64_t placements = 0;
  double ready_s = 0;        ///< from the start of the oldest process until the backend was open on all ranks
  double first_call_us = 0;  ///< what the first untimed operation took on the slowest runner; 0: there was none
  harness::RankTally ranks;  ///< of operations that were timed one by one; empty where a runner has several ranks
  MemoryUse memory;          ///< of CPU ranks all buffers together; of GPUs the one that has most

  [[nodiscard]] std::optional<double> average() const;  ///< empty: there was no row
};

/// Called by rank 0 only. An error ends the job.
using OnRow = std::function<Status(const Report&)>;

[[nodiscard]] Result<WalkResult> walk(const Program& program, const Settings& settings, const WalkPlace& place,
                                      const OnRow& on_row);

/// hypercube needs a power of two of ranks in every group; the others have rows whatever there is.
[[nodiscard]] bool has_rows(const Program& program, const Split& split);

/// A line for each dtype of which the values of `ranks` ranks cannot be added exactly: how its sums are checked.
[[nodiscard]] std::vector<std::string> notes_on_passes(const Program& program, const Settings& settings, int ranks);

/// Bytes of one rank's buffers at -e.
[[nodiscard]] double bytes_of_a_rank(const Program& program, const Settings& settings, int ranks);

/// The largest size not above -e of which the buffers of all ranks fit what is left of memory.
[[nodiscard]] std::int64_t most_bytes_that_fit(const Program& program, const Settings& settings, int ranks,
                                               const harness::MemoryLeft& left);

}  // namespace tutti::perf

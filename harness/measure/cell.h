// SPDX-License-Identifier: Apache-2.0
// Measuring one cell. measure_cell runs all variants of a cell in one interleaved run on the same ranks, and makes
// their rows.
//
// A sample: all runners start together (start.h). Its time is the latest end minus the earliest start over all ranks:
// the slowest rank decides. Samples come in blocks of one variant (block.h). The blocks of the variants take turns in
// ABBA order, seeded.
//
// A block refills its buffers with fresh data and discards its first calls. It is verified on the buffers it timed.
// block.h says after which calls.
//
// A cache line's round trip between two cores is probed before and after each block. It tells the state of the machine:
// a block in which it changed is repeated. At the end only the blocks of the cell's prevailing state count, so that
// variants are compared within one state. settling.h says when there are enough samples.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "harness/cases/conditions.h"
#include "harness/measure/runner.h"
#include "harness/measure/start.h"
#include "harness/measure/variant.h"
#include "harness/record/block_medians.h"
#include "harness/record/record.h"
#include "harness/record/samples.h"

namespace tutti::harness::measure {

struct CellOptions {
  std::uint64_t seed = 1;
  std::chrono::nanoseconds most_time = std::chrono::seconds(3);  ///< after which no call begins but the least (block.h)
  /// Of measure_floor, as samples of this case start: one below five times as much is marked. May be empty: then no row
  /// is marked.
  std::function<double(const Case& one)> floor_us_of = {};
  double tick_us = 0;  ///< what readings of the clock differ by; the same on all runners
  Conditions conditions = {};
  bool has_precision = true;  ///< sums and products of floats are repeated on random values (precision.h)
  std::function<Variant*(const Case& one)> barrier_of = {};  ///< for library: a barrier on its backend, or null
  /// The name of a rank's host, or an empty text. May be empty: hosts have no names.
  std::function<std::string(int rank)> host_of = {};
  /// So many of the last variants are limits (limit.h): they have no rows, and those whose buffers lie in memory of the
  /// same kind have their share. Of each: how it is measured.
  std::vector<std::string> limits = {};
  /// Blocks of each variant, after which the cell is over; 0: it is when its times have settled. Iterations are shared
  /// out to so many blocks, each in whatever state the machine is.
  int blocks = 0;
  /// Gets the medians of a case's blocks, on runner 0; may be empty.
  std::function<Status(const BlockMedians& medians)> on_blocks = {};
  /// Gets what the first call of a case took on the slowest rank, on runner 0; may be empty.
  std::function<void(const Case& one, std::int64_t first_call_ns)> on_first_call = {};
  /// Gets all samples of a case, on runner 0; may be empty.
  std::function<Status(const Case& one, std::span<const Sample> samples)> on_samples = {};

  [[nodiscard]] bool shares_out_iterations() const { return conditions.iterations > 0 && blocks > 0; }
};

/// Measures `variants` (all of one cell). The rows are runner 0's result; other runners get empty ones.
/// Errors: those of the variants and of the runner; the job is then over.
[[nodiscard]] Result<std::vector<Row>> measure_cell(Runner& runner, std::vector<Variant>& variants,
                                                    const CellOptions& options);

/// The median time of a sample in which nothing is done, in nanoseconds: what cannot be told from nothing.
[[nodiscard]] Result<double> measure_floor(Runner& runner, const Start& how = {});

}  // namespace tutti::harness::measure

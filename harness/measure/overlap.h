// SPDX-License-Identifier: Apache-2.0
// Overlap: how much of an operation goes on while its ranks compute (--overlap), by the definition of IMB-NBC:
//
//   overlap = 100 x max(0, min(1, (t_pure + t_computing - t_overlapped) / min(t_pure, t_computing)))
//
// - t_pure: the operation is posted and waited for at once.
// - t_computing: as much computing, without an operation.
// - t_overlapped: the operation is posted, the rank computes, then it waits. It is measured twice: without a look at
//   the operation meanwhile, and with OverlapOptions::calls calls that test it, evenly spread. Such calls let a library
//   go on that has no thread of its own for its work.
//
// The computing takes as long as t_pure did in the samples before, and needs the registers only. The four are measured
// in turn, round after round, so that all see the same machine. Each time is a median over the rounds, of the slowest
// rank. A round in which a rank came late to a call (start.h) does not count.
//
// Places of the outputs are poisoned before each call (places.h). After every ten rounds the last call is verified, and
// so is one overlapped call more, on other data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cases/conditions.h"
#include "harness/measure/computation.h"
#include "harness/measure/runner.h"
#include "harness/measure/start.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// In percent. Requires: pure and computing above 0.
[[nodiscard]] double overlap_percent(double pure, double computing, double overlapped);

struct OverlapOptions {
  int calls = 1;               ///< that test the operation, where there are any
  Compute compute = {};        ///< what a rank computes; empty: what takes as long as a call
  double pure_us = 0;          ///< what a call takes, the same on all runners
  std::uint64_t salt = 0;      ///< of the first refill
  std::int64_t end_ns = 0;     ///< CLOCK_MONOTONIC, the same on all runners; there is one round in any case
  Conditions conditions = {};  ///< checking: with none, no call is verified
  Start start = {};
};

/// What all runners know afterwards. Times are of the rounds that count, in microseconds.
struct OverlapResult {
  std::vector<double> pure_us;
  std::vector<double> computing_us;
  std::vector<double> overlapped_us;
  std::vector<double> called_us;  ///< overlapped, with calls
  std::int64_t wrong = 0;
  std::string reason;
};

/// Requires: a runner has one rank, and what the variant has prepared is asynchronous. All runners call it.
/// Errors: those of the variant's operations and of the runner.
[[nodiscard]] Result<OverlapResult> measure_overlap(Runner& runner, Variant& variant, const OverlapOptions& options);

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
// A block is the unit of measuring: some twenty samples of one variant in a row, on all runners. A sample is one timed
// call. Some samples are verified, and so is one more call on other data, the last call.
//
//   refill | discarded calls | samples .. chosen one, verify | discarded calls | samples .. last one, verify |
//   refill, other data | last call | verify
//
// Verified samples. Two samples are verified, on the buffers as they were timed: the chosen one and the last one. The
// chosen one is drawn; in a variant's first block it is the first one (cell.cc). Both are samples like the others: made
// alike, and counted. Before every call, verified or not, places of the outputs are poisoned (places.h). So what a call
// leaves shows, and neither the system nor its caches can tell the verified calls apart. Verifying reads all buffers,
// which puts them elsewhere in the caches: there calls are discarded again.
//
// Shared buffers. Where peers write an output, each poisoned line is taken back from one of them, in the time of the
// next call. One line in 64 slows an all_reduce of 64 KiB visibly. So nothing is poisoned there before a sample. After
// the chosen and the last sample the same call is made once more, on the same input and on outputs poisoned all over.
// That call is verified and not counted.
//
// The last call. Samples of a block have the same input. A system could notice that and give again what it has kept of
// the call before: the last call finds it out. It has other data and poison all over, and is announced, made and timed
// like a sample. The number of samples differs from block to block (cell.cc), so a system that counts calls does not
// know which one it is. It is no sample, since its buffers were freshly written; but where there is no time for another
// one, it counts.
//
// Why there is no refill before every sample: it would change what is measured. Where buffers are shared, a refill
// takes the input's cache lines back from the peers that read them last time. At 16 MiB it takes longer than the
// operation. So out of place all samples run on inputs that stay as they are. That favours a system that notices it. In
// place the last result would be the next input: there every call is preceded by a refill, outside the timed part.
//
// Cadence `streaming`. A sample is a loop of operations, and what was said of a call holds of a loop: places are
// poisoned before it. In place, and for barrier, no sample is verified. A loop in place feeds on its own results, and
// whether a barrier held is seen on one barrier. There the last call is a single operation and never a sample
// (checks_further).
//
// `--check`. With `every` there is other data before every sample, and every result is verified before the next one.
// What the peers had in their caches of the buffers is gone each time, which is part of what is then measured. With
// `last` only the last sample is verified. There is then no last call but one at the end of the cell, a block of its
// own (cell.cc). With `none` nothing is poisoned or verified. Barriers are judged by the times of their samples, with
// all of these but `none`.
//
// `--cache`. With `cold` the lines of all buffers are flushed from the caches before every call, outside the timed
// part. What else a system has in memory (flags, slots, scratch) stays in them. With `rotate` each call takes the next
// of several sets of buffers (rotation.h). All sets are refilled at the start of the block and, in place, whenever each
// was used once.
//
// `--skew`. One rank, another one in each call, enters later than the others by BlockOptions::skew. A sample is then
// the time from its entry on: what of the operation is left to do when the last rank comes.
//
// `--sync roundtime`. A sample to which a rank came late (start.h) does not count. It is kept and marked, and the cell
// goes on until it has enough of the others. Tolerance says what late is: a rank entered after the announced instant by
// more than Runner::in_time_ns. It must also be more than 1 % of the block's median time from the last arrival on, for
// a median is to be right to that. Where more than a quarter of a block was late, instants are announced further ahead
// from then on.
//
// Warming up. The first block of a variant warms it up: its last discarded call is repeated until batches of calls have
// stopped getting faster (settling.h), or the time for that is over.
//
// The end in time. After every call, discarded ones included, all runners look at the instant at which the call began.
// That instant is the same for all. Where there is no time for a sample and the last call, the last call is next. The
// least block is one discarded call and the last one, which then counts as the only sample there is.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/conditions.h"
#include "harness/measure/runner.h"
#include "harness/measure/start.h"
#include "harness/measure/variant.h"
#include "harness/record/samples.h"

namespace tutti::harness::measure {

inline constexpr int kMostSamplesPerBlock = 20;

struct BlockOptions {
  std::uint64_t salt = 0;              ///< of the first refill; those with other data have the next ones
  int samples = kMostSamplesPerBlock;  ///< at most kMostSamplesPerBlock
  int discarded = 2;                   ///< calls before the first sample
  int operations = 1;                  ///< in a sample; more than 1 in cadence streaming only
  /// checking: every verifies each sample, and the last call; sample the last sample, the chosen one, and the last
  /// call; last the last sample, and there is no last call; none neither. cache: cold before each call, the discarded
  /// and the last one too. skew: one rank enters each call that much later than the others.
  Conditions conditions = {};
  int chosen = -1;                  ///< sample, from 0, that is verified as the last one is; -1: none
  Start start = {};                 ///< of each call
  std::int64_t warm_up_end_ns = 0;  ///< CLOCK_MONOTONIC, the same on all runners; 0: no warming up
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();  ///< CLOCK_MONOTONIC, the same on all runners
};

/// What all runners know after a block.
struct BlockResult {
  std::vector<Sample> samples;  ///< at least one; to those that are not valid a rank came late
  int discarded = 0;            ///< calls before the first sample
  RoundTrips before, after;
  std::int64_t clocks_bound_ns = 0;  ///< the larger of the two estimates around it; 0: on one machine
  std::int64_t wrong = 0;  ///< elements on all runners, of all that was verified; barrier: samples that broke the rule
  std::string reason;      ///< the first runner's that has one
  std::int64_t first_call_ns = 0;    ///< what the first call took on the slowest rank, discarded or not
  std::uint64_t last_salt = 0;       ///< of the last refill
  std::int64_t last_instant_ns = 0;  ///< at which the last call began
  /// Of the samples those to which a rank came late. Beyond kMostLateSamples the runner announces instants further
  /// ahead; runners that start together do so if any of their groups asks for it, which is the caller's to find out.
  double late_share = 0;

  /// Whether the machine was in one state from beginning to end.
  [[nodiscard]] bool is_steady() const;
};

/// What of a sample is its time: with a skew it is from the last arrival.
[[nodiscard]] double time_of(const Sample& sample, std::chrono::nanoseconds skew);

/// Whether all that is verified is one more operation after a refill, and none of the timed ones.
[[nodiscard]] bool checks_further(const Case& one);

/// Ratio beyond which two round trips are two states of the machines.
inline constexpr double kSameState = 1.5;
/// What is not known of one of the two is no difference.
[[nodiscard]] bool is_same_state(const RoundTrips& one, const RoundTrips& other);

/// How late a rank may come to an announced instant.
struct Tolerance {
  double least_us = 0;
  double share = 0.01;  ///< of the median time from the last arrival on, where that is more
};
[[nodiscard]] Tolerance tolerance_of(const Runner& runner);
inline constexpr double kMostLateSamples = 0.25;  ///< of those of a block, beyond which instants come further ahead
/// Marks the samples (at least one, of `operations` operations each) to which a rank came too late. Returns their
/// share. Where no instant was announced, no sample is marked.
double mark_late(std::span<Sample> samples, const Tolerance& tolerance, int operations);

[[nodiscard]] Result<BlockResult> run_block(Runner& runner, Variant& variant, const BlockOptions& options);

}  // namespace tutti::harness::measure

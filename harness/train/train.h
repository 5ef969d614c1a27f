// SPDX-License-Identifier: Apache-2.0
// A training. Each rank has a share of the images, computes the gradient of its part of a batch, and adds it up with
// those of the other ranks; all then take the same step. This is done once for each way and algorithm that is asked
// for, from the same first parameters.
//
// Every step is verified. When some steps are over, ranks go through them again: each computes the shares of all ranks
// of every P-th step, one after the other, and adds them in rank order, as a serial run does. What the ranks had must
// have those bits where the system promises to add in that order, and be within P eps sum|g| of it elsewhere. The next
// parameters follow from the gradients that the ranks had.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "harness/backends/group.h"
#include "harness/measure/runner.h"
#include "harness/train/gradients.h"
#include "harness/train/idx.h"

namespace tutti::harness::train {

struct TrainSpec {
  std::string backend;  ///< as rows have it
  std::vector<Way> ways;
  std::vector<std::string> algorithms;  ///< by name, or auto; of a reference: none
  Buffers buffers = Buffers::private_;
  std::size_t batch = 64;  ///< images of one step on all ranks together
  int epochs = 2;
  std::size_t bucket_bytes = 32768;
  float rate = 0.05F;  ///< of learning
  float momentum = 0.9F;
  std::uint64_t seed = 1;
  int cores = 1;  ///< as for choose_algorithm
  bool spans_hosts = false;
  int ranks_per_host = 0;                       ///< see Problem
  std::map<std::string, std::string> refusals;  ///< why an algorithm cannot run where these ranks are
  bool is_traced = false;
};

/// What a training with one way and algorithm came to, as the message `trained` tells it. Times are in microseconds.
struct TrainRow {
  std::string backend;
  std::string gradients;
  std::string algorithm;   ///< `-`: the system's own, or none
  std::int64_t calls = 0;  ///< of one step
  std::int64_t bytes = 0;  ///< of the gradients
  std::int64_t steps = 0;
  double step_us = 0;       ///< median over steps of the slowest rank's
  double computing_us = 0;  ///< median over steps of the slowest rank's, without what is behind the backward pass
  double communication_us =
      0;                ///< median over steps of what is behind the backward pass, of the last rank to get there
  double alone_us = 0;  ///< the same calls with nothing to compute
  double share = 0;     ///< of a step's time in communication, median over steps
  double late = 0;      ///< of a step's time in waiting for the last rank, mean of ranks, median over steps
  std::int64_t straggler = -1;  ///< the rank whose backward pass the others wait for (stragglers.h); -1: there is none
  std::int64_t straggler_last = 0;  ///< steps in which it was the last to get there
  double straggler_share = 0;       ///< of the time of all steps, that another rank waited for it
  double hidden = 0;             ///< 1 - communication / alone, at least 0, where calls overlap with the backward pass
  std::int64_t serial_bits = 0;  ///< steps whose gradients had the bits of the serial sum
  bool needs_bits = false;       ///< the system promises them
  double of_bound = 0;           ///< largest difference from the serial sum / P eps sum|g|
  std::int64_t wrong = 0;        ///< steps
  std::string reason = {};       ///< of the first wrong step
  std::string skipped = {};      ///< why it was not run; then nothing else counts
  std::vector<double> losses;    ///< mean of all ranks, by step or by `steps_of_loss` steps
  std::int64_t steps_of_loss = 1;
  std::vector<double> epoch_losses;
  double accuracy = 0;     ///< share of the held-out images that are recognised in the end
  std::string parameters;  ///< a hash of the last ones
};
/// Calls `visit(word, member)` for every field: the words of the JSON text, and of the files.
template <class Visit>
constexpr void visit_fields(std::type_identity<TrainRow>, Visit visit) {
  visit("backend", &TrainRow::backend);
  visit("gradients", &TrainRow::gradients);
  visit("algorithm", &TrainRow::algorithm);
  visit("calls", &TrainRow::calls);
  visit("bytes", &TrainRow::bytes);
  visit("steps", &TrainRow::steps);
  visit("step_us", &TrainRow::step_us);
  visit("computing_us", &TrainRow::computing_us);
  visit("communication_us", &TrainRow::communication_us);
  visit("alone_us", &TrainRow::alone_us);
  visit("share", &TrainRow::share);
  visit("late", &TrainRow::late);
  visit("straggler", &TrainRow::straggler);
  visit("straggler_last", &TrainRow::straggler_last);
  visit("straggler_share", &TrainRow::straggler_share);
  visit("hidden", &TrainRow::hidden);
  visit("serial_bits", &TrainRow::serial_bits);
  visit("needs_bits", &TrainRow::needs_bits);
  visit("of_bound", &TrainRow::of_bound);
  visit("wrong", &TrainRow::wrong);
  visit("reason", &TrainRow::reason);
  visit("skipped", &TrainRow::skipped);
  visit("losses", &TrainRow::losses);
  visit("steps_of_loss", &TrainRow::steps_of_loss);
  visit("epoch_losses", &TrainRow::epoch_losses);
  visit("accuracy", &TrainRow::accuracy);
  visit("parameters", &TrainRow::parameters);
}
[[nodiscard]] std::string to_json(const TrainRow& row);
[[nodiscard]] Result<TrainRow> train_row_from_json(std::string_view text);

/// How far runner 0 is, as the message `training` tells it now and then.
struct TrainProgress {
  std::int64_t run = 0;  ///< of `runs`
  std::int64_t runs = 0;
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;
};
[[nodiscard]] std::string to_json(const TrainProgress& progress);
[[nodiscard]] Result<TrainProgress> train_progress_from_json(std::string_view text);

/// The functions are called on runner 0 only.
struct TrainPlace {
  Runner& runner;
  Group& world;
  std::function<Status(const TrainRow&)> on_row;
  std::function<Status(const TrainProgress&)> on_progress;
  std::function<Status(std::string_view lines)> on_trace = {};  ///< lines of a trace (README.md)
};

/// One rank's part. Errors: those of the system, the runner and the functions; mismatch where ranks have other images.
Status run_training(const TrainSpec& spec, const DigitSets& sets, const TrainPlace& place);

}  // namespace tutti::harness::train

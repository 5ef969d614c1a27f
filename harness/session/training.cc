// SPDX-License-Identifier: Apache-2.0
#include "harness/session/training.h"

#include "harness/backends/tutti/group.h"
#include "harness/cases/lists.h"
#include "harness/session/systems.h"
#include "harness/train/train.h"

namespace tutti::harness::session {
namespace {

constexpr std::size_t kHeldOut = 256;
constexpr float kMillionth = 1e-6F;

/// Digits are drawn from the seed, the held-out ones from what no rank learns.
Result<DigitSets> images_of(const SessionSpec& spec, const TrainTask& task) {
  const auto most = static_cast<std::size_t>(task.images);
  if (!task.folder.empty()) return read_mnist(task.folder, most, kHeldOut);
  return DigitSets{.learned = draw_digits(spec.seed, most), .held_out = draw_digits(~spec.seed, kHeldOut)};
}

/// Why `name` cannot add up gradients where these ranks are. Empty: it can.
std::string refusal_of(std::string_view name, const SessionSpec& spec, const TrainTask& task,
                       const Topology& topology) {
  Case one;
  one.collective = Collective::all_reduce;
  one.algorithm = name;
  one.ranks = spec.ranks;
  one.count = task.bucket_bytes / static_cast<std::int64_t>(sizeof(float));
  one.bytes = task.bucket_bytes;
  return std::string(stays_on_hosts(one, topology).message());
}

Result<TrainSpec> train_spec(const SessionSpec& spec, const TrainTask& task, const Topology& topology, int cores) {
  const bool is_own = spec.references.empty();
  TrainSpec train{.backend = is_own ? std::string(kOwnBackend) : spec.references.front(),
                  .buffers = task.has_shared_buffers ? Buffers::shared : Buffers::private_,
                  .batch = static_cast<std::size_t>(task.batch),
                  .epochs = task.epochs,
                  .bucket_bytes = static_cast<std::size_t>(task.bucket_bytes),
                  .rate = static_cast<float>(task.rate_millionths) * kMillionth,
                  .momentum = static_cast<float>(task.momentum_millionths) * kMillionth,
                  .seed = spec.seed,
                  .cores = cores,
                  .spans_hosts = topology.spans_hosts(),
                  .ranks_per_host = topology.spans_hosts() ? topology.hosts.ranks_per_host() : 0,
                  .refusals = {},
                  .is_traced = task.is_traced};
  if (is_own) train.algorithms = task.algorithms;
  for (const std::string& name : train.algorithms) {
    std::string why = name == kAuto ? std::string() : refusal_of(name, spec, task, topology);
    if (!why.empty()) train.refusals[name] = std::move(why);
  }
  for (const std::string& name : task.gradients) {
    TUTTI_ASSIGN_OR_RETURN(const auto ways, parse_ways(name));
    train.ways.insert(train.ways.end(), ways.begin(), ways.end());
  }
  return train;
}

}  // namespace

Status train(const SessionSpec& spec, const TrainTask& task, const SessionWalk::Place& place) {
  Runner& runner = place.runner;
  if (has_gpu_memory(spec, place.topology) || runner.ranks().size() != 1) {
    return error(Code::unavailable,
                 "a training has its buffers in the memory of the host, and its ranks are processes "
                 "or threads");
  }
  TUTTI_ASSIGN_OR_RETURN(const DigitSets sets, images_of(spec, task));
  TUTTI_ASSIGN_OR_RETURN(const TrainSpec train, train_spec(spec, task, place.topology, place.cores));
  TUTTI_ASSIGN_OR_RETURN(OwnRanks own, open_own_ranks(spec, place.topology, runner, place.domain,
                                                      communicator_options(spec, runner, place.cores), {}));
  TuttiGroup own_world(std::move(own.communicators.front()), std::make_shared<Schedules>());
  const auto run_on = [&](Group& world) {
    return run_training(
        train, sets,
        {.runner = runner,
         .world = world,
         .on_row = [&](const TrainRow& row) { return place.send("trained", to_json(row)); },
         .on_progress = [&](const TrainProgress& progress) { return place.send("training", to_json(progress)); },
         .on_trace = [&](std::string_view lines) { return place.send("trace", lines); }});
  };
  if (spec.references.empty()) return run_on(own_world);
  TUTTI_ASSIGN_OR_RETURN(const auto reference,
                         open_reference(spec, place.topology, 0, runner, address_of(place.across)));
  // So the launcher knows that the library has started.
  if (runner.index() == 0) TUTTI_RETURN_IF_ERROR(place.send("training", to_json(TrainProgress())));
  {
    const auto world = reference->world([&](Buffers kind) { return own_world.memory(kind); });
    TUTTI_RETURN_IF_ERROR(run_on(*world));
  }
  return reference->close();
}

}  // namespace tutti::harness::session

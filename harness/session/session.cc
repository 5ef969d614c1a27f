// SPDX-License-Identifier: Apache-2.0
#include "harness/session/session.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "harness/backends/reference.h"
#include "harness/backends/tutti/group.h"
#include "harness/board/binding.h"
#include "harness/measure/mesh.h"
#include "harness/measure/order.h"
#include "harness/measure/runner.h"
#include "harness/session/systems.h"
#include "harness/session/training.h"
#include "harness/session/walk.h"
#include "harness/soak/soak.h"
#include "impl/transports/hosts.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tutti::harness::session {
namespace {

int runners_of(const SessionSpec& spec) { return spec.ranks_as->runners(spec.ranks); }

bool spans_hosts(const Domain& domain) { return domain.hosts() != nullptr && domain.hosts()->count() > 1; }

Status soak(const SessionSpec& spec, const SoakTask& task, const SessionWalk::Place& place) {
  Runner& runner = place.runner;
  if (place.topology.has_gpu_memory()) {
    return error(Code::unavailable,
                 "a soak has its buffers in the memory of the host, where blocks on a GPU cannot "
                 "reach them; --device host runs thread blocks as threads of the host");
  }
  if (place.topology.ranks_on == RanksOn::own_device) {
    return error(
        Code::unavailable,
        "a soak sends between single ranks, which processes with a GPU each cannot: --ranks-as blocks runs it");
  }
  TUTTI_ASSIGN_OR_RETURN(OwnRanks own,
                         open_own_ranks(spec, place.topology, runner, place.domain,
                                        communicator_options(spec, runner, place.cores), {.pace = runner.order()}));
  const auto own_world = [&](int rank) -> Result<std::unique_ptr<Group>> {
    const auto at = std::ranges::find(runner.ranks(), rank) - runner.ranks().begin();
    auto& world = own.communicators[static_cast<std::size_t>(at)];
    return std::unique_ptr<Group>(new TuttiGroup(std::move(world), std::make_shared<Schedules>()));
  };
  const auto tell = [&](const SoakProgress& progress) { return place.send("soaked", to_json(progress)); };
  const SoakSpec mix{.operations = task.operations,
                     .seed = spec.seed,
                     .ranks = spec.ranks,
                     .ranks_as = spec.ranks_as,
                     .spans_hosts = spans_hosts(place.domain),
                     .timeout = spec.timeout};
  SoakResult result;
  if (spec.references.empty()) {
    TUTTI_ASSIGN_OR_RETURN(result, run_soak(mix, {.runner = runner, .world = own_world, .on_progress = tell}));
  } else {
    TUTTI_ASSIGN_OR_RETURN(const auto memory, own_world(runner.index()));
    TUTTI_ASSIGN_OR_RETURN(const auto reference,
                           open_reference(spec, place.topology, 0, runner, address_of(place.across)));
    if (runner.index() == 0) TUTTI_RETURN_IF_ERROR(tell({}));  // so the launcher knows that the library has started
    const auto world = [&](int) {
      return Result(reference->world([&](Buffers kind) { return memory->memory(kind); }));
    };
    TUTTI_ASSIGN_OR_RETURN(result, run_soak(mix, {.runner = runner, .world = world, .on_progress = tell}));
    TUTTI_RETURN_IF_ERROR(reference->close());
  }
  return runner.index() == 0 ? place.send("soak", to_json(result)) : Status();
}

RunnerOptions runner_options(const SessionSpec& spec, int runner, bool is_crowded) {
  RunnerOptions options{.runner = runner,
                        .runners = runners_of(spec),
                        .job_ranks = spec.ranks,
                        .ranks = spec.ranks_as->ranks_of(runner, spec.ranks),
                        .timeout = spec.timeout};
  options.yields = is_crowded;
  options.has_crowd = spec.conditions.crowd > 0;
  options.naps = spec.as<CheckTask>() != nullptr || spec.as<RepeatTask>() != nullptr;
  if (!spec.ranks_as->is_process) options.grace = {};
  return options;
}

/// What the runners of a session share.
struct SharedPlace {
  const SessionSpec& spec;
  const Topology& topology;
  const SessionPlace& place;
  const std::vector<std::vector<int>>& masks;  ///< by runner; of a job on several machines, by place on the cores here
  Domain& domain;
  int cores;  ///< see cores_together
  Exchange& exchange;
};

/// A check has new buffers for every case. So malloc keeps the memory of the last ones, and the kernel need not clear
/// pages for each. Not for tasks: they gain little and take half as much memory again. Nothing is measured in a check.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestFromHeap = 32 << 20;  // the most that glibc allows
  mallopt(M_MMAP_THRESHOLD, kLargestFromHeap);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, kLargestFromHeap);
#endif
}

/// Connections beside those of the transport. All ranks call it.
Result<std::unique_ptr<Exchange>> join_mesh(const SessionSpec& spec, const SessionPlace& place, const Hosts& runners) {
  MeshPlace mesh{.runner = place.rank,
                 .interface = place.across->interface,
                 .address = place.across->exchange_address,
                 .listener = place.exchange_listener,
                 .timeout = spec.timeout};
  for (int rank = 0; rank < spec.ranks; ++rank) mesh.machines.push_back(runners.host_of(rank));
  TUTTI_ASSIGN_OR_RETURN(mesh.key, tcp::secret_from(place.across->key));
  TUTTI_ASSIGN_OR_RETURN(auto joined, Mesh::join(mesh));
  return std::unique_ptr<Exchange>(std::move(joined));
}

Status run_runner(const SharedPlace& shared, int index) {
  const SessionSpec& spec = shared.spec;
  const SessionPlace& place = shared.place;
  int mask = place.across != nullptr ? place.across->first_on_cores + place.at.local : index;
  if (place.keeps_cores) mask = 0;
  const Status bound = bind_this_thread(shared.masks[static_cast<std::size_t>(mask)]);
  // If nobody asked for it, the thread stays where it may run.
  if (!bound.is_ok() && spec.conditions.topology.bind) {
    place.board.abort_flag().store(1, std::memory_order_release);
    return bound;
  }
  std::optional<Order> order;
  if (spec.order_seed() && spec.ranks_as->is_one_thread()) order.emplace(*spec.order_seed(), spec.ranks);
  RunnerOptions options = runner_options(spec, index, is_crowded(shared.masks));
  options.at = place.at;
  if (!spec.ranks_as->is_process) options.at.local += options.ranks.front();
  options.order = order ? &*order : nullptr;
  options.exchange = &shared.exchange;
  Runner runner(place.board, options);
  shared.exchange.answer_clock(&runner.clock());
  TUTTI_RETURN_IF_ERROR(runner.compare_clocks());
  const SessionWalk::Place here{.topology = shared.topology,
                                .runner = runner,
                                .domain = shared.domain,
                                .send = place.send,
                                .cores = shared.cores,
                                .across = place.across};
  const auto* const soaked = spec.as<SoakTask>();
  const auto* const training = spec.as<TrainTask>();
  Status status = soaked != nullptr     ? soak(spec, *soaked, here)
                  : training != nullptr ? train(spec, *training, here)
                                        : SessionWalk(spec, here).run();
  if (!status.is_ok()) place.board.abort_flag().store(1, std::memory_order_release);
  return status;
}

/// Runs one runner on each of `runners` threads; returns the error that explains most.
Status run_on_threads(const SharedPlace& shared, int runners) {
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int index = 0; index < runners; ++index) {
    threads.emplace_back([&, index] {
      const Status status = run_runner(shared, index);
      const std::lock_guard lock(mutex);
      const bool explains_more = first.is_ok() || first.code() == Code::aborted;
      if (!status.is_ok() && explains_more) first = status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace

namespace {

/// The memory of the ranks, for a process that only looks at it; null if it cannot be opened.
std::unique_ptr<Domain> domain_at(const SessionSpec& spec, int domain_fd, std::optional<int> machine) {
  if (domain_fd < 0) return nullptr;
  const Across across{.host = machine.value_or(0)};
  const auto topology = topology_of(spec);
  if (!topology.is_ok()) return nullptr;
  auto domain = topology.value().transport->open(topology.value().domain_shape(spec.heap_bytes),
                                                 {.memory = domain_fd, .across = machine ? &across : nullptr});
  return domain.is_ok() ? std::move(domain).value() : nullptr;
}

/// `machine`: of a job on several.
RanksSeen seen_in(const SessionSpec& spec, int domain_fd, std::optional<int> machine) {
  const std::unique_ptr<Domain> domain = domain_at(spec, domain_fd, machine);
  if (domain == nullptr) return {};
  return {.standings = standings_of(*domain), .calls = last_calls(*domain, kMostCalls)};
}

RankStanding standing_of(const Progress& one) {
  RankStanding standing{.text = "its communicator " + one.text};
  if (!one.waits) return standing;
  const Standing& at = one.standing;
  standing.wait = RankWait{.operation = at.operation,
                           .step = at.steps > 0 ? std::optional<std::int64_t>(at.step) : std::nullopt,
                           .peer = at.peer < 0 ? std::nullopt : std::optional<int>(at.peer),
                           .bytes = at.bytes > 0 ? std::optional(at.bytes) : std::nullopt};
  return standing;
}

}  // namespace

RanksSeen seen_of(const SessionSpec& spec, int domain_fd) { return seen_in(spec, domain_fd, std::nullopt); }

RanksSeen seen_on_host(const std::string& payload, int machine, int domain_fd) {
  const auto spec = session_in_payload(payload);
  return spec.is_ok() ? seen_in(spec.value(), domain_fd, machine) : RanksSeen();
}

std::vector<RankStanding> standings_of(const Domain& domain) {
  const std::vector<Progress> all = progress_of(domain);
  if (std::ranges::none_of(all, &Progress::waits)) return {};  // it is not ours that hangs
  std::vector<RankStanding> standings;
  for (const Progress& one : all) standings.push_back(standing_of(one));
  return standings;
}

Status run_session(const SessionSpec& spec, const SessionPlace& place) {
  if (spec.as<CheckTask>() != nullptr && !spec.ranks_as->is_one_thread()) keep_freed_memory();
  // Threads of blocks inherit the mask of the one that calls for all ranks.
  // A rank that somebody has bound is taken to have its cores for itself.
  const bool binds_nothing = spec.ranks_as->is_on_device || place.keeps_cores;
  const auto bind = binds_nothing ? std::optional(Bind::none) : spec.conditions.topology.bind;
  const AcrossPlace* const far = place.across;
  const int on_cores = place.keeps_cores ? 1 : far != nullptr ? far->ranks_on_cores : runners_of(spec);
  TUTTI_ASSIGN_OR_RETURN(const auto masks, masks_for(bind, on_cores, places_here()));
  int together = cores_together(spec.ranks_as);  // before threads are pinned
  // As if all machines were like this one.
  if (far != nullptr || place.keeps_cores) together = together * spec.ranks / on_cores;
  TUTTI_ASSIGN_OR_RETURN(const Topology topology, topology_of(spec));
  std::unique_ptr<Exchange> mesh;
  std::optional<Across> across;
  if (far != nullptr) {
    across = Across{.host = topology.hosts.host_of(place.rank),
                    .interface = far->interface,
                    .address = far->domain_address,
                    .listener = place.domain_listener,
                    .key = far->key};
    if (topology.spans_hosts()) {
      TUTTI_ASSIGN_OR_RETURN(mesh, join_mesh(spec, place, topology.hosts));
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<Domain> domain,
                         topology.transport->open(topology.domain_shape(spec.heap_bytes),
                                                  {.memory = place.domain_fd,
                                                   .rank = spec.ranks_as->is_process ? place.rank : -1,
                                                   .seed = spec.seed,
                                                   .timeout = spec.timeout,
                                                   .across = across ? &*across : nullptr}));
  const SharedPlace shared{.spec = spec,
                           .topology = topology,
                           .place = place,
                           .masks = masks,
                           .domain = *domain,
                           .cores = together,
                           .exchange = mesh != nullptr ? *mesh : shared_board()};
  if (spec.ranks_as->is_process) return run_runner(shared, place.rank);
  if (spec.ranks_as->ranks_of_runner == 0) return run_runner(shared, 0);
  return run_on_threads(shared, runners_of(spec));
}

}  // namespace tutti::harness::session

// SPDX-License-Identifier: Apache-2.0
#include "harness/session/systems.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "harness/cases/compositions.h"
#include "harness/measure/order.h"
#include "harness/session/meeting.h"
#include "harness/verify/device_opener.h"
#include "harness/verify/device_verifier.h"
#include "impl/communicator/blocks.h"
#include "impl/cuda/runtime.h"
#include "impl/device/opener.h"
#include "impl/device/teams.h"
#include "impl/transports/peer_memory.h"

namespace tutti::harness::session {
namespace {

/// That there are as many GPUs as thread blocks are dealt over.
Status check_gpus(const SessionSpec& spec, const cuda::Runtime& runtime) {
  if (!spec.ranks_as->is_on_device || spec.conditions.topology.gpus <= runtime.devices) return {};
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return error(Code::unavailable, "--gpus {}: this process has {} GPU{} (CUDA_VISIBLE_DEVICES is {}); {}",
               spec.conditions.topology.gpus, runtime.devices, runtime.devices == 1 ? "" : "s",
               visible == nullptr ? "not set" : fmt::format("'{}'", visible), kInsteadOfGpu);
}

/// That this process's rank has one of its own, as the ranks before it on this machine have.
Status check_own_gpu(int local, const cuda::Runtime& runtime) {
  if (local < runtime.devices) return {};
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return error(
      Code::unavailable,
      "GPU {} is out of range: this process has {} GPU{} (CUDA_VISIBLE_DEVICES is {}), and each process takes one "
      "of its own; {}",
      local, runtime.devices, runtime.devices == 1 ? "" : "s",
      visible == nullptr ? "not set" : fmt::format("'{}'", visible), kSeveralOnOneGpu);
}

/// All of them, before any runs: what loads kernels while one spins waits for it, and that one for ever.
Result<std::vector<std::unique_ptr<Device>>> open_devices(const SessionSpec& spec) {
  std::vector<std::unique_ptr<Device>> devices;
  const int count = spec.conditions.topology.gpus;
  if (spec.conditions.topology.device == RunsOn::host) {
    for (int i = 0; i < count; ++i) devices.push_back(make_host_teams(count));
    return devices;
  }
  const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  const bool has_no_gpu =
      found.lack == cuda::Lack::driver || found.lack == cuda::Lack::newer_driver || found.lack == cuda::Lack::device;
  if (has_no_gpu) return error(Code::unavailable, "{}; {}", found.why, kInsteadOfGpu);
  if (found.runtime != nullptr) TUTTI_RETURN_IF_ERROR(check_gpus(spec, *found.runtime));
  for (int i = 0; i < count; ++i) {
    TUTTI_ASSIGN_OR_RETURN(auto gpu, open_gpu(spec.transport_directories, i));
    devices.push_back(std::move(gpu));
  }
  return devices;
}

/// Of ranks that are processes: a GPU may have kernels of several groups at work at once, and all need room.
constexpr int kLanesOfProcesses = 16;

/// `lanes`: where nobody says.
TeamShape blocks_of_rank(const TopologyOptions& asked, const Device& device, int lanes) {
  return {.lanes = asked.lanes > 0 ? asked.lanes : lanes,
          .threads = asked.block_threads > 0 ? asked.block_threads : device.usual_threads()};
}

/// That of this process's rank.
Result<std::unique_ptr<Device>> open_own_device(const SessionSpec& spec, int local) {
  if (spec.conditions.topology.device == RunsOn::host) return std::unique_ptr<Device>(make_host_teams());
  const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  if (found.runtime == nullptr) return error(Code::unavailable, "{}; {}", found.why, kInsteadOfGpu);
  TUTTI_RETURN_IF_ERROR(check_own_gpu(local, *found.runtime));
  return open_gpu(spec.transport_directories, local);
}

/// How a rank is slow on purpose.
Slowness slowness_of(const Conditions& conditions, int rank) {
  const auto& [slow_rank, slow_link] = std::tie(conditions.slow_rank, conditions.slow_link);
  Slowness slow;
  if (slow_rank.rank == rank) slow.percent = slow_rank.percent;
  if (slow_link.first == rank || slow_link.second == rank) {
    slow.peer = slow_link.first == rank ? slow_link.second : slow_link.first;
    slow.peer_percent = slow_link.percent;
  }
  return slow;
}

/// The rank of this process on its device.
Result<OwnRanks> open_on_own_device(const SessionSpec& spec, const Runner& runner, Domain& domain,
                                    const CommunicatorOptions& options, const Hooks& hooks) {
  OwnRanks own;
  TUTTI_ASSIGN_OR_RETURN(own.devices.emplace_back(), open_own_device(spec, runner.at().local));
  Device& device = *own.devices.front();
  const TeamShape blocks =
      blocks_of_rank(spec.conditions.topology, device, std::min(device.usual_lanes(1), kLanesOfProcesses));
  TUTTI_ASSIGN_OR_RETURN(auto communicator,
                         create_on_own_device(domain, runner.index(), device, blocks, options, hooks));
  own.communicators.push_back(std::move(communicator));
  return own;
}

/// What a runner says of the others.
struct Reached {
  bool all;
};

/// The ranks' processes, if each reads and writes the memory of all others; else null, on all runners alike.
Result<std::shared_ptr<const std::vector<int>>> open_to_each_other(const SessionSpec& spec, const Topology& topology,
                                                                   Runner& runner) {
  using Processes = std::shared_ptr<const std::vector<int>>;
  if (!spec.ranks_as->is_process || topology.spans_hosts()) return Processes();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<MemoryOffer> offers, runner.exchange(offer_memory()));
  const bool reaches_all = std::ranges::all_of(offers, [](const auto& one) { return try_memory(one).is_ok(); });
  TUTTI_ASSIGN_OR_RETURN(const auto reached, runner.exchange(Reached{reaches_all}));
  if (!std::ranges::all_of(reached, &Reached::all)) return Processes();
  std::vector<int> processes;
  for (const MemoryOffer& one : offers) processes.push_back(static_cast<int>(one.process));
  return Processes(std::make_shared<const std::vector<int>>(std::move(processes)));
}

std::int64_t last_level_cache_bytes() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return l3 > 0 ? l3 : std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
}

}  // namespace

CommunicatorOptions communicator_options(const SessionSpec& spec, const Runner& runner, int cores) {
  CommunicatorOptions options;
  // A runner of several ranks has the others to turn to: what one of them waits for does not come while it spins.
  const bool has_company = runner.ranks().size() > 1 || runner.order() != nullptr;
  options.waiting = runner.yields() || has_company ? Waiting::yield : Waiting::spin;
  options.cores = cores;
  if (!spec.ranks_as->is_on_device) options.ranks_per_cache = spec.conditions.topology.ranks_per_cache;
  options.timeout = runner.timeout();
  options.cache_bytes = last_level_cache_bytes();
  options.table = spec.conditions.selection.table;
  options.prove_plans |= spec.as<CheckTask>() != nullptr || spec.as<FaultsTask>() != nullptr;
  return options;
}

Result<OwnRanks> open_own_ranks(const SessionSpec& spec, const Topology& topology, Runner& runner, Domain& domain,
                                CommunicatorOptions options, const Hooks& hooks) {
  OwnRanks own;
  if (topology.ranks_on == RanksOn::own_device) return open_on_own_device(spec, runner, domain, options, hooks);
  if (topology.ranks_on == RanksOn::cores) {
    TUTTI_ASSIGN_OR_RETURN(options.processes, open_to_each_other(spec, topology, runner));
    for (const int rank : runner.ranks()) {
      Hooks own_hooks = hooks;
      own_hooks.slow = slowness_of(spec.conditions, rank);
      TUTTI_ASSIGN_OR_RETURN(auto communicator, create_with_hooks(domain, rank, options, std::move(own_hooks)));
      own.communicators.push_back(std::move(communicator));
    }
    return own;
  }
  const TopologyOptions& asked = topology.asked.options;
  TUTTI_ASSIGN_OR_RETURN(own.devices, open_devices(spec));
  std::vector<Device*> devices;
  for (const auto& device : own.devices) devices.push_back(device.get());
  const int ranks_there = (spec.ranks + asked.gpus - 1) / asked.gpus;  // on the first, which has the most
  // Faults are put into calls of one segment, and lanes cut a call.
  const int most_lanes = spec.as<FaultsTask>() != nullptr ? 1 : kMostLanes;
  const TeamShape blocks =
      blocks_of_rank(asked, *devices.front(), std::min(devices.front()->usual_lanes(ranks_there), most_lanes));
  TUTTI_ASSIGN_OR_RETURN(own.communicators, create_as_blocks(domain, devices, blocks, options, hooks));
  return own;
}

Status Systems::open_own(Domain& domain, const CommunicatorOptions& options, const Hooks& hooks) {
  TUTTI_ASSIGN_OR_RETURN(OwnRanks own, open_own_ranks(spec_, topology_, runner_, domain, options, hooks));
  own_ = nullptr;
  devices_ = std::move(own.devices);
  own_ = OwnBackend::over(domain, std::move(own.communicators));
  own_->set_memory(memory_kind_of(spec_, topology_, own_->name()));
  if (topology_.ranks_on == RanksOn::own_device) own_->set_without_shared();
  return {};
}

Status Systems::open(const CommunicatorOptions& options, AfterBind after_bind) {
  TUTTI_RETURN_IF_ERROR(open_memory());
  verify_on_teams();
  const Hooks hooks{.pace = runner_.order(), .after_bind = std::move(after_bind)};
  TUTTI_RETURN_IF_ERROR(open_own(domain_, options, hooks));
  by_name_[own_->name()] = own_.get();
  for (std::size_t i = 0; i < spec_.references.size(); ++i) {
    TUTTI_ASSIGN_OR_RETURN(auto reference, reference_of(i));
    by_name_[spec_.references[i]] = reference.get();
    references_.push_back(std::move(reference));
  }
  add_twins();
  add_compositions();
  return {};
}

Result<std::unique_ptr<ReferenceBackend>> open_reference(const SessionSpec& spec, const Topology& topology,
                                                         std::size_t index, Runner& runner,
                                                         const std::string& address) {
  runner.set_case(number_of_reference(spec, index));
  runner.announce(Activity::operation);  // the library's own code runs from here on
  TUTTI_ASSIGN_OR_RETURN(auto reference, ReferenceBackend::create(spec.references[index], spec.backend_directories));
  reference->set_memory(memory_kind_of(spec, topology, reference->name()));
  TUTTI_RETURN_IF_ERROR(Meeting(runner, address).open(*reference, runner.index()));
  runner.settle();
  return reference;
}

Result<std::unique_ptr<ReferenceBackend>> Systems::reference_of(std::size_t index) {
  if (!spec_.ranks_as->is_process) return ReferenceBackend::skipped(spec_.references[index]);
  return open_reference(spec_, topology_, index, runner_, address_);
}

Status Systems::open_own_afresh(const CommunicatorOptions& options) {
  own_ = nullptr;
  TUTTI_ASSIGN_OR_RETURN(own_domain_,
                         topology_.transport->open(topology_.domain_shape(spec_.heap_bytes), {.seed = spec_.seed}));
  TUTTI_RETURN_IF_ERROR(open_own(*own_domain_, options, {.pace = runner_.order()}));
  by_name_[own_->name()] = own_.get();
  add_twins();
  add_compositions();
  return {};
}

Status Systems::enter_group(int colour, int key) {
  TUTTI_ASSIGN_OR_RETURN(auto group, own_->in_group(colour, key));
  own_of_all_ = std::exchange(own_, std::move(group));
  by_name_[own_->name()] = own_.get();
  for (std::size_t i = 0; i < references_.size(); ++i) {
    runner_.set_case(number_of_reference(spec_, i));
    runner_.announce(Activity::operation);
    if (spec_.ranks_as->is_process) TUTTI_RETURN_IF_ERROR(references_[i]->enter_group(colour, key));
    runner_.settle();
  }
  add_twins();
  return {};
}

void Systems::add_twins() {
  twins_.clear();
  for (const std::string& name : spec_.twins) {
    const std::string backend(instance_of(name));
    Backend& first = backend == own_->name() ? *own_ : named(backend);
    by_name_[name] = twins_.emplace_back(std::make_unique<TwinBackend>(first, name)).get();
  }
}

void Systems::add_compositions() {
  compositions_.clear();
  std::set<std::string> names;
  for (const std::vector<Case>& cell : spec_.cells) {
    for (const Case& one : cell) {
      if (is_composition(one.backend)) names.insert(one.backend);
    }
  }
  for (const std::string& name : names) {
    const std::string backend(instance_of(name));
    Backend& inner = backend == own_->name() ? *own_ : named(backend);
    compositions_.push_back(std::make_unique<CompositionBackend>(
        inner, name, CompositionBackend::Place{.ranks = runner_.ranks(), .memory = memory()}));
    by_name_[name] = compositions_.back().get();
  }
}

Status Systems::close() {
  for (std::size_t i = 0; i < references_.size(); ++i) {
    runner_.set_case(number_of_reference(spec_, i));
    runner_.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(references_[i]->close());
    runner_.settle();
  }
  return {};
}

Result<std::vector<std::unique_ptr<CudaMemory>>> open_gpu_memory(const SessionSpec& spec, const LocalRanks& ranks,
                                                                 const std::shared_ptr<const cuda::Runtime>& runtime) {
  std::vector<std::unique_ptr<CudaMemory>> memory;
  std::map<int, std::shared_ptr<const DeviceVerifier>> verifiers;  // by GPU: ranks of one are verified together
  for (std::size_t i = 0; i < ranks.count; ++i) {
    const int index = static_cast<int>(i);
    const int device = spec.ranks_as->is_on_device
                           ? device_dealt(index, static_cast<int>(ranks.count), spec.conditions.topology.gpus)
                           : ranks.first + index;
    TUTTI_ASSIGN_OR_RETURN(auto one, CudaMemory::open(runtime, device));
    if (!verifiers.contains(device)) verifiers[device] = gpu_verifier(spec.transport_directories, device);
    one->set_verifier(verifiers[device]);
    memory.push_back(std::move(one));
  }
  return memory;
}

Status Systems::open_memory() {
  if (!has_gpu_memory(spec_, topology_)) return {};
  if (spec_.conditions.cache == CacheState::rotate) {
    return error(
        Code::unavailable,
        "--cache rotate: its sets of buffers are as many as put each other out of the host's cache, and a GPU's "
        "is another one: did you mean --cache cold, which writes over the GPU's?");
  }
  const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  if (found.runtime == nullptr) {
    const bool needs_gpu = topology_.on_devices();
    return error(Code::unavailable, "{}{}{}", found.why, needs_gpu ? "; " : "", needs_gpu ? kInsteadOfGpu : "");
  }
  TUTTI_RETURN_IF_ERROR(check_gpus(spec_, *found.runtime));
  if (topology_.ranks_on == RanksOn::own_device) {
    TUTTI_RETURN_IF_ERROR(check_own_gpu(runner_.at().local, *found.runtime));
  }
  const LocalRanks ranks{.first = runner_.at().local, .count = runner_.ranks().size()};
  TUTTI_ASSIGN_OR_RETURN(memory_, open_gpu_memory(spec_, ranks, found.runtime));
  return {};
}

void Systems::verify_on_teams() {
  constexpr int kMostRanks = 4;  // of more the host itself verifies, which is several times as fast
  const bool is_on_teams = topology_.on_devices() && topology_.asked.options.device == RunsOn::host;
  if (!is_on_teams || spec_.ranks > kMostRanks) return;
  // One team of the calling thread: others would take the cores that the ranks' teams need.
  constexpr RunnerTeams kTeams{.teams = 1, .threads = 1};
  teams_memory_ = verified_host_memory(std::make_shared<DeviceVerifier>(make_teams_runner(kTeams)));
}

MemorySource Systems::memory() {
  return [this](const Case& which, std::size_t index) {
    if (memory_kind_of(spec_, topology_, which.backend) == MemoryKind::cuda) return memory_[index]->allocator();
    Allocator allocator = own_->allocator(which, index);
    if (teams_memory_ != nullptr) allocator.kind = teams_memory_.get();
    return allocator;
  };
}

std::vector<verify::Memory*> Systems::gpu_memory() const {
  std::vector<verify::Memory*> memory;
  for (const auto& one : memory_) memory.push_back(one.get());
  return memory;
}

Status Systems::supports(const Case& one) const {
  if (spec_.conditions.is_slowed() && backend_of(one.backend) != kOwnBackend) {
    return error(
        Code::unavailable,
        "{} moves bytes by itself: only the collectives of {} can be slow on purpose (--slow-rank, --slow-link)",
        one.backend, kOwnBackend);
  }
  return named(one.backend).supports(one);
}

Variant::Request Systems::request_for(Backend& backend, const Case& one) {
  const Rotation rotation = rotation_of(one, spec_.conditions.cache);
  return {.backend = backend,
          .memory = memory(),
          .instance = one,
          .seed = spec_.seed,
          .conditions = spec_.conditions,
          .misaligns = spec_.as<CheckTask>() != nullptr,
          .takes_elements = topology_.on_devices(),
          .is_asynchronous = spec_.conditions.overlap_calls > 0 && has_data(one.collective),
          .rotation = rotation,
          .filler = filler(rotation)};
}

std::span<const std::byte> Systems::filler(const Rotation& rotation) {
  const auto bytes = static_cast<std::size_t>(rotation.filler_bytes);
  if (filler_.size() < bytes) filler_.assign(bytes, std::byte{1});
  return filler_;
}

}  // namespace tutti::harness::session

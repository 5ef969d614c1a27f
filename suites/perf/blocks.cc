// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/blocks.h"

#include <unistd.h>

#include "harness/backends/loader.h"
#include "impl/cuda/runtime.h"
#include "impl/device/opener.h"

namespace tutti::perf {

Status check_blocks(const Settings& settings, int processes) {
  if (settings.lanes > 0 && !settings.device) {
    return error(Code::invalid_argument,
                 "--lanes {}: has no meaning without --device gpu or --device host, whose ranks are thread blocks; "
                 "leave it out",
                 settings.lanes);
  }
  if (!settings.device || processes == 1) return {};
  return error(Code::invalid_argument,
               "--device {}: thread blocks are the ranks of one process, and these are {}: did you mean -g {}?",
               to_string(*settings.device), processes, processes * settings.ranks_here());
}

std::string blocks_text(const Settings& settings) {
  const int ranks = settings.ranks_here(), devices = devices_of_blocks(settings);
  const bool is_on_host = settings.device == harness::RunsOn::host;
  const std::string each = settings.lanes > 0 ? fmt::format(" ({} a rank)", settings.lanes) : "";
  return fmt::format("{} {} in 1 process, thread blocks{} of {} {}{}", ranks, ranks == 1 ? "rank" : "ranks", each,
                     devices, is_on_host ? "set" : "GPU", devices == 1 ? "" : "s") +
         (is_on_host ? " of threads of the host" : "");
}

Result<std::unique_ptr<BlockRanks>> BlockRanks::open(harness::Runner& runner, Domain& domain, const Settings& settings,
                                                     std::shared_ptr<const SelectionTable> table) {
  auto ranks = std::make_unique<BlockRanks>();
  harness::SessionSpec& spec = ranks->spec_;
  spec.ranks = settings.ranks_here();
  spec.ranks_as = harness::RanksAs::blocks;
  spec.transport_directories = harness::directories_named_by("TUTTI_TRANSPORTS");
  spec.conditions.selection.table = std::move(table);
  spec.conditions.topology.device = *settings.device;
  spec.conditions.topology.gpus = devices_of_blocks(settings);
  if (settings.lanes > 0) spec.conditions.topology.lanes = settings.lanes;
  TUTTI_ASSIGN_OR_RETURN(harness::Topology made, harness::topology_of(spec));
  const harness::Topology& topology = ranks->topology_.emplace(std::move(made));
  const bool has_gpus = topology.has_gpu_memory();
  for (int device = 0; has_gpus && device < spec.conditions.topology.gpus; ++device) ranks->taken_.begin(device);
  const auto usable = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  TUTTI_ASSIGN_OR_RETURN(
      harness::OwnRanks own,
      harness::open_own_ranks(spec, topology, runner, domain, harness::communicator_options(spec, runner, usable), {}));
  if (has_gpus) {
    const cuda::FoundRuntime& found = cuda_runtime();
    if (found.runtime == nullptr) return error(Code::unavailable, "{}; {}", found.why, kInsteadOfGpu);
    TUTTI_ASSIGN_OR_RETURN(
        ranks->memory_, harness::open_gpu_memory(spec, {.count = static_cast<std::size_t>(spec.ranks)}, found.runtime));
  }
  ranks->devices_ = std::move(own.devices);
  ranks->backend_ = harness::OwnBackend::over(domain, std::move(own.communicators));
  ranks->backend_->set_memory(memory_kind_of(spec, topology, ranks->backend_->name()));
  ranks->taken_.set_opened();
  return ranks;
}

harness::MemorySource BlockRanks::memory() {
  return [this](const harness::Case& one, std::size_t index) {
    return memory_.empty() ? backend_->allocator(one, index) : memory_[index]->allocator();
  };
}

}  // namespace tutti::perf

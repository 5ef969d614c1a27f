// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/cuda/domain.h"

#include "impl/cuda/runtime.h"
#include "impl/transports/build.h"
#include "impl/transports/shm/domain.h"

namespace tutti::cuda {
namespace {

constexpr const char* kName = "cuda";

/// "2 GPUs". A process takes the one whose number is its own on the machine.
Result<std::string> gpus(const Surroundings& here) {
  const FoundRuntime found = find_runtime(here.environment);
  if (found.runtime == nullptr) return error(Code::unavailable, "{}", found.why);
  return fmt::format("{} GPU{}", found.runtime->devices, found.runtime->devices == 1 ? "" : "s");
}

}  // namespace

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kName,
      .note = "processes of one node, each on a GPU of its own",
      .serves = bit_of(RanksIn::own_processes),
      .addresses_peers = true,
      .spans_hosts = false,
      .shape = [](int ranks, int, std::size_t heap_bytes) { return default_shape(ranks, heap_bytes); },
      .shared_bytes = [](const DomainShape& shape, RanksIn) { return domain_bytes(shape); },
      .open = [](const DomainShape& shape,
                 const Opening& opening) { return shm::open_domain_of(kName, shape, opening.memory); },
      .devices = gpus,
      .has_gpu_each = true,
  };
  return kRow;
}

}  // namespace tutti::cuda

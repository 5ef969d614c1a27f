// SPDX-License-Identifier: Apache-2.0
// A double of the kernels that ranks as thread blocks run, and of what launches them: with impl/device/cuda/device.cu a
// GPU as a device, where there is none. A launch is an item on its stream, late as any other, that runs the kernels'
// text on threads of the host, one for each block. It refuses what a GPU would: a stream of another GPU than the
// current one, and memory of a GPU that was not made a peer.
//
// Its log has a line for each GPU whose kernels are loaded ("kernels on 0"), and each launch ("blocks on 0: 2"; into a
// graph "captured blocks on 0: 2").
#include <cuda_runtime.h>
#include <map>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <vector>

#include "impl/device/cuda/kernels.h"
#include "impl/device/teams.h"
#include "suites/backends/doubles/memory.h"
#include "suites/backends/doubles/settings.h"

extern "C" int tutti_double_device_of_stream(tutti::cuda::Stream stream);

namespace tutti::cuda {
namespace {

constexpr Error kInvalidResourceHandle = 400, kIllegalAddress = 700, kTooManyBlocks = 720;
constexpr int kBlocksOfMultiprocessor = 64;

/// What stands for the address of a kernel.
struct Kernel {
  Dtype dtype;
  Op op;
};

KernelRow row_of(Dtype dtype) {
  KernelRow row;
  for (const Op op : all_ops()) {
    if (op_exists(op, dtype))
      row.of_op[static_cast<std::size_t>(op)] = new Kernel{dtype, op};  // as long as the process
  }
  row.of_op[static_cast<std::size_t>(Op::none)] = new Kernel{dtype, Op::none};
  return row;
}

/// Of each stream, as long as the process: launches of two streams run at once.
HostTeams& teams_of(Stream stream) {
  static auto& mutex = *new std::mutex();
  static auto& all = *new std::map<Stream, std::unique_ptr<HostTeams>>();
  const std::lock_guard lock(mutex);
  std::unique_ptr<HostTeams>& one = all[stream];
  if (one == nullptr) one = make_host_teams();
  return *one;
}

struct Launch {
  Stream stream;
  DeviceLaunch what;
  bool is_captured;  ///< then it is kept
};
/// Of graphs, which may be launched as long as the process.
Launch* kept(std::unique_ptr<Launch> launch) {
  static auto& mutex = *new std::mutex();
  static auto& all = *new std::vector<std::unique_ptr<Launch>>();
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(launch)).get();
}
/// An item on a stream.
void run(void* argument) {
  auto* const launch = static_cast<Launch*>(argument);
  HostTeams& teams = teams_of(launch->stream);
  const Result<Device::Ticket> ticket = teams.launch(launch->what);
  if (!launch->is_captured) delete launch;
  while (ticket.is_ok() && !teams.is_complete(ticket.value()).value()) sched_yield();
}

template <class T>
const T* found(const T* there, std::size_t count) {
  return static_cast<const T*>(tutti_double_at(there, count * sizeof(T)));
}

/// Whether all that ranks of a launch look at is of this GPU or a peer.
bool reaches_all(int device, const DeviceWorld& world) {
  const auto boards = found(world.boards, static_cast<std::size_t>(world.devices));
  const auto slabs = found(world.slabs, static_cast<std::size_t>(world.ranks));
  if (boards == nullptr || slabs == nullptr || tutti_double_device_of(world.boards) != device) return false;
  std::vector<const std::byte*> all(boards, boards + world.devices);
  all.insert(all.end(), slabs, slabs + world.ranks);
  for (const std::byte* const one : all) {
    const int owner = tutti_double_device_of(one);
    if (owner < 0 || !tutti_double_reaches(device, owner)) return false;
  }
  return true;
}

}  // namespace

#define TUTTI_ROW(id, type, name) const KernelRow k_kernels_##id = row_of(Dtype::id);
TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW

extern "C" Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* /*kernel*/, int /*threads*/,
                                                               std::size_t /*shared*/) {
  static auto& mutex = *new std::mutex();
  static auto& loaded = *new std::set<int>();
  int device = 0;
  cudaGetDevice(&device);
  const std::lock_guard lock(mutex);
  if (loaded.insert(device).second) doubles::tell("kernels on " + std::to_string(device));
  *blocks = kBlocksOfMultiprocessor;
  return kSuccess;
}

extern "C" Error cudaLaunchCooperativeKernel(const void* kernel, dim3 teams, dim3 /*threads*/, void** arguments,
                                             std::size_t /*shared*/, Stream stream) {
  int device = 0;
  cudaGetDevice(&device);
  if (tutti_double_device_of_stream(stream) != device) return kInvalidResourceHandle;
  const auto& of = *static_cast<const Kernel*>(kernel);
  DeviceLaunch launch{.world = *static_cast<const DeviceWorld*>(arguments[0]),
                      .work = *static_cast<const DeviceWork*>(arguments[1]),
                      .dtype = of.dtype,
                      .op = of.op,
                      .threads = 1};
  if (static_cast<int>(teams.x) != launch.teams() || launch.teams() > kBlocksOfMultiprocessor) return kTooManyBlocks;
  if (!reaches_all(device, launch.world)) return kIllegalAddress;
  tutti_double_open_to_host();
  int capturing = 0;
  cudaStreamIsCapturing(stream, &capturing);
  const bool is_captured = capturing != 0;
  doubles::tell((is_captured ? "captured blocks on " : "blocks on ") + std::to_string(device) + ": " +
                std::to_string(launch.teams()));
  auto item = std::make_unique<Launch>(Launch{.stream = stream, .what = std::move(launch), .is_captured = is_captured});
  return cudaLaunchHostFunc(stream, run, is_captured ? kept(std::move(item)) : item.release());
}

}  // namespace tutti::cuda

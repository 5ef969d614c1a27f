// SPDX-License-Identifier: Apache-2.0
// A GPU as a Device. The runtime library is linked in, so the object loads wherever the program does; whether there is
// a driver and a GPU is asked when a device is opened. Launches, copies and allocations are those of the current GPU:
// each call makes its own the current one first.
#include <algorithm>
#include <cstring>
#include <cuda_runtime.h>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "impl/device/cuda/kernels.h"
#include "impl/device/device.h"
#include "impl/device/opener.h"

namespace tutti::cuda {
namespace {

std::string text_of(const char* function, cudaError_t failure) {
  return fmt::format("{} failed: {}, {}", function, cudaGetErrorName(failure), cudaGetErrorString(failure));
}

#define TUTTI_RETURN_IF_CUDA_ERROR(code, call)                                                            \
  do {                                                                                                    \
    if (const cudaError_t failure = (call); failure != cudaSuccess) {                                     \
      return error(Code::code, "{}",                                                                      \
                   text_of(std::string(#call).substr(0, std::string(#call).find('(')).c_str(), failure)); \
    }                                                                                                     \
  } while (false)

class Recorded final : public DeviceGraph {
 public:
  Recorded(int device, int queue, cudaGraphExec_t executable)
      : device_(device), queue_(queue), executable_(executable) {}
  ~Recorded() override {
    (void)cudaSetDevice(device_);
    (void)cudaGraphExecDestroy(executable_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  [[nodiscard]] int queue() const { return queue_; }
  [[nodiscard]] cudaGraphExec_t executable() const { return executable_; }

 private:
  int device_;
  int queue_;
  cudaGraphExec_t executable_;
};

class Gpu final : public Device {
 public:
  static Result<std::unique_ptr<Device>> open(int device) {
    int count = 0;
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaGetDeviceCount(&count));
    if (device >= count) return error(Code::unavailable, "GPU {} is out of range: 0 to {}", device, count - 1);
    std::unique_ptr<Gpu> gpu(new Gpu(device));
    TUTTI_RETURN_IF_ERROR(gpu->prepare());
    return std::unique_ptr<Device>(std::move(gpu));
  }

  ~Gpu() override {
    (void)cudaSetDevice(index_);
    for (const auto& [number, queue] : queues_) {
      (void)cudaStreamSynchronize(queue.stream);
      for (const Pending& one : queue.pending) (void)cudaEventDestroy(one.event);
      (void)cudaStreamDestroy(queue.stream);
    }
    for (const cudaEvent_t event : spare_) (void)cudaEventDestroy(event);
    (void)cudaStreamDestroy(copies_);
  }

  [[nodiscard]] std::string name() const override { return name_; }

  Result<std::byte*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const std::size_t whole = std::max<std::size_t>(bytes, 1);
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    if (const cudaError_t failure = cudaMalloc(&memory, whole); failure != cudaSuccess) {
      std::size_t free = 0, total = 0;
      (void)cudaMemGetInfo(&free, &total);
      return error(Code::resource, "no memory for {} bytes on the {}: {} of {} are free ({})", bytes, name(), free,
                   total, cudaGetErrorName(failure));
    }
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaMemsetAsync(memory, 0, whole, copies_));
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaStreamSynchronize(copies_));
    return static_cast<std::byte*>(memory);
  }
  Result<std::byte*> allocate_mapped(std::size_t bytes) override {
    void* memory = nullptr;
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    TUTTI_RETURN_IF_CUDA_ERROR(
        resource, cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(memory, 0, bytes);
    const std::lock_guard lock(mutex_);
    mapped_.insert(static_cast<std::byte*>(memory));
    return static_cast<std::byte*>(memory);
  }
  /// Other processes get at whole pieces of memory, so this one has its own, with nothing else in it.
  Result<std::byte*> allocate_for_processes(std::size_t bytes) override {
    constexpr std::size_t kPiece = std::size_t{2} << 20U;
    return allocate((bytes + kPiece - 1) / kPiece * kPiece);
  }
  void release(std::byte* memory) override {
    (void)cudaSetDevice(index_);
    const bool is_mapped = [&] {
      const std::lock_guard lock(mutex_);
      return mapped_.erase(memory) > 0;
    }();
    (void)(is_mapped ? cudaFreeHost(memory) : cudaFree(memory));
  }
  Status reach(Device& other) override {
    const auto& peer = dynamic_cast<const Gpu&>(other);
    int can = 0;
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaDeviceCanAccessPeer(&can, index_, peer.index_));
    if (can == 0) {
      return error(
          Code::unavailable,
          "GPU {} ({}) cannot address the memory of GPU {} ({}), where other ranks lie; nvidia-smi topo -p2p r "
          "shows which GPUs can",
          index_, name(), peer.index_, peer.name());
    }
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaSetDevice(index_));
    const cudaError_t failure = cudaDeviceEnablePeerAccess(peer.index_, 0);
    if (failure == cudaErrorPeerAccessAlreadyEnabled) {
      (void)cudaGetLastError();
      return {};
    }
    if (failure == cudaSuccess) return {};
    return error(Code::unavailable, "{}", text_of("cudaDeviceEnablePeerAccess", failure));
  }
  [[nodiscard]] std::string place() const override { return place_; }
  Result<DeviceOffer> offer(std::byte* memory) override {
    cudaIpcMemHandle_t handle{};
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaIpcGetMemHandle(&handle, memory));
    DeviceOffer offer;
    static_assert(sizeof handle == sizeof offer.handle);
    std::memcpy(offer.handle.data(), &handle, sizeof handle);
    return offer;
  }
  Result<std::byte*> open_offered(const DeviceOffer& offer, const std::string& place) override {
    int peer = 0, can = 1;
    // A GPU that this process does not see can only be tried.
    if (cudaDeviceGetByPCIBusId(&peer, place.c_str()) == cudaSuccess && peer != index_) {
      TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaDeviceCanAccessPeer(&can, index_, peer));
    }
    (void)cudaGetLastError();
    if (can == 0) {
      return error(
          Code::unavailable,
          "GPU {} ({}) cannot address the memory of GPU {}, where other ranks lie; nvidia-smi topo -p2p r shows "
          "which GPUs can",
          place_, name(), place);
    }
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, offer.handle.data(), sizeof handle);
    void* memory = nullptr;
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    const cudaError_t failure = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
    if (failure == cudaSuccess) return static_cast<std::byte*>(memory);
    return error(Code::unavailable, "GPU {} ({}) cannot open memory of another process on GPU {}: {}", place_, name(),
                 place, text_of("cudaIpcOpenMemHandle", failure));
  }
  void close_offered(std::byte* memory) override {
    (void)cudaSetDevice(index_);
    (void)cudaIpcCloseMemHandle(memory);
  }
  Status write(std::byte* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_));
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaStreamSynchronize(copies_));
    return {};
  }

  [[nodiscard]] int usual_threads() const override { return kMostThreads; }
  /// A multiprocessor for each block: fewer would leave some of them idle.
  [[nodiscard]] int usual_lanes(int ranks) const override { return std::max(multiprocessors_ / ranks, 1); }
  Status fits(int teams, int threads) override {
    if (threads > kMostThreads) {
      return error(Code::resource, "blocks of {} threads: the kernels are compiled for at most {}", threads,
                   kMostThreads);
    }
    const int room = blocks_per_multiprocessor_ * multiprocessors_;
    if (teams <= room) return {};
    return error(Code::resource,
                 "{} thread blocks at once: the {} has room for {} ({} on each of its {} multiprocessors), and each "
                 "waits for others",
                 teams, name(), room, blocks_per_multiprocessor_, multiprocessors_);
  }

  Result<Ticket> launch(DeviceLaunch launch) override {
    return put(launch.queue, [&](cudaStream_t stream) { return enqueue(launch, stream); });
  }

  /// What is under way on the stream goes on meanwhile.
  Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch> launches) override {
    const std::lock_guard lock(mutex_);
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    const int number = launches.front().queue;
    TUTTI_ASSIGN_OR_RETURN(const Queue* const queue, queue_of(number));
    const cudaStream_t stream = queue->stream;
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const Status status = enqueue_all(launches, stream);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);  // also where a launch was refused
    cudaGraphExec_t executable = nullptr;
    const bool is_whole = status.is_ok() && ended == cudaSuccess;
    const cudaError_t made = is_whole ? cudaGraphInstantiateWithFlags(&executable, graph, 0) : cudaSuccess;
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    TUTTI_RETURN_IF_ERROR(status);
    if (ended != cudaSuccess) return error(Code::io, "{}", text_of("cudaStreamEndCapture", ended));
    if (made != cudaSuccess) return error(Code::io, "{}", text_of("cudaGraphInstantiateWithFlags", made));
    return std::unique_ptr<DeviceGraph>(std::make_unique<Recorded>(index_, number, executable));
  }

  Result<Ticket> replay(DeviceGraph& graph) override {
    const auto& recorded = dynamic_cast<const Recorded&>(graph);
    return put(recorded.queue(), [&](cudaStream_t stream) -> Status {
      TUTTI_RETURN_IF_CUDA_ERROR(io, cudaGraphLaunch(recorded.executable(), stream));
      return {};
    });
  }

  Result<bool> is_complete(Ticket ticket) override {
    const std::lock_guard lock(mutex_);
    std::deque<Pending>& pending = queues_[static_cast<int>(ticket >> kQueueBit)].pending;
    const Ticket number = ticket & ((Ticket{1} << kQueueBit) - 1);
    while (!pending.empty() && pending.front().ticket <= number) {
      const cudaError_t state = cudaEventQuery(pending.front().event);
      if (state == cudaErrorNotReady) return false;
      TUTTI_RETURN_IF_CUDA_ERROR(io, state);
      spare_.push_back(pending.front().event);
      pending.pop_front();
    }
    return true;
  }

 private:
  struct Pending {
    Ticket ticket;
    cudaEvent_t event;
  };
  struct Queue {
    cudaStream_t stream = nullptr;
    Ticket newest = 0;
    std::deque<Pending> pending;
  };

  explicit Gpu(int index) : index_(index) {}

  Status prepare() {
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaSetDevice(index_));
    cudaDeviceProp properties{};
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaGetDeviceProperties(&properties, index_));
    name_ = properties.name;
    char place[32] = "";
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaDeviceGetPCIBusId(place, sizeof place, index_));
    place_ = place;
    int is_cooperative = 0, threads = 0;
    for (const auto& [value, attribute] : {std::pair{&is_cooperative, cudaDevAttrCooperativeLaunch},
                                           std::pair{&multiprocessors_, cudaDevAttrMultiProcessorCount},
                                           std::pair{&threads, cudaDevAttrMaxThreadsPerMultiProcessor}}) {
      TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaDeviceGetAttribute(value, attribute, index_));
    }
    if (is_cooperative == 0) {
      return error(Code::unavailable,
                   "the {} runs no cooperative kernels: its blocks could wait for blocks that have "
                   "not begun",
                   name());
    }
    TUTTI_RETURN_IF_CUDA_ERROR(unavailable, cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
    // A kernel that is loaded while another one spins waits for it, and that one for ever.
    blocks_per_multiprocessor_ = threads / kMostThreads;
    for (const Dtype dtype : all_dtypes()) {
      for (const void* const kernel : kernels_of(dtype).of_op) {
        if (kernel == nullptr) continue;
        int blocks = 0;
        TUTTI_RETURN_IF_CUDA_ERROR(
            unavailable, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kMostThreads, kSharedBytes));
        blocks_per_multiprocessor_ = std::min(blocks_per_multiprocessor_, blocks);
      }
    }
    return {};
  }

  /// Requires: the GPU is the current one.
  Result<Queue*> queue_of(int number) {
    Queue& queue = queues_[number];
    if (queue.stream == nullptr) {
      TUTTI_RETURN_IF_CUDA_ERROR(resource, cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking));
    }
    return &queue;
  }

  Status enqueue_all(std::vector<DeviceLaunch>& launches, cudaStream_t stream) {
    for (DeviceLaunch& one : launches) TUTTI_RETURN_IF_ERROR(enqueue(one, stream));
    return {};
  }

  /// Onto the stream, or into what is captured of it.
  Status enqueue(DeviceLaunch& launch, cudaStream_t stream) {
    TUTTI_RETURN_IF_ERROR(fits(launch.teams(), launch.threads));
    if (!launch.replaced.empty()) {
      return error(Code::unavailable,
                   "the arithmetic of a GPU's kernels cannot be replaced: this fault is for --device "
                   "host");
    }
    const void* const kernel = kernels_of(launch.dtype).of_op[static_cast<std::size_t>(launch.op)];
    if (kernel == nullptr) {
      return error(Code::unavailable, "there are no kernels for GPUs of {}: --device host has them",
                   to_string(launch.dtype));
    }
    void* arguments[] = {&launch.world, &launch.work};
    const std::size_t shared = static_cast<std::size_t>(most_device_addresses(launch.world.ranks)) * sizeof(void*);
    TUTTI_RETURN_IF_CUDA_ERROR(
        io, cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(launch.teams())),
                                        dim3(static_cast<unsigned>(launch.threads)), arguments, shared, stream));
    return {};
  }

  /// What `launch` puts on a queue's stream, with an event behind it. That is there first: nothing runs without a
  /// ticket because there was no event.
  template <class Launch>
  Result<Ticket> put(int number, const Launch& launch) {
    const std::lock_guard lock(mutex_);
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaSetDevice(index_));
    TUTTI_ASSIGN_OR_RETURN(Queue* const queue, queue_of(number));
    TUTTI_ASSIGN_OR_RETURN(const cudaEvent_t event, event_for_launch());
    if (const Status launched = launch(queue->stream); !launched.is_ok()) {
      spare_.push_back(event);
      return launched;
    }
    TUTTI_RETURN_IF_CUDA_ERROR(io, cudaEventRecord(event, queue->stream));
    queue->pending.push_back({.ticket = ++queue->newest, .event = event});
    return queue->newest | static_cast<Ticket>(number) << kQueueBit;
  }

  Result<cudaEvent_t> event_for_launch() {
    if (!spare_.empty()) {
      const cudaEvent_t event = spare_.back();
      spare_.pop_back();
      return event;
    }
    cudaEvent_t event = nullptr;
    TUTTI_RETURN_IF_CUDA_ERROR(resource, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }

  static constexpr std::size_t kSharedBytes = 16 * 1024;  // addresses of a MOVE on some 250 ranks

  const int index_;
  std::mutex mutex_;
  std::string name_;
  std::string place_;  // on the bus
  int multiprocessors_ = 0;
  std::set<std::byte*> mapped_;
  /// What is written and cleared is there when it returns: neither waits for the launches, nor they for the default
  /// stream.
  cudaStream_t copies_ = nullptr;
  int blocks_per_multiprocessor_ = 0;
  std::map<int, Queue> queues_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace

const KernelRow& kernels_of(Dtype dtype) {
  static constexpr const KernelRow* kRows[] = {
#define TUTTI_ROW(id, type, name) &k_kernels_##id,
      TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW
  };
  static constexpr KernelRow kNone;
  const auto row = static_cast<std::size_t>(dtype);
  return row < std::size(kRows) ? *kRows[row] : kNone;
}

}  // namespace tutti::cuda

/// What the program looks for in the object.
extern "C" __attribute__((visibility("default"))) const tutti::DeviceOpener* tutti_device() {
  static constexpr tutti::DeviceOpener kOpener{
      .number = tutti::kTransportNumber, .built_for = tutti::kTransportBuild, .open = tutti::cuda::Gpu::open};
  return &kOpener;
}

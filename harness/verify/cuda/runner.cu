// SPDX-License-Identifier: Apache-2.0
// A GPU that fills and compares. It has a stream of its own and waits for it at the end of every call. What a call
// needs beside the buffers is copied into one piece of the GPU's memory, which grows with the largest call.
#include <algorithm>
#include <cuda_runtime.h>
#include <mutex>
#include <string>

#include "harness/verify/cuda/kernels.h"
#include "harness/verify/cuda/words.cuh"
#include "harness/verify/device_opener.h"
#include "harness/verify/device_runner.h"

namespace tutti::harness::verify::gpu {
namespace {

/// "cudaMalloc failed: cudaErrorMemoryAllocation, out of memory", where it did.
Status checked(const char* function, cudaError_t failure, Code code = Code::io) {
  if (failure == cudaSuccess) return {};
  return error(code, "{} failed: {}, {}", function, cudaGetErrorName(failure), cudaGetErrorString(failure));
}

__global__ void __launch_bounds__(kThreads) poison(const __grid_constant__ PoisonWork work) {
  fill_poison_parts(work, this_thread());
}
__global__ void __launch_bounds__(kThreads) write_guard(const __grid_constant__ GuardWork work) {
  write_guard_parts(work, this_thread());
}
__global__ void __launch_bounds__(kThreads) find_guard_damage(const __grid_constant__ GuardWork work) {
  compare_guard_parts<GpuWords>(work, this_thread());
}

__global__ void __launch_bounds__(kThreads) triad(const __grid_constant__ TriadWork work) {
  make_triad(work, this_thread());
}

Status check_kernel(const void* kernel, Dtype dtype) {
  if (kernel != nullptr) return {};
  return error(Code::unavailable, "there are no kernels for GPUs of {}: --device host has them", to_string(dtype));
}

const KernelRow& row_of(Dtype dtype) {
  static constexpr const KernelRow* kRows[] = {
#define TUTTI_ROW(id, type, name) &k_verify_##id,
      TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW
  };
  static constexpr KernelRow kNone;
  const auto row = static_cast<std::size_t>(dtype);
  return row < std::size(kRows) ? *kRows[row] : kNone;
}

/// Tables of a call, one behind the other, each at a multiple of 16 bytes.
class Tables {
 public:
  /// Where in the GPU's memory, once that is known, the table lies.
  template <class T>
  std::size_t add(std::span<const T> table) {
    const std::size_t at = bytes_.size();
    constexpr std::size_t kAligned = 16;
    const std::span<const std::byte> raw = std::as_bytes(table);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    while (bytes_.size() % kAligned != 0) bytes_.push_back({});
    return at;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class GpuRunner final : public DeviceRunner {
 public:
  static Result<std::unique_ptr<DeviceRunner>> open(int device) {
    std::unique_ptr<GpuRunner> runner(new GpuRunner(device));
    TUTTI_RETURN_IF_ERROR(runner->prepare());
    return std::unique_ptr<DeviceRunner>(std::move(runner));
  }
  ~GpuRunner() override {
    (void)cudaSetDevice(device_);
    (void)cudaFree(memory_);
    (void)cudaStreamDestroy(stream_);
  }

  Status fill(const DeviceElements& elements, FillWork work) override {
    const std::lock_guard lock(mutex_);
    Tables tables;
    tables.add(elements.table);
    TUTTI_RETURN_IF_ERROR(upload(tables));
    work.table = memory_;
    const void* const kernel = row_of(elements.dtype).fill[static_cast<std::size_t>(elements.op)];
    TUTTI_RETURN_IF_ERROR(check_kernel(kernel, elements.dtype));
    TUTTI_RETURN_IF_ERROR(launch(kernel, work, blocks_for(work.elements)));
    return finish();
  }

  Status fill_poison(std::span<const PoisonPart> parts, std::uint16_t word) override {
    const std::lock_guard lock(mutex_);
    // A long part is for many blocks, and a block takes one part after the other.
    constexpr std::int64_t kMost = std::int64_t{1} << 16U;
    std::vector<PoisonPart> short_parts;
    for (PoisonPart part : parts) {
      for (; part.bytes > kMost; part.at += kMost, part.bytes -= kMost) short_parts.push_back({part.at, kMost});
      short_parts.push_back(part);
    }
    Tables tables;
    tables.add(std::span<const PoisonPart>(short_parts));
    TUTTI_RETURN_IF_ERROR(upload(tables));
    const PoisonWork work{.parts = reinterpret_cast<const PoisonPart*>(memory_),
                          .count = static_cast<std::int32_t>(short_parts.size()),
                          .word = word};
    TUTTI_RETURN_IF_ERROR(launch(reinterpret_cast<const void*>(&poison), work, std::min(work.count, most_blocks_)));
    return finish();
  }

  Status write_guards(GuardWork work) override {
    const std::lock_guard lock(mutex_);
    TUTTI_RETURN_IF_ERROR(prepare_call());
    TUTTI_RETURN_IF_ERROR(launch(reinterpret_cast<const void*>(&write_guard), work, blocks_for(longest(work))));
    return finish();
  }

  Result<std::uint64_t> find_damage(GuardWork work) override {
    const std::lock_guard lock(mutex_);
    std::uint64_t damage = GuardWork::kNone;
    Tables tables;
    tables.add(std::span<const std::uint64_t>(&damage, 1));
    TUTTI_RETURN_IF_ERROR(upload(tables));
    work.damage = reinterpret_cast<std::uint64_t*>(memory_);
    TUTTI_RETURN_IF_ERROR(launch(reinterpret_cast<const void*>(&find_guard_damage), work, blocks_for(longest(work))));
    TUTTI_RETURN_IF_ERROR(download(std::as_writable_bytes(std::span(&damage, 1)), 0));
    return damage;
  }

  Status start_triad(TriadWork work, void* stream) override {
    TUTTI_RETURN_IF_ERROR(prepare_call());
    if (work.bytes == 0) return {};
    void* arguments[] = {&work};
    const auto blocks = static_cast<unsigned>(blocks_for(work.bytes / static_cast<std::int64_t>(sizeof(TriadWords))));
    return checked("cudaLaunchKernel",
                   cudaLaunchKernel(reinterpret_cast<const void*>(&triad), dim3(blocks), dim3(kThreads), arguments, 0,
                                    static_cast<cudaStream_t>(stream)));
  }

  Status compare(const DeviceElements& elements, Comparing& comparing, std::span<CompareRecord> records) override {
    const std::lock_guard lock(mutex_);
    Tables tables;
    const std::size_t at_records = tables.add(std::span<const CompareRecord>(records));
    const std::size_t at_pieces = tables.add(std::span<const ComparePiece>(comparing.pieces));
    const std::size_t at_sources = tables.add(std::span<const CompareSource>(comparing.sources));
    const std::size_t at_members = tables.add(std::span<const CompareMember>(comparing.members));
    const std::size_t at_streams = tables.add(std::span<const Stream>(comparing.streams));
    const std::size_t at_table = tables.add(elements.table);
    TUTTI_RETURN_IF_ERROR(upload(tables));
    CompareWork work = comparing.work;
    work.records = reinterpret_cast<CompareRecord*>(memory_ + at_records);
    work.pieces = reinterpret_cast<const ComparePiece*>(memory_ + at_pieces);
    work.sources = reinterpret_cast<const CompareSource*>(memory_ + at_sources);
    work.members = reinterpret_cast<const CompareMember*>(memory_ + at_members);
    work.streams = reinterpret_cast<const Stream*>(memory_ + at_streams);
    work.table = memory_ + at_table;
    const void* const kernel = row_of(elements.dtype).compare[static_cast<std::size_t>(elements.op)];
    TUTTI_RETURN_IF_ERROR(check_kernel(kernel, elements.dtype));
    const int blocks = static_cast<int>(std::min<std::int64_t>(work.chunks, most_blocks_));
    TUTTI_RETURN_IF_ERROR(launch(kernel, work, blocks));
    return download(std::as_writable_bytes(records), at_records);
  }

 private:
  explicit GpuRunner(int device) : device_(device) {}

  Status prepare() {
    int count = 0;
    TUTTI_RETURN_IF_ERROR(checked("cudaGetDeviceCount", cudaGetDeviceCount(&count), Code::unavailable));
    TUTTI_RETURN_IF_ERROR(checked("cudaSetDevice", cudaSetDevice(device_), Code::unavailable));
    int processors = 0;
    TUTTI_RETURN_IF_ERROR(checked("cudaDeviceGetAttribute",
                                  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device_),
                                  Code::unavailable));
    constexpr int kBlocksOfEach = 8;  // of kThreads: all threads that a multiprocessor holds
    most_blocks_ = kBlocksOfEach * processors;
    TUTTI_RETURN_IF_ERROR(checked("cudaStreamCreateWithFlags",
                                  cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), Code::unavailable));
    // A kernel that is loaded while another one spins waits for it, and that one for ever.
    for (const Dtype dtype : all_dtypes()) {
      for (const auto* const kernels : {row_of(dtype).fill, row_of(dtype).compare}) {
        for (std::size_t op = 0; op < KernelRow::kOps; ++op) {
          if (kernels[op] != nullptr) TUTTI_RETURN_IF_ERROR(load(kernels[op]));
        }
      }
    }
    for (const void* const kernel :
         {reinterpret_cast<const void*>(&poison), reinterpret_cast<const void*>(&write_guard),
          reinterpret_cast<const void*>(&find_guard_damage), reinterpret_cast<const void*>(&triad)}) {
      TUTTI_RETURN_IF_ERROR(load(kernel));
    }
    return {};
  }
  static Status load(const void* kernel) {
    cudaFuncAttributes attributes{};
    return checked("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, kernel), Code::unavailable);
  }

  [[nodiscard]] int blocks_for(std::int64_t items) const {
    return static_cast<int>(std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, most_blocks_));
  }
  static std::int64_t longest(const GuardWork& work) { return std::max(work.parts[0].bytes, work.parts[1].bytes); }

  Status prepare_call() const { return checked("cudaSetDevice", cudaSetDevice(device_)); }

  /// To memory_, which is at least a few words.
  Status upload(const Tables& tables) {
    TUTTI_RETURN_IF_ERROR(prepare_call());
    constexpr std::size_t kLeast = 4096;
    const std::size_t bytes = tables.bytes().size();
    if (capacity_ < std::max(bytes, kLeast)) {
      const std::size_t wanted = std::max(2 * bytes, kLeast);
      TUTTI_RETURN_IF_ERROR(checked("cudaFree", cudaFree(memory_)));
      memory_ = nullptr;
      capacity_ = 0;
      void* memory = nullptr;
      TUTTI_RETURN_IF_ERROR(checked("cudaMalloc", cudaMalloc(&memory, wanted), Code::resource));
      memory_ = static_cast<std::byte*>(memory);
      capacity_ = wanted;
    }
    if (bytes == 0) return {};
    return checked("cudaMemcpyAsync",
                   cudaMemcpyAsync(memory_, tables.bytes().data(), bytes, cudaMemcpyHostToDevice, stream_));
  }
  Status download(std::span<std::byte> here, std::size_t at) {
    TUTTI_RETURN_IF_ERROR(checked(
        "cudaMemcpyAsync", cudaMemcpyAsync(here.data(), memory_ + at, here.size(), cudaMemcpyDeviceToHost, stream_)));
    return finish();
  }
  template <class Work>
  Status launch(const void* kernel, Work& work, int blocks) {
    void* arguments[] = {const_cast<std::remove_const_t<Work>*>(&work)};
    return checked("cudaLaunchKernel", cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                                                        arguments, 0, stream_));
  }
  Status finish() { return checked("cudaStreamSynchronize", cudaStreamSynchronize(stream_)); }

  std::mutex mutex_;
  int device_;
  int most_blocks_ = 1;
  cudaStream_t stream_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace
}  // namespace tutti::harness::verify::gpu

/// What the program looks for in the object.
extern "C" __attribute__((visibility("default"))) const tutti::harness::verify::RunnerOpener* tutti_device_verifier() {
  static constexpr tutti::harness::verify::RunnerOpener kOpener{.number = tutti::harness::verify::kRunnerNumber,
                                                                .open = tutti::harness::verify::gpu::GpuRunner::open};
  return &kOpener;
}

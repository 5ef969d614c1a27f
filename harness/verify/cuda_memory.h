// SPDX-License-Identifier: Apache-2.0
// Buffers in the memory of a GPU, or of its double, with a stream that calls on them are posted on. Where the kernels
// of the verifier are (device_opener.h), the GPU fills and compares; else the host does.
#pragma once

#include <memory>

#include "harness/verify/device_verifier.h"
#include "impl/cuda/runtime.h"

namespace tutti::harness::verify {

class CudaMemory final : public VerifiedMemory {
 public:
  /// Of GPU `device`, with a stream of its own. Errors: unavailable naming the GPU and how many there are.
  [[nodiscard]] static Result<std::unique_ptr<CudaMemory>> open(std::shared_ptr<const cuda::Runtime> runtime,
                                                                int device);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::cuda; }
  [[nodiscard]] void* stream() const override { return stream_; }
  Status begin_capture() override;
  [[nodiscard]] Result<std::unique_ptr<Graph>> end_capture() override;
  [[nodiscard]] Result<std::unique_ptr<Instants>> instants(int most) override;
  Status start_copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  [[nodiscard]] Result<bool> is_idle() override;
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override;
  void release(void* pointer) override;
  void write(std::byte* there, std::span<const std::byte> here) override;
  void read(std::span<std::byte> here, const std::byte* there) const override;
  /// Writes other memory of the GPU, twice as much as its L2 cache holds: a GPU has no instruction for it. Nothing of
  /// it is in a cache of the host.
  void flush(std::span<const std::byte> there) const override;

 private:
  CudaMemory(std::shared_ptr<const cuda::Runtime> runtime, int device, cuda::Stream stream)
      : cuda_(std::move(runtime)), device_(device), stream_(stream) {}
  /// A GPU that copies no more has failed for good: nothing that was measured on it can be verified.
  void expect(const char* function, cuda::Error error) const;

  std::shared_ptr<const cuda::Runtime> cuda_;
  int device_;
  cuda::Stream stream_;
  mutable void* other_ = nullptr;  ///< what flush writes
  mutable std::size_t other_bytes_ = 0;
};

}  // namespace tutti::harness::verify

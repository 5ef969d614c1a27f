// SPDX-License-Identifier: Apache-2.0
// Buffers in the memory of a GPU, or of its double, with a stream that calls on them are posted on.
#pragma once

#include <memory>

#include "harness/verify/check.h"
#include "harness/verify/memory.h"
#include "impl/cuda/runtime.h"

namespace tutti::harness::verify {

class GpuBuffers final : public Memory {
 public:
  /// Of one GPU, whichever is current in the thread that calls.
  GpuBuffers(std::shared_ptr<const cuda::Runtime> runtime, int device) : cuda_(std::move(runtime)), device_(device) {
    select();
    TUTTI_ASSERT(cuda_->cudaStreamCreateWithFlags(&stream_, cuda::kStreamNonBlocking) == cuda::kSuccess, "no stream");
  }
  ~GpuBuffers() override { cuda_->cudaStreamDestroy(stream_); }
  GpuBuffers(const GpuBuffers&) = delete;
  GpuBuffers& operator=(const GpuBuffers&) = delete;

  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::cuda; }
  [[nodiscard]] void* stream() const override { return stream_; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    select();
    void* memory = nullptr;
    if (cuda_->cudaMalloc(&memory, bytes) == cuda::kSuccess) return memory;
    return error(Code::resource, "GPU {} has no {} bytes", device_, bytes);
  }
  void release(void* pointer) override {
    select();
    copied(cuda_->cudaFree(pointer));
  }
  void write(std::byte* there, std::span<const std::byte> here) override {
    if (!here.empty()) copied(cuda_->cudaMemcpy(there, here.data(), here.size(), cuda::kHostToDevice));
  }
  void read(std::span<std::byte> here, const std::byte* there) const override {
    if (!here.empty()) copied(cuda_->cudaMemcpy(here.data(), there, here.size(), cuda::kDeviceToHost));
  }
  void flush(std::span<const std::byte> /*there*/) const override {}

 private:
  void select() const { cuda_->cudaSetDevice(device_); }
  void copied(cuda::Error error) const { TUTTI_ASSERT(error == cuda::kSuccess, "{}", cuda_->text_of("a copy", error)); }

  std::shared_ptr<const cuda::Runtime> cuda_;
  int device_;
  void* stream_ = nullptr;
};

}  // namespace tutti::harness::verify

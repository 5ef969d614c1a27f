// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/cuda_memory.h"

#include "harness/verify/check.h"

namespace tutti::harness::verify {

Result<std::unique_ptr<CudaMemory>> CudaMemory::open(std::shared_ptr<const cuda::Runtime> runtime, int device) {
  if (device < 0 || device >= runtime->devices) {
    return error(Code::unavailable, "GPU {} is out of range: 0 to {}, those that CUDA shows here", device,
                 runtime->devices - 1);
  }
  cuda::Stream stream = nullptr;
  cuda::Error failure = runtime->cudaSetDevice(device);
  if (failure == cuda::kSuccess) failure = runtime->cudaStreamCreateWithFlags(&stream, cuda::kStreamNonBlocking);
  if (failure != cuda::kSuccess) {
    return error(Code::unavailable, "GPU {}: {}", device, runtime->text_of("cudaStreamCreateWithFlags", failure));
  }
  return std::unique_ptr<CudaMemory>(new CudaMemory(std::move(runtime), device, stream));
}

CudaMemory::~CudaMemory() { cuda_->cudaStreamDestroy(stream_); }

void CudaMemory::expect(const char* function, cuda::Error error) const {
  TUTTI_ASSERT(error == cuda::kSuccess, "GPU {}: {}", device_, cuda_->text_of(function, error));
}

Result<void*> CudaMemory::allocate(std::size_t bytes) {
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  void* memory = nullptr;
  const cuda::Error failure = cuda_->cudaMalloc(&memory, bytes);
  if (failure == cuda::kSuccess) return memory;
  std::size_t free = 0, total = 0;
  (void)cuda_->cudaMemGetInfo(&free, &total);
  return error(Code::resource, "no memory for a buffer of {} bytes on GPU {}: {} of {} are free", bytes, device_, free,
               total);
}

void CudaMemory::release(void* pointer) {
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  expect("cudaFree", cuda_->cudaFree(pointer));
}

void CudaMemory::write(std::byte* there, std::span<const std::byte> here) {
  if (here.empty()) return;
  // cudaMemcpy may return before pageable memory has arrived, and streams of calls do not wait for its stream.
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  expect("cudaMemcpyAsync", cuda_->cudaMemcpyAsync(there, here.data(), here.size(), cuda::kHostToDevice, stream_));
  expect("cudaStreamSynchronize", cuda_->cudaStreamSynchronize(stream_));
}

void CudaMemory::read(std::span<std::byte> here, const std::byte* there) const {
  if (!here.empty()) expect("cudaMemcpy", cuda_->cudaMemcpy(here.data(), there, here.size(), cuda::kDeviceToHost));
}

}  // namespace tutti::harness::verify

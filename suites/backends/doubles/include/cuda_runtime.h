// SPDX-License-Identifier: Apache-2.0
// What impl/device/cuda/device.cu takes of CUDA's header of this name, for the double of the runtime: so the text of a
// GPU as a device runs where there is none.
#pragma once

#include "impl/cuda/runtime.h"

using cudaError_t = tutti::cuda::Error;
using cudaStream_t = tutti::cuda::Stream;
using cudaEvent_t = tutti::cuda::Event;
using cudaGraph_t = tutti::cuda::Graph;
using cudaGraphExec_t = tutti::cuda::GraphExec;

inline constexpr cudaError_t cudaSuccess = tutti::cuda::kSuccess;
inline constexpr cudaError_t cudaErrorNotReady = tutti::cuda::kNotReady;
inline constexpr cudaError_t cudaErrorPeerAccessAlreadyEnabled = 704;
inline constexpr int cudaMemcpyHostToDevice = tutti::cuda::kHostToDevice;
inline constexpr int cudaStreamCaptureModeThreadLocal = tutti::cuda::kCaptureThreadLocal;
inline constexpr unsigned cudaStreamNonBlocking = tutti::cuda::kStreamNonBlocking;
inline constexpr unsigned cudaEventDisableTiming = tutti::cuda::kEventDisableTiming;
inline constexpr unsigned cudaHostAllocPortable = 1;
inline constexpr unsigned cudaHostAllocMapped = tutti::cuda::kHostAllocMapped;

enum cudaDeviceAttr : int {
  cudaDevAttrMultiProcessorCount = tutti::cuda::kMultiprocessors,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrCooperativeLaunch = 95,
};
struct cudaDeviceProp {
  char name[tutti::cuda::kNameBytes];
  char rest[tutti::cuda::kPropertiesBytes - tutti::cuda::kNameBytes];
};
struct cudaIpcMemHandle_t {
  char reserved[64];
};
inline constexpr unsigned cudaIpcMemLazyEnablePeerAccess = 1;
struct dim3 {
  explicit dim3(unsigned count) : x(count) {}
  unsigned x;
  unsigned y = 1;
  unsigned z = 1;
};

// The functions are found by their names alone: in this namespace they are those of the double.
namespace tutti::cuda {
extern "C" {
#define TUTTI_DECLARED(result, name, parameters) result name parameters;
TUTTI_CUDA_FUNCTIONS(TUTTI_DECLARED)
#undef TUTTI_DECLARED
Error cudaDeviceCanAccessPeer(int* can, int device, int peer);
Error cudaDeviceEnablePeerAccess(int peer, unsigned flags);
Error cudaDeviceGetByPCIBusId(int* device, const char* text);
Error cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory);
Error cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags);
Error cudaIpcCloseMemHandle(void* memory);
Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, std::size_t shared);
Error cudaLaunchCooperativeKernel(const void* kernel, dim3 teams, dim3 threads, void** arguments, std::size_t shared,
                                  Stream stream);
}
}  // namespace tutti::cuda

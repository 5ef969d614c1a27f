// SPDX-License-Identifier: Apache-2.0
// The table of CUDA's functions against CUDA's own header, wherever there is one.
#include <gtest/gtest.h>

#include "impl/cuda/runtime.h"
#include "suites/backends/same_calls.h"
#ifdef TUTTI_HAS_CUDA_HEADERS
#include <cuda_runtime_api.h>
#endif

namespace tutti::cuda {
namespace {

TEST(CudaHeaders, SayWhatTheTableSays) {
#ifdef TUTTI_HAS_CUDA_HEADERS
#define TUTTI_COMPARED(result, name, parameters)                                                                     \
  EXPECT_TRUE(are_called_alike(static_cast<result(*) parameters>(nullptr), static_cast<decltype(&::name)>(nullptr))) \
      << #name;
  TUTTI_CUDA_FUNCTIONS(TUTTI_COMPARED)
#undef TUTTI_COMPARED
  EXPECT_EQ(kSuccess, cudaSuccess);
  EXPECT_EQ(kInsufficientDriver, cudaErrorInsufficientDriver);
  EXPECT_EQ(kNoDevice, cudaErrorNoDevice);
  EXPECT_EQ(kNotReady, cudaErrorNotReady);
  EXPECT_EQ(kHostToDevice, cudaMemcpyHostToDevice);
  EXPECT_EQ(kDeviceToHost, cudaMemcpyDeviceToHost);
  EXPECT_EQ(kDeviceToDevice, cudaMemcpyDeviceToDevice);
  EXPECT_EQ(kStreamNonBlocking, static_cast<unsigned>(cudaStreamNonBlocking));
  EXPECT_EQ(kEventDefault, static_cast<unsigned>(cudaEventDefault));
  EXPECT_EQ(kEventDisableTiming, static_cast<unsigned>(cudaEventDisableTiming));
  EXPECT_EQ(kHostAllocMapped, static_cast<unsigned>(cudaHostAllocMapped));
  EXPECT_EQ(kCaptureGlobal, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(kCaptureThreadLocal, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(kCaptureRelaxed, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(kMultiprocessors, cudaDevAttrMultiProcessorCount);
  EXPECT_EQ(kL2CacheBytes, cudaDevAttrL2CacheSize);
  EXPECT_EQ(kCapabilityMajor, cudaDevAttrComputeCapabilityMajor);
  EXPECT_EQ(kCapabilityMinor, cudaDevAttrComputeCapabilityMinor);
  EXPECT_GE(kPropertiesBytes, sizeof(cudaDeviceProp));
  EXPECT_EQ(offsetof(cudaDeviceProp, name), 0U);
  EXPECT_EQ(kNameBytes, sizeof(cudaDeviceProp::name));
#else
  GTEST_SKIP() << "cuda_runtime_api.h is not found here";
#endif
}

TEST(CudaHeaders, WouldDifferFromAnotherTable) {
  using Made = int (*)(void** memory, std::size_t bytes);
  EXPECT_TRUE(are_called_alike(Made{}, static_cast<int (*)(char*, unsigned long)>(nullptr)));
  EXPECT_FALSE(are_called_alike(Made{}, static_cast<int (*)(char*, unsigned)>(nullptr)));
  EXPECT_FALSE(are_called_alike(Made{}, static_cast<int (*)(char*)>(nullptr)));
  EXPECT_FALSE(are_called_alike(Made{}, static_cast<int (*)(char*, double)>(nullptr)));
  EXPECT_FALSE(are_called_alike(Made{}, static_cast<long (*)(char*, unsigned long)>(nullptr)));
}

}  // namespace
}  // namespace tutti::cuda

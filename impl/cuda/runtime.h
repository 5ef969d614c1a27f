// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime library (libcudart), loaded where it is needed: one build of tutti runs with and without a GPU. No
// header of CUDA is read. Types and numbers are declared here as CUDA's own headers have them, from CUDA 11.4 on; a
// test compares them wherever those headers are.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "impl/cuda/library.h"

namespace tutti::cuda {

using Error = int;  // cudaError_t
using Stream = void*;
using Event = void*;
using Graph = void*;
using GraphExec = void*;
using HostFunction = void (*)(void* argument);

inline constexpr Error kSuccess = 0;
inline constexpr Error kInsufficientDriver = 35;
inline constexpr Error kNoDevice = 100;
inline constexpr Error kNotReady = 600;

// Directions of a copy.
inline constexpr int kHostToDevice = 1;
inline constexpr int kDeviceToHost = 2;
inline constexpr int kDeviceToDevice = 3;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocMapped = 2;

// What may be called while a stream is captured: nothing unsafe by anybody, by this thread, or anything.
inline constexpr int kCaptureGlobal = 0;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kCaptureRelaxed = 2;

// What cudaDeviceGetAttribute is asked for.
inline constexpr int kMultiprocessors = 16;
inline constexpr int kL2CacheBytes = 38;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;

/// cudaGetDeviceProperties writes a structure that differs from version to version, and begins with the name.
inline constexpr std::size_t kPropertiesBytes = 4096;
inline constexpr std::size_t kNameBytes = 256;

/// X(result, name, parameters)
#define TUTTI_CUDA_FUNCTIONS(X)                                                                            \
  X(Error, cudaDriverGetVersion, (int* version))                                                           \
  X(Error, cudaRuntimeGetVersion, (int* version))                                                          \
  X(const char*, cudaGetErrorName, (Error error))                                                          \
  X(const char*, cudaGetErrorString, (Error error))                                                        \
  X(Error, cudaGetLastError, ())                                                                           \
  X(Error, cudaGetDeviceCount, (int* count))                                                               \
  X(Error, cudaGetDevice, (int* device))                                                                   \
  X(Error, cudaSetDevice, (int device))                                                                    \
  X(Error, cudaGetDeviceProperties, (void* properties, int device))                                        \
  X(Error, cudaDeviceGetAttribute, (int* value, int attribute, int device))                                \
  X(Error, cudaDeviceGetPCIBusId, (char* text, int bytes, int device))                                     \
  X(Error, cudaDeviceSynchronize, ())                                                                      \
  X(Error, cudaMemGetInfo, (std::size_t * free, std::size_t * total))                                      \
  X(Error, cudaMalloc, (void** memory, std::size_t bytes))                                                 \
  X(Error, cudaFree, (void* memory))                                                                       \
  X(Error, cudaHostAlloc, (void** memory, std::size_t bytes, unsigned flags))                              \
  X(Error, cudaFreeHost, (void* memory))                                                                   \
  X(Error, cudaMemcpy, (void* to, const void* from, std::size_t bytes, int direction))                     \
  X(Error, cudaMemcpyAsync, (void* to, const void* from, std::size_t bytes, int direction, Stream stream)) \
  X(Error, cudaMemset, (void* memory, int value, std::size_t bytes))                                       \
  X(Error, cudaMemsetAsync, (void* memory, int value, std::size_t bytes, Stream stream))                   \
  X(Error, cudaStreamCreateWithFlags, (Stream * stream, unsigned flags))                                   \
  X(Error, cudaStreamDestroy, (Stream stream))                                                             \
  X(Error, cudaStreamQuery, (Stream stream))                                                               \
  X(Error, cudaStreamSynchronize, (Stream stream))                                                         \
  X(Error, cudaStreamWaitEvent, (Stream stream, Event event, unsigned flags))                              \
  X(Error, cudaStreamBeginCapture, (Stream stream, int mode))                                              \
  X(Error, cudaStreamEndCapture, (Stream stream, Graph * graph))                                           \
  X(Error, cudaStreamIsCapturing, (Stream stream, int* status))                                            \
  X(Error, cudaEventCreateWithFlags, (Event * event, unsigned flags))                                      \
  X(Error, cudaEventDestroy, (Event event))                                                                \
  X(Error, cudaEventRecord, (Event event, Stream stream))                                                  \
  X(Error, cudaEventQuery, (Event event))                                                                  \
  X(Error, cudaEventSynchronize, (Event event))                                                            \
  X(Error, cudaEventElapsedTime, (float* milliseconds, Event first, Event last))                           \
  X(Error, cudaGraphInstantiateWithFlags, (GraphExec * executable, Graph graph, unsigned long long flags)) \
  X(Error, cudaGraphLaunch, (GraphExec executable, Stream stream))                                         \
  X(Error, cudaGraphExecDestroy, (GraphExec executable))                                                   \
  X(Error, cudaGraphDestroy, (Graph graph))                                                                \
  X(Error, cudaLaunchHostFunc, (Stream stream, HostFunction function, void* argument))

/// The functions, none of them null, and what they said when they were loaded.
struct Runtime {
#define TUTTI_CUDA_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TUTTI_CUDA_FUNCTIONS(TUTTI_CUDA_MEMBER)
#undef TUTTI_CUDA_MEMBER

  std::string path;  ///< of the library
  int version = 0;   ///< 13000 is 13.0
  int driver_version = 0;
  int devices = 0;  ///< 1 or more

  /// "cudaMalloc failed: cudaErrorMemoryAllocation, out of memory"
  [[nodiscard]] std::string text_of(const char* function, Error error) const;
};

/// Why no GPU can be used.
enum class Lack { nothing, library, symbol, driver, newer_driver, device, other };

struct FoundRuntime {
  std::shared_ptr<const Runtime> runtime;  ///< null unless the lack is nothing
  Lack lack = Lack::nothing;
  std::string why;              ///< what is lacking, and what to do about it
  bool is_without_gpu = false;  ///< nothing of this machine hints at one: nobody need be told who did not ask
};

/// Loads the library that $TUTTI_CUDART names, or the loader's, or that of Python's packages, and looks for GPUs.
[[nodiscard]] FoundRuntime find_runtime(Environment environment);

/// "13.0"
[[nodiscard]] std::string version_text(int version);

}  // namespace tutti::cuda

// SPDX-License-Identifier: Apache-2.0
// NCCL, loaded when it is needed. Its types and numbers are declared here as nccl.h has them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "impl/cuda/runtime.h"

namespace tutti::backend_nccl {

using Answer = int;  // ncclResult_t
using Comm = void*;
using Window = void*;
using Type = int;
using Op = int;
using cuda::Stream;

struct UniqueId {
  char bytes[128];
};

inline constexpr Answer kSuccess = 0;
inline constexpr Answer kInProgress = 7;

inline constexpr Type kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5, kHalf = 6, kFloat = 7,
                      kDouble = 8, kBfloat16 = 9, kF8e4m3 = 10, kF8e5m2 = 11;
inline constexpr Op kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;

inline constexpr int kNoColour = -1;
inline constexpr int kScalarOfHost = 1;  // read while the operator is made
inline constexpr int kSymmetricWindow = 1;

// Numbers of versions, as ncclGetVersion has them since 2.9.
inline constexpr int kLeastVersion = 21800;  // the first with ncclCommSplit
inline constexpr int kVersionOfF8 = 22400;   // the first that reduces f8e4m3 and f8e5m2

/// X(result, name, parameters): without these it is not used.
#define TUTTI_NCCL_FUNCTIONS(X)                                                                                       \
  X(Answer, ncclGetVersion, (int* version))                                                                           \
  X(const char*, ncclGetErrorString, (Answer answer))                                                                 \
  X(const char*, ncclGetLastError, (Comm comm))                                                                       \
  X(Answer, ncclGetUniqueId, (UniqueId * id))                                                                         \
  X(Answer, ncclCommInitRank, (Comm * comm, int ranks, UniqueId id, int rank))                                        \
  X(Answer, ncclCommSplit, (Comm comm, int colour, int key, Comm* made, void* config))                                \
  X(Answer, ncclCommDestroy, (Comm comm))                                                                             \
  X(Answer, ncclCommAbort, (Comm comm))                                                                               \
  X(Answer, ncclCommGetAsyncError, (Comm comm, Answer * answer))                                                      \
  X(Answer, ncclCommCount, (Comm comm, int* ranks))                                                                   \
  X(Answer, ncclCommUserRank, (Comm comm, int* rank))                                                                 \
  X(Answer, ncclGroupStart, ())                                                                                       \
  X(Answer, ncclGroupEnd, ())                                                                                         \
  X(Answer, ncclRedOpCreatePreMulSum, (Op * op, void* factor, Type type, int residence, Comm comm))                   \
  X(Answer, ncclRedOpDestroy, (Op op, Comm comm))                                                                     \
  X(Answer, ncclBroadcast,                                                                                            \
    (const void* send, void* receive, std::size_t count, Type type, int root, Comm comm, Stream stream))              \
  X(Answer, ncclReduce,                                                                                               \
    (const void* send, void* receive, std::size_t count, Type type, Op op, int root, Comm comm, Stream stream))       \
  X(Answer, ncclAllReduce,                                                                                            \
    (const void* send, void* receive, std::size_t count, Type type, Op op, Comm comm, Stream stream))                 \
  X(Answer, ncclAllGather, (const void* send, void* receive, std::size_t count, Type type, Comm comm, Stream stream)) \
  X(Answer, ncclReduceScatter,                                                                                        \
    (const void* send, void* receive, std::size_t count, Type type, Op op, Comm comm, Stream stream))                 \
  X(Answer, ncclSend, (const void* send, std::size_t count, Type type, int peer, Comm comm, Stream stream))           \
  X(Answer, ncclRecv, (void* receive, std::size_t count, Type type, int peer, Comm comm, Stream stream))

/// Without these something else is done, or is refused.
#define TUTTI_NCCL_LATER_FUNCTIONS(X)                                                                        \
  X(Answer, ncclMemAlloc, (void** memory, std::size_t bytes))                                                \
  X(Answer, ncclMemFree, (void* memory))                                                                     \
  X(Answer, ncclCommRegister, (Comm comm, void* memory, std::size_t bytes, void** handle))                   \
  X(Answer, ncclCommDeregister, (Comm comm, void* handle))                                                   \
  X(Answer, ncclCommWindowRegister, (Comm comm, void* memory, std::size_t bytes, Window* window, int flags)) \
  X(Answer, ncclCommWindowDeregister, (Comm comm, Window window))                                            \
  X(Answer, ncclGather,                                                                                      \
    (const void* send, void* receive, std::size_t count, Type type, int root, Comm comm, Stream stream))     \
  X(Answer, ncclScatter,                                                                                     \
    (const void* send, void* receive, std::size_t count, Type type, int root, Comm comm, Stream stream))     \
  X(Answer, ncclAlltoAll, (const void* send, void* receive, std::size_t count, Type type, Comm comm, Stream stream))

/// The functions; those that only later versions have may be null.
struct Nccl {
#define TUTTI_NCCL_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TUTTI_NCCL_FUNCTIONS(TUTTI_NCCL_MEMBER)
  TUTTI_NCCL_LATER_FUNCTIONS(TUTTI_NCCL_MEMBER)
#undef TUTTI_NCCL_MEMBER

  std::string path;
  int version = 0;

  /// "unhandled system error", and what NCCL said of it last.
  [[nodiscard]] std::string text_of(Answer answer, Comm comm) const;
};

struct FoundNccl {
  std::shared_ptr<const Nccl> nccl;  ///< null: why says what is lacking, and what to do about it
  std::string why;
};

/// Loads the library that $TUTTI_NCCL names, or the loader's, or that of Python's packages.
[[nodiscard]] FoundNccl find_nccl(cuda::Environment environment);

/// "2.28.9"
[[nodiscard]] std::string version_text(int version);

/// What the backend is made of here.
struct Libraries {
  std::shared_ptr<const cuda::Runtime> cuda;
  std::shared_ptr<const Nccl> nccl;
  std::string missing;          ///< why it cannot be used; empty: it can
  bool is_without_gpu = false;  ///< as of cuda::FoundRuntime
};

/// Loaded when they are first asked for; those that are not there are looked for again. NCCL, which is large, is not
/// loaded where there is no GPU.
[[nodiscard]] const Libraries& libraries();

/// A JSON object, as describe of backend.h has it.
[[nodiscard]] std::string to_json(const Libraries& libraries);

}  // namespace tutti::backend_nccl

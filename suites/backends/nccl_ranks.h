// SPDX-License-Identifier: Apache-2.0
// Ranks of NCCL in one process, on the doubles: what the tests of its backend begin with.
#pragma once

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness/backends/loader.h"
#include "harness/backends/nccl/library.h"
#include "harness/verify/cuda_memory.h"

namespace tutti::harness {

inline const std::string kDoubles = TUTTI_DOUBLES;

inline void set_variables() {
  ::setenv("TUTTI_CUDART", (kDoubles + "/libcudart.so").c_str(), 1);
  ::setenv("TUTTI_NCCL", (kDoubles + "/libnccl.so").c_str(), 1);
}

inline const LoadedBackend& nccl() {
  static const auto backend = [] {
    set_variables();
    return LoadedBackend::load("nccl", std::vector<std::string>{TUTTI_BIN});
  }();
  TUTTI_ASSERT(backend.is_ok(), "{}", backend.status().message());
  return backend.value();
}

/// What a function says that only the doubles have; 0: they are not loaded yet.
template <class Number>
Number said_by_double(const char* library, const char* name) {
  void* const loaded = ::dlopen((kDoubles + "/" + library).c_str(), RTLD_NOW | RTLD_NOLOAD);
  return loaded == nullptr ? 0 : reinterpret_cast<Number (*)()>(::dlsym(loaded, name))();
}
/// Communicators, ops and buffers that NCCL has; allocations of devices.
inline int live() { return said_by_double<int>("libnccl.so", "tutti_double_live"); }
inline std::size_t blocks() { return said_by_double<std::size_t>("libcudart.so", "tutti_double_blocks"); }

/// All ranks are in this process.
inline int exchange_alone(void* /*context*/, const void* mine, void* all, std::size_t bytes) {
  std::memcpy(all, mine, bytes);
  return 0;
}

using Numbers = std::vector<std::int32_t>;

/// The world of this process's ranks, whose numbers lie on a GPU each.
class NcclRanks : public testing::Test {
 protected:
  NcclRanks() {
    nccl();
    cuda_ = cuda::find_runtime(std::getenv).runtime;
  }
  ~NcclRanks() override {
    for (auto& buffer : buffers_) memory_[buffer.rank]->release(buffer.at);
    memory_.clear();
    EXPECT_TRUE(nccl().close().is_ok());
    EXPECT_EQ(blocks(), blocks_) << "memory was not given back";
    EXPECT_EQ(live(), is_strict_ ? live_ : live()) << "something was not given back";
    for (const char* const name : {"TUTTI_NCCL_TIMEOUT", "NCCL_COMM_BLOCKING", "NCCL_WIN_ENABLE"}) ::unsetenv(name);
  }

  Status open(int ranks) {
    std::vector<std::int32_t> devices(static_cast<std::size_t>(ranks));
    std::iota(devices.begin(), devices.end(), 0);
    const Status status = open(ranks, devices);
    for (int rank = 0; status.is_ok() && rank < ranks; ++rank) {
      auto memory = CudaMemory::open(cuda_, rank);
      TUTTI_RETURN_IF_ERROR(memory.status());
      memory_.push_back(std::move(memory).value());
    }
    return status;
  }
  static Status open(int ranks, const std::vector<std::int32_t>& devices) {
    return nccl().open({.ranks = ranks, .rank = 0, .handle = nullptr},
                       {.local_ranks = static_cast<std::int32_t>(devices.size()),
                        .devices = devices.data(),
                        .host = 0,
                        .rank_on_host = 0,
                        .exchange = exchange_alone,
                        .context = nullptr,
                        .address = nullptr});
  }

  std::byte* put(std::size_t rank, const Numbers& values) {
    auto made = memory_[rank]->allocate(values.size() * sizeof(std::int32_t));
    auto* const at = static_cast<std::byte*>(made.value());
    memory_[rank]->write(at, std::as_bytes(std::span(values)));
    buffers_.push_back({.rank = rank, .at = at});
    return at;
  }
  Numbers get(std::size_t rank, const std::byte* at, std::size_t count) {
    Numbers values(count);
    memory_[rank]->read(std::as_writable_bytes(std::span(values)), at);
    return values;
  }

  TuttiBackendCall call(std::size_t rank, const char* collective, std::int64_t count, const std::byte* send,
                        std::byte* receive) {
    TuttiBackendCall one{};
    one.collective = collective;
    one.dtype = "int32";
    one.op = "sum";
    one.in_place = send == receive ? 1 : 0;
    one.count = count;
    one.element_bytes = sizeof(std::int32_t);
    one.send = send;
    one.recv = receive;
    one.asynchronous = 1;
    one.memory = TUTTI_MEMORY_CUDA;
    one.stream = memory_[rank]->stream();
    one.local = static_cast<std::int32_t>(rank);
    return one;
  }
  LoadedBackend::Handle prepare(const TuttiBackendCall& one) {
    const auto handle = nccl().prepare(one);
    EXPECT_TRUE(handle.is_ok()) << handle.status().message();
    return handle.is_ok() ? handle.value() : nullptr;
  }
  static void post(const std::vector<LoadedBackend::Handle>& handles) {
    EXPECT_TRUE(nccl().begin_group().is_ok());
    for (const auto handle : handles) EXPECT_TRUE(nccl().post(handle).is_ok());
    EXPECT_TRUE(nccl().end_group().is_ok());
  }
  static void finish(const std::vector<LoadedBackend::Handle>& handles) {
    for (const auto handle : handles) {
      const Status status = nccl().wait(handle);
      EXPECT_TRUE(status.is_ok()) << status.message();
    }
  }
  static void release(const std::vector<LoadedBackend::Handle>& handles) {
    for (const auto handle : handles) nccl().release(handle);
  }
  /// An all_reduce in place on `count` numbers, each of them its rank's plus one.
  std::vector<LoadedBackend::Handle> sums_in_place(std::size_t ranks, std::size_t count) {
    std::vector<LoadedBackend::Handle> handles;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      at_.push_back(put(rank, Numbers(count, static_cast<std::int32_t>(rank) + 1)));
      handles.push_back(prepare(call(rank, "all_reduce", static_cast<std::int64_t>(count), at_.back(), at_.back())));
    }
    return handles;
  }

  struct Buffer {
    std::size_t rank;
    std::byte* at;
  };
  std::shared_ptr<const cuda::Runtime> cuda_;
  std::vector<std::unique_ptr<CudaMemory>> memory_;
  std::vector<Buffer> buffers_;
  std::vector<std::byte*> at_;
  bool is_strict_ = true;  ///< NCCL may have nothing left at the end
  int live_ = live();
  std::size_t blocks_ = blocks();
};

}  // namespace tutti::harness

// SPDX-License-Identifier: Apache-2.0
// The backend of NCCL with several ranks in one process, on the doubles: groups of calls, graphs, events, registered
// buffers, and what it says when ranks are missing, lost, or disagree. The probe (probe.cc) has every call, with a rank
// in each process.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/backends/nccl/library.h"
#include "harness/verify/cuda_memory.h"

namespace tutti::harness {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const std::string kDoubles = TUTTI_DOUBLES;

void set_variables() {
  ::setenv("TUTTI_CUDART", (kDoubles + "/libcudart.so").c_str(), 1);
  ::setenv("TUTTI_NCCL", (kDoubles + "/libnccl.so").c_str(), 1);
}

const LoadedBackend& nccl() {
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
int live() { return said_by_double<int>("libnccl.so", "tutti_double_live"); }
std::size_t blocks() { return said_by_double<std::size_t>("libcudart.so", "tutti_double_blocks"); }

/// All ranks are in this process.
int exchange_alone(void* /*context*/, const void* mine, void* all, std::size_t bytes) {
  std::memcpy(all, mine, bytes);
  return 0;
}

using Values = std::vector<std::int32_t>;

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
                        .directory = nullptr});
  }

  std::byte* put(std::size_t rank, const Values& values) {
    auto made = memory_[rank]->allocate(values.size() * sizeof(std::int32_t));
    auto* const at = static_cast<std::byte*>(made.value());
    memory_[rank]->write(at, std::as_bytes(std::span(values)));
    buffers_.push_back({.rank = rank, .at = at});
    return at;
  }
  Values get(std::size_t rank, const std::byte* at, std::size_t count) {
    Values values(count);
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
      at_.push_back(put(rank, Values(count, static_cast<std::int32_t>(rank) + 1)));
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

TEST_F(NcclRanks, OfOneProcessReduceInGroups) {
  for (const char* const blocking : {"1", "0"}) {
    ::setenv("NCCL_COMM_BLOCKING", blocking, 1);
    ASSERT_TRUE(open(3).is_ok());
    const auto sums = sums_in_place(3, 1000);
    post(sums);
    finish(sums);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_THAT(get(rank, at_[rank], 1000), Each(6)) << blocking;
    post(sums);
    finish(sums);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_THAT(get(rank, at_[rank], 1000), Each(18));
    release(sums);
    at_.clear();
    for (auto& buffer : buffers_) memory_[buffer.rank]->release(buffer.at);
    buffers_.clear();
    memory_.clear();
    ASSERT_TRUE(nccl().close().is_ok());
  }
}

TEST_F(NcclRanks, HaveManyCallsInOneGroup) {
  ASSERT_TRUE(open(2).is_ok());
  std::vector<LoadedBackend::Handle> handles;
  std::vector<std::byte*> received;
  for (std::int32_t i = 0; i < 4; ++i) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      received.push_back(put(rank, {-1, -1}));
      auto send = call(rank, "send", 2, put(rank, {static_cast<std::int32_t>(rank), i}), nullptr);
      auto receive = call(rank, "recv", 2, nullptr, received.back());
      send.root = receive.root = 1 - static_cast<std::int32_t>(rank);
      handles.push_back(prepare(send));
      handles.push_back(prepare(receive));
    }
  }
  post(handles);
  finish(handles);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(get(0, received[2 * i], 2), (Values{1, static_cast<std::int32_t>(i)}));
    EXPECT_EQ(get(1, received[2 * i + 1], 2), (Values{0, static_cast<std::int32_t>(i)}));
  }
  release(handles);
}

TEST_F(NcclRanks, AreNotDoneBeforeTheirStreamIs) {
  ASSERT_TRUE(open(1).is_ok());
  const auto sum = sums_in_place(1, 10);
  std::atomic<bool> may_go_on = false;
  const auto hold = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  EXPECT_TRUE(nccl().test(sum[0]).value()) << "nothing was posted";
  cuda_->cudaLaunchHostFunc(memory_[0]->stream(), hold, &may_go_on);
  EXPECT_TRUE(nccl().post(sum[0]).is_ok());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(nccl().test(sum[0]).value());
  may_go_on = true;
  EXPECT_TRUE(nccl().wait(sum[0]).is_ok());
  EXPECT_TRUE(nccl().test(sum[0]).value());
  release(sum);
}

TEST_F(NcclRanks, InAnOpenGroupNothingIsDone) {
  ASSERT_TRUE(open(1).is_ok());
  const auto sum = sums_in_place(1, 10);
  EXPECT_TRUE(nccl().begin_group().is_ok());
  EXPECT_TRUE(nccl().post(sum[0]).is_ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(nccl().test(sum[0]).value());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(nccl().wait(sum[0]).message(),
              HasSubstr("all_reduce of 10 int32 sum is waited for before its group has ended"));
  EXPECT_TRUE(nccl().end_group().is_ok());
  finish(sum);
  release(sum);
}

TEST_F(NcclRanks, AreCapturedInGraphsThatCanBeReplayed) {
  ASSERT_TRUE(open(3).is_ok());
  const auto sums = sums_in_place(3, 100);
  std::vector<cuda::GraphExec> graphs(3);
  for (const auto& memory : memory_) {
    ASSERT_EQ(cuda_->cudaStreamBeginCapture(memory->stream(), cuda::kCaptureGlobal), cuda::kSuccess);
  }
  post(sums);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    cuda::Graph graph = nullptr;
    ASSERT_EQ(cuda_->cudaStreamEndCapture(memory_[rank]->stream(), &graph), cuda::kSuccess)
        << "a post that allocates or synchronises spoils a capture";
    ASSERT_EQ(cuda_->cudaGraphInstantiateWithFlags(&graphs[rank], graph, 0), cuda::kSuccess);
    cuda_->cudaGraphDestroy(graph);
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(get(rank, at_[rank], 100), Each(static_cast<std::int32_t>(rank) + 1)) << "nothing was done yet";
  }
  for (const std::int32_t expected : {6, 18, 54}) {
    for (std::size_t rank = 0; rank < 3; ++rank) cuda_->cudaGraphLaunch(graphs[rank], memory_[rank]->stream());
    for (std::size_t rank = 0; rank < 3; ++rank) {
      cuda_->cudaStreamSynchronize(memory_[rank]->stream());
      EXPECT_THAT(get(rank, at_[rank], 100), Each(expected));
    }
  }
  for (const cuda::GraphExec graph : graphs) cuda_->cudaGraphExecDestroy(graph);
  release(sums);
}

TEST_F(NcclRanks, StandBetweenEvents) {
  ASSERT_TRUE(open(1).is_ok());
  const auto sum = sums_in_place(1, 10);
  cuda::Event before = nullptr, after = nullptr;
  for (auto* const event : {&before, &after}) cuda_->cudaEventCreateWithFlags(event, cuda::kEventDefault);
  const cuda::Stream stream = memory_[0]->stream();
  EXPECT_EQ(cuda_->cudaEventRecord(before, stream), cuda::kSuccess);
  const auto pause = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  cuda_->cudaLaunchHostFunc(stream, pause, nullptr);
  EXPECT_TRUE(nccl().post(sum[0]).is_ok());
  EXPECT_EQ(cuda_->cudaEventRecord(after, stream), cuda::kSuccess);
  EXPECT_EQ(cuda_->cudaEventSynchronize(after), cuda::kSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cuda_->cudaEventElapsedTime(&milliseconds, before, after), cuda::kSuccess);
  EXPECT_GE(milliseconds, 2);
  for (const cuda::Event event : {before, after}) cuda_->cudaEventDestroy(event);
  finish(sum);
  release(sum);
}

TEST_F(NcclRanks, MultiplyByTheirOwnFactors) {
  ASSERT_TRUE(open(2).is_ok());
  std::vector<LoadedBackend::Handle> handles;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    at_.push_back(put(rank, {10, 20}));
    auto one = call(rank, "all_reduce", 2, at_[rank], at_[rank]);
    one.op = "premul_sum";
    EXPECT_THAT(nccl().prepare(one).status().message(), HasSubstr("premul_sum without a factor: a null pointer"));
    const std::int32_t factor = rank == 0 ? 3 : 5;
    one.factor = &factor;
    handles.push_back(prepare(one));
  }
  post(handles);
  finish(handles);
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(get(rank, at_[rank], 2), (Values{80, 160}));
  EXPECT_EQ(live(), live_ + 4) << "two communicators and their ops";
  release(handles);
  EXPECT_EQ(live(), live_ + 2);
}

TEST_F(NcclRanks, CannotRunByThemselves) {
  ASSERT_TRUE(open(2).is_ok());
  std::byte* const at = put(0, {1});
  auto one = call(0, "all_reduce", 1, at, at);
  one.asynchronous = 0;
  const auto handle = prepare(one);
  EXPECT_THAT(nccl().run(handle).message(),
              HasSubstr("one of 2 ranks of a process cannot run a call of NCCL, which waits "
                        "for the others: they post it in a group"));
  nccl().release(handle);
  one.collective = "pingpong";
  EXPECT_THAT(nccl().supports(one).message(), HasSubstr("NCCL has no pingpong between ranks of one process"));
  one.local = 2;
  EXPECT_EQ(nccl().supports(one).message(), "this process has no rank 2 of its own");
}

TEST_F(NcclRanks, AreRefusedMemoryOfTheHost) {
  ASSERT_TRUE(open(1).is_ok());
  alignas(8) std::byte host[8]{};
  auto one = call(0, "all_reduce", 2, host, host);
  const auto handle = prepare(one);
  EXPECT_THAT(
      nccl().post(handle).message(),
      HasSubstr("rank 0 of 1: all_reduce of 2 int32 sum: NCCL says: invalid argument: the input is not 8 bytes of the "
                "device's memory"));
  nccl().release(handle);
  one.memory = TUTTI_MEMORY_HOST;
  EXPECT_EQ(nccl().supports(one).message(), "NCCL is called with buffers in the memory of a GPU only");
}

TEST_F(NcclRanks, TellNcclOfTheirBuffers) {
  ASSERT_TRUE(open(2).is_ok());
  std::byte* const at = put(1, Values(100));
  const auto made = nccl().register_buffer(nullptr, 1, {at, 400}, Buffers::private_);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  EXPECT_EQ(live(), live_ + 3) << "two communicators and a buffer";
  EXPECT_TRUE(nccl().forget_buffer(1, made.value()).is_ok());
  EXPECT_EQ(live(), live_ + 2);
  EXPECT_THAT(
      nccl().register_buffer(nullptr, 1, {at, 401}, Buffers::private_).status().message(),
      HasSubstr("registering 401 bytes: NCCL says: invalid argument: the buffer is not 401 bytes of the device's"));
  EXPECT_THAT(nccl().register_buffer(nullptr, 1, {at, 400}, Buffers::shared).status().message(),
              HasSubstr("registering 400 bytes as a symmetric window: NCCL says: invalid argument: no memory of "
                        "ncclMemAlloc (it takes memory of ncclMemAlloc)"));
}

TEST_F(NcclRanks, MakeSymmetricWindowsTogether) {
  ASSERT_TRUE(open(2).is_ok());
  const auto library = backend_nccl::find_nccl(std::getenv).nccl;
  std::vector<LoadedBackend::Handle> windows;
  std::vector<void*> memory(2);
  EXPECT_TRUE(nccl().begin_group().is_ok());
  for (int rank = 0; rank < 2; ++rank) {
    void*& at = memory[static_cast<std::size_t>(rank)];
    ASSERT_EQ(library->ncclMemAlloc(&at, 4096), backend_nccl::kSuccess);
    const auto made = nccl().register_buffer(nullptr, rank, {static_cast<std::byte*>(at), 4096}, Buffers::shared);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    windows.push_back(made.value());
  }
  EXPECT_TRUE(nccl().end_group().is_ok());
  EXPECT_EQ(live(), live_ + 4);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(nccl().forget_buffer(rank, windows[static_cast<std::size_t>(rank)]).is_ok());
  }
  ::setenv("NCCL_WIN_ENABLE", "0", 1);
  EXPECT_THAT(nccl()
                  .register_buffer(nullptr, 0, {static_cast<std::byte*>(memory[0]), 4096}, Buffers::shared)
                  .status()
                  .message(),
              HasSubstr("NCCL makes no symmetric window of 4096 bytes"));
  for (void* const at : memory) library->ncclMemFree(at);
}

TEST_F(NcclRanks, AreSplitTogether) {
  for (const char* const blocking : {"1", "0"}) {
    ::setenv("NCCL_COMM_BLOCKING", blocking, 1);
    ASSERT_TRUE(open(3).is_ok());
    const auto part = nccl().split(nullptr, 7, 0);
    ASSERT_TRUE(part.is_ok()) << part.status().message();
    EXPECT_EQ(part.value().ranks, 3);
    EXPECT_EQ(part.value().rank, 0);
    EXPECT_EQ(live(), live_ + 6);
    std::vector<LoadedBackend::Handle> handles;
    std::vector<std::byte*> at;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      at.push_back(put(rank, {static_cast<std::int32_t>(rank), 10}));
      auto one = call(rank, "all_reduce", 2, at[rank], at[rank]);
      one.group = part.value().handle;
      handles.push_back(prepare(one));
    }
    post(handles);
    finish(handles);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(get(rank, at[rank], 2), (Values{3, 30}));
    release(handles);
    EXPECT_TRUE(nccl().free_group(part.value()).is_ok());
    EXPECT_EQ(live(), live_ + 3) << "all of them have left the group";
    const auto none = nccl().split(nullptr, -1, 0);
    ASSERT_TRUE(none.is_ok()) << none.status().message();
    EXPECT_EQ(none.value().ranks, 0);
    for (auto& buffer : buffers_) memory_[buffer.rank]->release(buffer.at);
    buffers_.clear();
    memory_.clear();
    ASSERT_TRUE(nccl().close().is_ok());
  }
  ASSERT_TRUE(open(1).is_ok());
}

TEST_F(NcclRanks, HaveMemoryOfNcclsOwnForWindows) {
  ASSERT_TRUE(open(2).is_ok());
  std::vector<void*> memory;
  std::vector<LoadedBackend::Handle> windows;
  for (int rank = 0; rank < 2; ++rank) {
    const auto made = nccl().allocate(rank, 8192);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    memory.push_back(made.value());
  }
  const auto make = [&](std::size_t rank, std::size_t bytes) {
    const auto at = static_cast<std::byte*>(memory[rank]);
    return nccl().register_buffer(nullptr, static_cast<int>(rank), {at, bytes}, Buffers::shared);
  };
  EXPECT_TRUE(nccl().begin_group().is_ok());
  for (std::size_t rank = 0; rank < 2; ++rank) windows.push_back(make(rank, 8192).value());
  EXPECT_TRUE(nccl().end_group().is_ok());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(nccl().forget_buffer(rank, windows[static_cast<std::size_t>(rank)]).is_ok());
  }
  windows.clear();
  EXPECT_EQ(live(), live_ + 2);
  ::setenv("NCCL_WIN_ENABLE", "0", 1);
  EXPECT_TRUE(nccl().begin_group().is_ok());
  for (std::size_t rank = 0; rank < 2; ++rank) windows.push_back(make(rank, 4096).value());
  EXPECT_THAT(nccl().end_group().message(), HasSubstr("NCCL makes no symmetric window of 4096 bytes"));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(nccl().forget_buffer(rank, windows[static_cast<std::size_t>(rank)]).is_ok());
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(nccl().give_back(rank, memory[static_cast<std::size_t>(rank)]).is_ok());
  }
}

TEST_F(NcclRanks, AreToldOfARankThatIsLost) {
  ASSERT_TRUE(open(2).is_ok());
  const auto sums = sums_in_place(2, 10);
  EXPECT_TRUE(nccl().poll_error(0).is_ok());
  EXPECT_TRUE(nccl().post(sums[0]).is_ok());
  EXPECT_TRUE(nccl().abort(1).is_ok());
  EXPECT_THAT(
      nccl().wait(sums[0]).message(),
      AllOf(HasSubstr("all_reduce of 10 int32 sum: rank 0 of 2: NCCL says: a rank was lost: rank 1 has aborted")));
  EXPECT_THAT(nccl().poll_error(0).message(), HasSubstr("rank 1 has aborted"));
  EXPECT_TRUE(nccl().poll_error(1).is_ok()) << "it has no communicator any more";
  EXPECT_TRUE(nccl().abort(0).is_ok());
  release(sums);
}

TEST_F(NcclRanks, ThatDisagreeRunOutOfTime) {
  ::setenv("TUTTI_NCCL_TIMEOUT", "0.2", 1);
  ASSERT_TRUE(open(2).is_ok());
  std::vector<LoadedBackend::Handle> sums;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    at_.push_back(put(rank, Values(20)));
    sums.push_back(prepare(call(rank, "all_reduce", 10 + static_cast<std::int64_t>(rank), at_[rank], at_[rank])));
  }
  post(sums);
  EXPECT_THAT(
      nccl().wait(sums[0]).message(),
      HasSubstr("rank 0 of 2: all_reduce of 10 int32 sum is not done after 0.2 s: a rank has not called it, or with "
                "another count, or is lost (TUTTI_NCCL_TIMEOUT sets the seconds)"));
  Result<bool> is_done = false;
  while (is_done.is_ok() && !is_done.value()) is_done = nccl().test(sums[1]);
  EXPECT_THAT(is_done.status().message(), HasSubstr("rank 1 of 2: all_reduce of 11 int32 sum is not done after 0.2 s"));
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(nccl().abort(rank).is_ok());
  release(sums);
}

TEST_F(NcclRanks, DoNotWaitForEverForOneThatDoesNotCome) {
  is_strict_ = false;
  ::setenv("TUTTI_NCCL_TIMEOUT", "0.2", 1);
  EXPECT_THAT(
      open(2, {0}).message(),
      HasSubstr("backend nccl: rank 0 of 2: NCCL's ranks have not met in 0.2 s: one has not come, or finds no way to "
                "the others (TUTTI_NCCL_TIMEOUT sets the seconds)"));
}

TEST_F(NcclRanks, NeedAGpuEach) {
  is_strict_ = false;
  EXPECT_THAT(open(2, {0, 8}).message(),
              HasSubstr("rank 1 of 2 needs GPU 8 of this host, which has 8: NCCL takes a GPU for each rank"));
  EXPECT_THAT(open(2, {3, 3}).message(),
              HasSubstr("NCCL's ranks do not meet: NCCL says: invalid usage: Duplicate GPU detected "
                        ": rank 0 and rank 1 both on CUDA device 3"));
}

TEST_F(NcclRanks, NeedAnExchangeAndAPatience) {
  is_strict_ = false;
  const auto open_with = [](int (*exchange)(void*, const void*, void*, std::size_t)) {
    return nccl().open({.ranks = 2, .rank = 1, .handle = nullptr},
                       {.local_ranks = 1, .rank_on_host = 1, .exchange = exchange});
  };
  EXPECT_THAT(open_with(nullptr).message(),
              HasSubstr("NCCL's ranks are told whom to meet by an exchange, and there is none"));
  EXPECT_THAT(open_with([](void*, const void*, void*, std::size_t) { return 1; }).message(),
              HasSubstr("NCCL's ranks could not tell each other whom to meet"));
  const auto of_another_version = [](void*, const void* mine, void* all, std::size_t bytes) {
    auto* const cards = static_cast<std::byte*>(all);
    std::memcpy(cards + bytes, mine, bytes);
    std::memcpy(cards, mine, bytes);
    const std::int32_t version = 22703;
    std::memcpy(cards + sizeof(std::int32_t), &version, sizeof(version));
    return 0;
  };
  EXPECT_THAT(
      open_with(of_another_version).message(),
      HasSubstr("rank 1 has NCCL 2.28.9 (" + kDoubles + "/libnccl.so) and another rank 2.27.3: all need the same"));
  for (const char* const seconds : {"soon", "0", "-1", "1e9", ""}) {
    ::setenv("TUTTI_NCCL_TIMEOUT", seconds, 1);
    EXPECT_THAT(open_with(nullptr).message(), HasSubstr(std::string("TUTTI_NCCL_TIMEOUT is '") + seconds +
                                                        "': it takes seconds, above 0 and up to 86400"));
  }
}

TEST_F(NcclRanks, AreDescribed) {
  const auto json = nlohmann::json::parse(nccl().describe().value());
  EXPECT_EQ(json.at("library"), "NCCL");
  EXPECT_EQ(json.at("version"), "2.28.9");
  EXPECT_EQ(json.at("transport"), "");
  EXPECT_EQ(json.at("path"), kDoubles + "/libnccl.so");
  EXPECT_EQ(json.at("cuda_runtime"), "13.0");
  EXPECT_FALSE(json.contains("missing"));
  EXPECT_FALSE(nccl().needs_directory());
  EXPECT_EQ(nccl().start_command().value(), "");
}

/// The doubles themselves: what makes them worth testing on.
class Doubles : public NcclRanks {};

TEST_F(Doubles, CrashWhereTheHostTouchesTheMemoryOfADevice) {
  ASSERT_TRUE(open(1).is_ok());
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const volatile std::byte* const at = put(0, {1});
  EXPECT_DEATH(static_cast<void>(*at), "");
}

TEST_F(Doubles, BreakACaptureInWhichMemoryIsAllocated) {
  ASSERT_TRUE(open(1).is_ok());
  const cuda::Stream stream = memory_[0]->stream();
  for (const bool allocates : {true, false}) {
    cuda::Graph graph = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(cuda_->cudaStreamBeginCapture(stream, cuda::kCaptureThreadLocal), cuda::kSuccess);
    EXPECT_NE(allocates ? cuda_->cudaMalloc(&memory, 8) : cuda_->cudaStreamQuery(stream), cuda::kSuccess);
    EXPECT_NE(cuda_->cudaStreamEndCapture(stream, &graph), cuda::kSuccess);
  }
}

TEST_F(Doubles, WorkLate) {
  ASSERT_TRUE(open(1).is_ok());
  std::byte* const at = put(0, {7});
  std::atomic<bool> may_go_on = false;
  const auto hold = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  cuda_->cudaLaunchHostFunc(memory_[0]->stream(), hold, &may_go_on);
  EXPECT_EQ(cuda_->cudaMemsetAsync(at, 0, 4, memory_[0]->stream()), cuda::kSuccess);
  EXPECT_EQ(get(0, at, 1), Values{7}) << "who does not synchronise reads what was there before";
  may_go_on = true;
  cuda_->cudaStreamSynchronize(memory_[0]->stream());
  EXPECT_EQ(get(0, at, 1), Values{0});
}

TEST_F(Doubles, RefuseAnAddressOfTheOtherSide) {
  ASSERT_TRUE(open(1).is_ok());
  std::byte* const at = put(0, {7, 8});
  std::int32_t here[3]{};
  EXPECT_NE(cuda_->cudaMemcpy(here, at, 4, cuda::kHostToDevice), cuda::kSuccess);
  EXPECT_NE(cuda_->cudaMemcpy(at, here, 4, cuda::kDeviceToHost), cuda::kSuccess);
  EXPECT_NE(cuda_->cudaMemcpy(here, at, 12, cuda::kDeviceToHost), cuda::kSuccess) << "beyond the end";
  EXPECT_EQ(cuda_->cudaMemcpy(here, at, 8, cuda::kDeviceToHost), cuda::kSuccess);
  EXPECT_EQ(here[1], 8);
}

}  // namespace
}  // namespace tutti::harness

// SPDX-License-Identifier: Apache-2.0
// The backend of NCCL with several ranks in one process, on the doubles: groups of calls, graphs, events, and
// registered buffers. The probe (probe.cc) has every call, with a rank in each process.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/backends/nccl_ranks.h"

namespace tutti::harness {
namespace {

using testing::Each;
using testing::HasSubstr;

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
    EXPECT_EQ(get(0, received[2 * i], 2), (Numbers{1, static_cast<std::int32_t>(i)}));
    EXPECT_EQ(get(1, received[2 * i + 1], 2), (Numbers{0, static_cast<std::int32_t>(i)}));
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
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(get(rank, at_[rank], 2), (Numbers{80, 160}));
  EXPECT_EQ(live(), live_ + 4) << "two communicators and their ops";
  release(handles);
  EXPECT_EQ(live(), live_ + 2);
}

TEST_F(NcclRanks, TellNcclOfTheirBuffers) {
  ASSERT_TRUE(open(2).is_ok());
  std::byte* const at = put(1, Numbers(100));
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
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(get(rank, at[rank], 2), (Numbers{3, 30}));
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
}  // namespace
}  // namespace tutti::harness

// SPDX-License-Identifier: Apache-2.0
// What the backend of NCCL says when ranks are missing, lost, or disagree, and what the doubles under it do not allow.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "suites/backends/nccl_ranks.h"

namespace tutti::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
    at_.push_back(put(rank, Numbers(20)));
    sums.push_back(prepare(call(rank, "all_reduce", 10 + static_cast<std::int64_t>(rank), at_[rank], at_[rank])));
  }
  post(sums);
  EXPECT_THAT(
      nccl().wait(sums[0]).message(),
      HasSubstr("rank 0 of 2: all_reduce of 10 int32 sum is not done after 0.2 s: a rank has not called it, or with "
                "another count, or is lost (TUTTI_NCCL_TIMEOUT sets the seconds)"));
  const Result<bool> is_done = nccl().test(sums[1]);
  EXPECT_TRUE(is_done.is_ok() && !is_done.value()) << "who only asks has a deadline of his own";
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
  EXPECT_EQ(get(0, at, 1), Numbers{7}) << "who does not synchronise reads what was there before";
  may_go_on = true;
  cuda_->cudaStreamSynchronize(memory_[0]->stream());
  EXPECT_EQ(get(0, at, 1), Numbers{0});
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

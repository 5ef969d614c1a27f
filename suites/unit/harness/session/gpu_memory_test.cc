// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a session's ranks lie, with a double of CUDA in the place of a machine with GPUs.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/tutti/backend.h"
#include "harness/session/systems.h"
#include "impl/communicator/blocks.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/session/some_cases.h"

namespace tutti::harness::session {
namespace {

using testing::HasSubstr;

SessionSpec spec_for(RanksAs ranks_as, RunsOn device) {
  SessionSpec spec{.ranks = 3, .ranks_as = ranks_as};
  spec.conditions.topology.device = device;
  return spec;
}

MemoryKind own_memory_of(const SessionSpec& spec) {
  return memory_kind_of(spec, topology_of(spec).value(), kOwnBackend);
}

TEST(GpuMemory, BlocksOnAGpuHaveItsMemoryAndReferencesWhereTheSpecificationSaysSo) {
  EXPECT_EQ(own_memory_of(spec_for(RanksAs::blocks, RunsOn::gpu)), MemoryKind::cuda);
  EXPECT_EQ(own_memory_of(spec_for(RanksAs::blocks, RunsOn::host)), MemoryKind::host);
  SessionSpec spec = spec_for(RanksAs::processes, RunsOn::gpu);
  const Topology topology = topology_of(spec).value();
  EXPECT_FALSE(has_gpu_memory(spec, topology));
  spec.on_gpus = {"nccl"};
  EXPECT_TRUE(has_gpu_memory(spec, topology));
  EXPECT_EQ(memory_kind_of(spec, topology, "nccl"), MemoryKind::cuda);
  EXPECT_EQ(memory_kind_of(spec, topology, "nccl" + std::string(kTwin)), MemoryKind::cuda);
  EXPECT_EQ(memory_kind_of(spec, topology, kOwnBackend), MemoryKind::host);
  EXPECT_EQ(memory_kind_of(spec, topology, "gloo"), MemoryKind::host);
}

class OnTheDouble : public testing::Test {
 protected:
  static constexpr const char* kRuntime = TUTTI_DOUBLES "/libcudart.so";

  void SetUp() override {
    if (!std::filesystem::exists(kRuntime)) GTEST_SKIP() << "there is no " << kRuntime;
    setenv("TUTTI_DOUBLE_DEVICES", "2", 1);  // the double reads it
    const cuda::FoundRuntime found = cuda::find_runtime([](const char* name) {
      return std::string_view(name) == "TUTTI_CUDART" ? const_cast<char*>(kRuntime) : std::getenv(name);
    });
    ASSERT_NE(found.runtime, nullptr) << found.why;
    runtime_ = found.runtime;
  }
  void TearDown() override { unsetenv("TUTTI_DOUBLE_DEVICES"); }

  std::shared_ptr<const cuda::Runtime> runtime_;
};

TEST_F(OnTheDouble, BlocksShareOneGpuAndOtherRanksHaveOneEach) {
  const auto blocks = open_gpu_memory(spec_for(RanksAs::blocks, RunsOn::gpu), {.first = 1, .count = 3}, runtime_);
  ASSERT_TRUE(blocks.is_ok()) << blocks.status().message();
  ASSERT_EQ(blocks.value().size(), 3U);
  std::set<void*> streams;
  for (const auto& one : blocks.value()) {
    EXPECT_EQ(one->device(), 0);
    streams.insert(one->stream());
  }
  EXPECT_EQ(streams.size(), 3U);
  SessionSpec dealt = spec_for(RanksAs::blocks, RunsOn::gpu);
  dealt.conditions.topology.gpus = 2;
  const auto on_two = open_gpu_memory(dealt, {.first = 0, .count = 3}, runtime_);
  ASSERT_TRUE(on_two.is_ok()) << on_two.status().message();
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(on_two.value()[rank]->device(), rank < 2 ? 0 : 1);

  const SessionSpec processes = spec_for(RanksAs::processes, RunsOn::gpu);
  const auto second = open_gpu_memory(processes, {.first = 1, .count = 1}, runtime_);
  ASSERT_TRUE(second.is_ok()) << second.status().message();
  EXPECT_EQ(second.value().front()->device(), 1);
  const auto third = open_gpu_memory(processes, {.first = 1, .count = 2}, runtime_);
  EXPECT_THAT(third.status().message(), HasSubstr("GPU 2 is out of range: 0 to 1"));
}

TEST_F(OnTheDouble, WhatIsWrittenIsThereWhenItIsRead) {
  auto blocks = open_gpu_memory(spec_for(RanksAs::blocks, RunsOn::gpu), {.first = 0, .count = 2}, runtime_);
  ASSERT_TRUE(blocks.is_ok()) << blocks.status().message();
  CudaMemory& writer = *blocks.value()[0];
  const CudaMemory& reader = *blocks.value()[1];
  const auto memory = writer.allocate(4096);
  ASSERT_TRUE(memory.is_ok());
  auto* const there = static_cast<std::byte*>(memory.value());
  for (int round = 1; round <= 20; ++round) {
    writer.write(there, std::vector<std::byte>(4096, static_cast<std::byte>(round)));
    std::vector<std::byte> here(4096);
    reader.read(here, there);
    EXPECT_EQ(here, std::vector<std::byte>(4096, static_cast<std::byte>(round)));
  }
  writer.release(there);
}

/// Ranks as blocks on teams of the host: what an own backend takes is told before anything runs.
TEST(GpuMemory, TheOwnBackendTakesBuffersOfOneKind) {
  const auto domain = local::open_domain(local::shape_for(2));
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  const auto device = make_host_teams();
  auto ranks = create_as_blocks(*domain.value(), *device, {.lanes = 1, .threads = 1}, {}, {});
  ASSERT_TRUE(ranks.is_ok()) << ranks.status().message();
  const auto own = OwnBackend::over(*domain.value(), std::move(ranks).value());
  Case one = case_of(kReduce);
  one.ranks = 2;
  std::vector<float> data(4096);
  const RankBuffers on_runner{.input = data.data(), .output = data.data()};
  RankBuffers on_gpu = on_runner;
  on_gpu.memory = MemoryKind::cuda;
  const auto why_not = [&](const RankBuffers& buffers) {
    return std::string(own->prepare(one, std::vector{buffers, buffers}).status().message());
  };
  EXPECT_EQ(why_not(on_runner), "");
  EXPECT_THAT(why_not(on_gpu), HasSubstr("runs on buffers in the memory of the host, and on no other"));
  EXPECT_TRUE(own->supports(one).is_ok());

  own->set_memory(MemoryKind::cuda);
  EXPECT_EQ(why_not(on_gpu), "");
  EXPECT_THAT(why_not(on_runner), HasSubstr("runs on buffers in the memory of its GPU, and on no other"));
  EXPECT_TRUE(own->supports(one).is_ok());
  one.buffers = Buffers::shared;
  EXPECT_THAT(std::string(own->supports(one).message()), HasSubstr("--buffers private"));
}

}  // namespace
}  // namespace tutti::harness::session

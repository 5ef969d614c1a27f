// SPDX-License-Identifier: Apache-2.0
// Worlds whose memory is allocated when calls need it. All ranks belong to one thread here, each with its own mapping.
#include <array>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/communicator.h"
#include "impl/transports/shared_memory.h"
#include "impl/transports/shm/domain.h"
#include "impl/types/descriptor.h"

namespace tutti {
namespace {

class GrowingWorld {
 public:
  explicit GrowingWorld(int ranks, std::size_t heap_bytes = 0) {
    const DomainShape shape = default_shape(ranks, heap_bytes);
    memory_ = Descriptor(create_growing_memory("tutti-test", domain_bytes(shape), control_bytes(shape)).value());
    for (int rank = 0; rank < ranks; ++rank) {
      domains_.push_back(shm::open_domain(shape, memory_.get()).value());
      communicators_.push_back(
          Communicator::create(*domains_.back(), rank, {.timeout = std::chrono::seconds(20)}).value());
    }
  }
  [[nodiscard]] Communicator& operator[](int rank) const { return *communicators_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Domain& domain(int rank) const { return *domains_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::int64_t allocated() const {
    struct stat about {};
    EXPECT_EQ(fstat(memory_.get(), &about), 0);
    return about.st_blocks * 512;
  }
  /// Until all are done, or one has failed.
  static Status finish(std::vector<Work>& works) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);;) {
      bool are_done = true;
      for (Work& work : works) {
        TUTTI_ASSIGN_OR_RETURN(const bool is_done, work.test());
        are_done = are_done && is_done;
      }
      if (are_done) return {};
      if (std::chrono::steady_clock::now() > end) return error(Code::timeout, "{}", works.front().report());
    }
  }

 private:
  Descriptor memory_;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

/// Whether the kernel of this test can do it; elsewhere memory is allocated in full.
bool memory_grows() { return GrowingWorld(1).domain(0).allocates_when_needed(); }

TEST(GrowingMemory, NoAlgorithmWithARootTouchesWhatWasNotAllocatedBefore) {
  if (!memory_grows()) GTEST_SKIP() << "memory is allocated in full here";
  constexpr int kMostRanks = 5;
  constexpr Count kMostCount = 100'000;
  std::vector<float> inputs(static_cast<std::size_t>(kMostRanks * kMostCount), 1.0F);
  std::vector<std::vector<float>> outputs(kMostRanks, inputs);
  int tried = 0, with_channels = 0;
  for (const Algorithm* const algorithm : all_algorithms()) {
    for (const int ranks : {2, 4, 5}) {
      const Problem problem{.collective = algorithm->collective, .ranks = ranks, .root = 1};
      if (!is_rooted(problem.collective)) continue;
      const Schedule schedule = schedule_of(*algorithm, problem);
      for (const Count count : {Count{1}, Count{11}, Count{3000}, kMostCount}) {
        const GrowingWorld world(ranks);
        std::vector<Call> calls;
        bool is_possible = true;
        for (int rank = 0; rank < ranks; ++rank) {
          calls.push_back({.collective = problem.collective,
                           .op = is_reducing(problem.collective) ? Op::sum : Op::none,
                           .root = is_rooted(problem.collective) ? 1 : 0,
                           .count = has_data(problem.collective) ? count : 0,
                           .input = inputs.data(),
                           .output = outputs[static_cast<std::size_t>(rank)].data(),
                           .schedule = &schedule});
          is_possible = is_possible && world[rank].prepare(calls.back()).is_ok();
        }
        if (!is_possible) continue;
        const std::int64_t before = world.allocated();
        for (int round = 0; round < 10; ++round) {
          std::vector<Work> works;
          for (int rank = 0; rank < ranks; ++rank) {
            works.push_back(world[rank].post(calls[static_cast<std::size_t>(rank)]).value());
          }
          const Status status = GrowingWorld::finish(works);
          ASSERT_TRUE(status.is_ok()) << algorithm->name << ": " << status.message();
        }
        EXPECT_EQ(world.allocated(), before)
            << to_string(problem.collective) << " " << algorithm->name << " on " << ranks << " ranks, count " << count;
        ++tried;
        with_channels += algorithm->least_slots != nullptr ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tried, 100);
  EXPECT_GT(with_channels, 50);
}

TEST(GrowingMemory, APairHasItsChannelWithTheFirstMessage) {
  if (!memory_grows()) GTEST_SKIP() << "memory is allocated in full here";
  const GrowingWorld world(3);
  const std::int64_t before = world.allocated();
  std::vector<float> sent(100'000, 2.0F), got(100'000);
  const auto pass = [&](Count count) {
    std::vector<Work> works{world[0].post_send(sent.data(), count, Dtype::f32, 2).value(),
                            world[2].post_recv(got.data(), count, Dtype::f32, 0).value()};
    return GrowingWorld::finish(works);
  };
  ASSERT_TRUE(pass(1).is_ok());
  const std::int64_t with_one = world.allocated();
  EXPECT_GT(with_one, before);
  EXPECT_LE(with_one, before + (std::int64_t{72} << 10U));
  ASSERT_TRUE(pass(100'000).is_ok());
  EXPECT_EQ(got, sent);
  EXPECT_EQ(world.allocated(), with_one);
}

TEST(GrowingMemory, ASharedBufferIsAllocatedWhenItIsAskedFor) {
  if (!memory_grows()) GTEST_SKIP() << "memory is allocated in full here";
  const GrowingWorld world(2, std::size_t{1} << 20U);
  const std::int64_t before = world.allocated();
  ASSERT_TRUE(world[1].alloc_shared(100'000).is_ok());
  EXPECT_GE(world.allocated(), before + 100'000);
  EXPECT_LE(world.allocated(), before + 110'000);
}

/// As if memory had ended: the whole pages after `from` are no more to be had in this mapping.
void end_memory_at(const std::byte* from, std::size_t bytes) {
  const std::uintptr_t page = (reinterpret_cast<std::uintptr_t>(from) + 4095) / 4096 * 4096;
  mmap(reinterpret_cast<void*>(page), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

TEST(GrowingMemory, WhereThereIsNoneTheOthersAreToldWhy) {
  if (!memory_grows()) GTEST_SKIP() << "memory is allocated in full here";
  const GrowingWorld world(2);
  end_memory_at(world.domain(1).seat(1).scratch, 4096);
  const std::vector<float> input(1000, 1.0F);
  std::vector<float> output(1000);
  const auto post = [&](int rank) {
    return world[rank].post({.collective = Collective::all_reduce,
                             .op = Op::sum,
                             .count = 1000,
                             .input = input.data(),
                             .output = output.data()});
  };
  std::vector<Work> works{post(0).value()};
  EXPECT_THAT(post(1).status().message(), testing::HasSubstr("no room for "));
  const Status told = GrowingWorld::finish(works);
  EXPECT_EQ(told.code(), Code::aborted);
  EXPECT_THAT(told.message(), testing::StartsWith("rank 1 failed: resource: no room for "));
}

TEST(GrowingMemory, WhereAMessageHasNoneTheOthersAreToldWhy) {
  if (!memory_grows()) GTEST_SKIP() << "memory is allocated in full here";
  const GrowingWorld world(2);
  end_memory_at(reinterpret_cast<std::byte*>(world.domain(1).pair_channel(0, 1).consumed), 4096);
  std::array<float, 2> data{};
  std::vector<Work> works{world[0].post_recv(data.data(), 2, Dtype::f32, 1).value()};
  EXPECT_EQ(world[1].post_recv(data.data(), 2, Dtype::f32, 0).status().code(), Code::resource);
  const Status told = GrowingWorld::finish(works);
  EXPECT_THAT(told.message(), testing::StartsWith("rank 1 failed: resource: no room for "));
}

}  // namespace
}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// The memory that ranks share: where each part lies, on both transports.
#include "impl/transports/domain.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/journal.h"
#include "impl/transports/local/domain.h"
#include "impl/transports/shared_memory.h"
#include "impl/transports/shm/domain.h"

namespace tutti {
namespace {

constexpr DomainShape kShape{
    .ranks = 3, .generations = 4, .scratch_bytes = 4096, .slots = 4, .slot_bytes = 256, .heap_bytes = 8192};

struct Extent {
  const std::byte* begin;
  std::size_t bytes;
};

std::vector<Extent> extents_of(const Domain& domain) {
  const DomainShape& shape = domain.shape();
  const auto bytes_of = [](const auto* pointer) { return reinterpret_cast<const std::byte*>(pointer); };
  std::vector<Extent> list{{bytes_of(&domain.abort_line()), sizeof(AbortLine)},
                           {bytes_of(&domain.doorbell()), sizeof(Doorbell)}};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const Seat seat = domain.seat(rank);
    list.push_back({bytes_of(seat.lines), static_cast<std::size_t>(shape.generations) * sizeof(FlagLine)});
    list.push_back({bytes_of(seat.completion), sizeof(CompletionLine)});
    list.push_back(
        {bytes_of(seat.journal), sizeof(Journal) + static_cast<std::size_t>(shape.ranks) * sizeof(std::int64_t)});
    list.push_back({seat.scratch, static_cast<std::size_t>(shape.generations) * shape.scratch_bytes});
    if (seat.heap != nullptr) list.push_back({seat.heap, shape.heap_bytes});
    for (int peer = 0; peer < shape.ranks; ++peer) {
      const ChannelMemory channel = domain.channel(rank, peer);
      list.push_back({bytes_of(channel.consumed), kCacheLine});
      list.push_back({channel.slots, static_cast<std::size_t>(shape.slots) * (sizeof(SlotHeader) + shape.slot_bytes)});
      const ChannelMemory pair = domain.pair_channel(rank, peer);
      list.push_back({bytes_of(pair.consumed), kCacheLine});
      list.push_back(
          {pair.slots, static_cast<std::size_t>(shape.pair_slots) * (sizeof(SlotHeader) + shape.pair_slot_bytes)});
    }
  }
  return list;
}

void expect_apart(const Domain& domain, std::size_t heaps) {
  std::vector<Extent> list = extents_of(domain);
  EXPECT_EQ(list.size(), 2 + 3 * (4 + heaps + 4 * 3));
  std::sort(list.begin(), list.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(list[i].begin) % kCacheLine, 0U) << i;
    if (i > 0) {
      EXPECT_LE(list[i - 1].begin + list[i - 1].bytes, list[i].begin) << i;
    }
  }
  EXPECT_LE(list.back().begin + list.back().bytes - list.front().begin,
            static_cast<std::ptrdiff_t>(domain_bytes(domain.shape())));
  for (const Extent& extent : list) {
    EXPECT_TRUE(std::all_of(extent.begin, extent.begin + extent.bytes, [](std::byte b) { return b == std::byte{0}; }));
  }
}

class Memory {
 public:
  explicit Memory(const DomainShape& shape) : fd_(create_memory("tutti-test", domain_bytes(shape)).value()) {}
  ~Memory() { close(fd_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

TEST(LocalDomain, PartsAreZeroedAlignedAndApart) {
  const auto domain = local::open_domain(kShape);
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  expect_apart(*domain.value(), 0);
}

TEST(ShmDomain, PartsAreZeroedAlignedAndApart) {
  const Memory memory(kShape);
  const auto domain = shm::open_domain(kShape, memory.fd());
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  expect_apart(*domain.value(), 1);
}

TEST(LocalDomain, ReferencesAreAddressesAndAllMemoryIsShared) {
  const auto domain = local::open_domain(kShape);
  ASSERT_TRUE(domain.is_ok());
  EXPECT_STREQ(domain.value()->transport(), "local");
  EXPECT_EQ(domain.value()->seat(1).heap, nullptr);
  const int anywhere = 0;
  EXPECT_TRUE(domain.value()->is_shared(1, &anywhere, sizeof anywhere));
  const auto memory = domain.value()->alloc_shared(1, 100);
  ASSERT_TRUE(memory.is_ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.value()) % kCacheLine, 0U);
  domain.value()->free_shared(1, memory.value());
}

TEST(LocalDomain, MoreBytesThanThereAreAddressesAreRefusedAndNotShared) {
  const auto domain = local::open_domain(kShape);
  ASSERT_TRUE(domain.is_ok());
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 5, SIZE_MAX - 63}) {
    const auto memory = domain.value()->alloc_shared(1, bytes);
    ASSERT_FALSE(memory.is_ok());
    EXPECT_EQ(memory.status().code(), Code::resource);
    EXPECT_EQ(memory.status().message(), fmt::format("no memory for a shared buffer of {} bytes", bytes));
    const int anywhere = 0;
    EXPECT_FALSE(domain.value()->is_shared(1, &anywhere, bytes));
  }
}

TEST(LocalDomain, FreeingWhatIsNotAllocatedDoesNothing) {
  const auto domain = local::open_domain(kShape);
  ASSERT_TRUE(domain.is_ok());
  auto* memory = static_cast<int*>(domain.value()->alloc_shared(1, sizeof(int)).value());
  *memory = 5;
  int local = 6;
  domain.value()->free_shared(1, nullptr);
  domain.value()->free_shared(1, &local);
  domain.value()->free_shared(0, memory);
  EXPECT_EQ(*memory, 5);
  domain.value()->free_shared(1, memory);
  domain.value()->free_shared(1, memory);
}

// What one process writes, another sees, each at an address of its own.
TEST(ShmDomain, TwoMappingsAreOneMemory) {
  const Memory memory(kShape);
  const auto here = shm::open_domain(kShape, memory.fd());
  const auto there = shm::open_domain(kShape, memory.fd());
  ASSERT_TRUE(here.is_ok() && there.is_ok());
  EXPECT_STREQ(here.value()->transport(), "shm");
  EXPECT_NE(here.value()->seat(2).heap, there.value()->seat(2).heap);
  here.value()->seat(2).lines[3].flag.store(77);
  EXPECT_EQ(there.value()->seat(2).lines[3].flag.load(), 77U);
  here.value()->channel(1, 2).slots[10] = std::byte{5};
  EXPECT_EQ(there.value()->channel(1, 2).slots[10], std::byte{5});
  EXPECT_EQ(there.value()->channel(2, 1).slots[10], std::byte{0}) << "a direction of its own";
  here.value()->seat(0).heap[9] = std::byte{6};
  EXPECT_EQ(there.value()->seat(0).heap[9], std::byte{6});
}

TEST(ShmDomain, MemoryThatIsTooSmallIsRefusedWithTheNumbers) {
  const Memory memory(kShape);
  DomainShape larger = kShape;
  larger.heap_bytes += 4096;
  const auto domain = shm::open_domain(larger, memory.fd());
  ASSERT_FALSE(domain.is_ok());
  EXPECT_EQ(domain.status().code(), Code::invalid_argument);
  EXPECT_EQ(domain.status().message(), fmt::format("the job's shared memory has {} bytes; 3 ranks need {}",
                                                   domain_bytes(kShape), domain_bytes(larger)));
}

TEST(ShmDomain, ADescriptorThatIsNoneIsAnError) { EXPECT_EQ(shm::open_domain(kShape, -1).status().code(), Code::io); }

// What the maker writes, the taker sees; the descriptor is closed when it is withdrawn, the memory goes with the last.
void expect_one_memory(Domain& maker, Domain& taker) {
  auto made = maker.make_group_memory(8192);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  auto taken = taker.take_group_memory(made.value()->offer(), 8192);
  ASSERT_TRUE(taken.is_ok()) << taken.status().message();
  made.value()->withdraw();
  made.value()->base()[8191] = std::byte{7};
  EXPECT_EQ(taken.value()->base()[8191], std::byte{7});
  made = Status(Code::unavailable, "let go of");
  EXPECT_EQ(taken.value()->base()[8191], std::byte{7});
  EXPECT_EQ(taken.value()->base()[0], std::byte{0});
}

TEST(LocalDomain, GroupMemoryIsSharedUntilTheLastLetsGo) {
  const auto domain = local::open_domain(kShape).value();
  expect_one_memory(*domain, *domain);
}

TEST(ShmDomain, GroupMemoryIsSharedUntilTheLastLetsGo) {
  const Memory memory(kShape);
  const auto here = shm::open_domain(kShape, memory.fd()).value();
  const auto there = shm::open_domain(kShape, memory.fd()).value();
  expect_one_memory(*here, *there);
}

TEST(ShmDomain, GroupMemoryThatIsWithdrawnOrTooLargeIsAnError) {
  const Memory memory(kShape);
  const auto domain = shm::open_domain(kShape, memory.fd()).value();
  const auto made = domain->make_group_memory(4096).value();
  const GroupMemory::Offer offer = made->offer();
  made->withdraw();
  const auto taken = domain->take_group_memory(offer, 4096);
  EXPECT_EQ(taken.status().code(), Code::io) << taken.status().message();
  const auto huge = domain->make_group_memory(std::size_t{1} << 50U);
  EXPECT_EQ(huge.status().code(), Code::resource);
  EXPECT_NE(huge.status().message().find("cannot allocate 1125899906842624 bytes"), std::string::npos)
      << huge.status().message();
}

TEST(DefaultShape, SlotsShrinkAsThePairsGrowButNotBelow256) {
  EXPECT_EQ(default_shape(2, 0).slot_bytes, 16U * 1024);
  EXPECT_EQ(default_shape(64, 0).slot_bytes, 2048U);
  EXPECT_EQ(default_shape(256, 0).slot_bytes, 256U);
  EXPECT_EQ(default_shape(2, 0).pair_slot_bytes, 16U * 1024);
  EXPECT_EQ(default_shape(64, 0).pair_slot_bytes, 1024U);
  EXPECT_EQ(default_shape(256, 0).pair_slot_bytes, 256U);
  EXPECT_EQ(default_shape(3, 12345).heap_bytes, 12345U);
}

TEST(DefaultShape, ScratchOfAllRanksFitsCachesButNotBelowAPage) {
  EXPECT_EQ(default_shape(2, 0).scratch_bytes, 256U * 1024);
  EXPECT_EQ(default_shape(64, 0).scratch_bytes, 256U * 1024);
  EXPECT_EQ(default_shape(128, 0).scratch_bytes, 128U * 1024);
  EXPECT_EQ(local::shape_for(257).scratch_bytes, 65280U) << "whole lines of 16 MiB / 257";
  EXPECT_EQ(default_shape(10'000, 0).scratch_bytes, 4096U);
}

TEST(DefaultShape, OfOneProcessKeepsSlotsOfAPageForManyRanks) {
  EXPECT_EQ(local::shape_for(2).slot_bytes, 16U * 1024);
  EXPECT_EQ(local::shape_for(257).slot_bytes, 4096U);
}

}  // namespace
}  // namespace tutti

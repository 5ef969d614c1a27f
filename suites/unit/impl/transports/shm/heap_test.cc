// SPDX-License-Identifier: Apache-2.0
// The heap of shared buffers, through the domain that owns it: 1024 bytes per rank, which pages round up but the heap
// does not.
#include <cstdint>
#include <memory>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/shared_memory.h"
#include "impl/transports/shm/domain.h"

namespace tutti {
namespace {

class Heap : public testing::Test {
 protected:
  Heap() {
    const int fd = create_memory("tutti-test", domain_bytes(kShape)).value();
    domain_ = shm::open_domain(kShape, fd).value();
    close(fd);
  }
  std::byte* allocate(std::size_t bytes, int rank = 0) {
    const auto memory = domain_->alloc_shared(rank, bytes);
    EXPECT_TRUE(memory.is_ok()) << memory.status().message();
    return memory.is_ok() ? static_cast<std::byte*>(memory.value()) : nullptr;
  }
  [[nodiscard]] std::ptrdiff_t offset(const std::byte* pointer, int rank = 0) const {
    return pointer - domain_->seat(rank).heap;
  }
  static constexpr DomainShape kShape{
      .ranks = 2, .scratch_bytes = 4096, .slots = 1, .slot_bytes = 64, .heap_bytes = 1024};
  std::unique_ptr<Domain> domain_;
};

TEST_F(Heap, BuffersAreWholeLinesOneAfterTheOther) {
  EXPECT_EQ(offset(allocate(1)), 0);
  EXPECT_EQ(offset(allocate(65)), 64);
  EXPECT_EQ(offset(allocate(64)), 192);
  EXPECT_EQ(offset(allocate(0)), 256) << "an empty buffer has an address of its own";
  EXPECT_EQ(offset(allocate(10)), 320);
}

TEST_F(Heap, EachRankHasItsOwn) {
  allocate(1024, 0);
  EXPECT_EQ(offset(allocate(1024, 1), 1), 0);
}

TEST_F(Heap, WhatIsFreedIsUsedAgain) {
  std::byte* first = allocate(128);
  allocate(128);
  domain_->free_shared(0, first);
  EXPECT_EQ(allocate(256) - first, 256) << "does not fit the gap";
  EXPECT_EQ(allocate(64), first);
  EXPECT_EQ(allocate(64), first + 64);
}

TEST_F(Heap, NeighboursThatAreFreedBecomeOne) {
  for (const std::array order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    const std::array parts{allocate(256), allocate(256), allocate(512)};
    for (const int i : order) domain_->free_shared(0, parts[static_cast<std::size_t>(i)]);
    std::byte* whole = allocate(1024);
    EXPECT_EQ(offset(whole), 0);
    domain_->free_shared(0, whole);
  }
}

TEST_F(Heap, WhenNothingFitsTheNumbersAreSaid) {
  allocate(600);
  const auto memory = domain_->alloc_shared(0, 500);
  ASSERT_FALSE(memory.is_ok());
  EXPECT_EQ(memory.status().code(), Code::resource);
  EXPECT_EQ(memory.status().message(),
            "no room for a shared buffer of 500 bytes: the largest free part of the heap has 384");
}

// Rounding such a size up to lines would wrap around to nothing.
TEST_F(Heap, MoreBytesThanThereAreAddressesDoNotFit) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 5, SIZE_MAX - 63, SIZE_MAX / 2}) {
    const auto memory = domain_->alloc_shared(0, bytes);
    ASSERT_FALSE(memory.is_ok());
    EXPECT_EQ(memory.status().code(), Code::resource);
    EXPECT_EQ(
        memory.status().message(),
        fmt::format("no room for a shared buffer of {} bytes: the largest free part of the heap has 1024", bytes));
  }
  EXPECT_EQ(offset(allocate(1024)), 0);
}

TEST_F(Heap, MoreBytesThanThereAreAddressesAreNotShared) {
  const std::byte* buffer = allocate(100);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 10, SIZE_MAX - 127, SIZE_MAX / 2}) {
    EXPECT_FALSE(domain_->is_shared(0, buffer, bytes)) << bytes;
    EXPECT_FALSE(domain_->is_shared(0, buffer + 64, bytes)) << bytes;
  }
}

TEST_F(Heap, FreeingWhatIsNotAllocatedDoesNothing) {
  std::byte* buffer = allocate(512);
  int local = 0;
  domain_->free_shared(0, nullptr);
  domain_->free_shared(0, &local);
  domain_->free_shared(0, buffer + 64);
  domain_->free_shared(1, buffer);
  EXPECT_TRUE(domain_->is_shared(0, buffer, 512));
  domain_->free_shared(0, buffer);
  domain_->free_shared(0, buffer);
  EXPECT_EQ(allocate(1024), buffer) << "freed once, and whole";
}

TEST_F(Heap, OnlyWhatIsAllocatedIsShared) {
  const std::byte* buffer = allocate(100);
  EXPECT_TRUE(domain_->is_shared(0, buffer, 100));
  EXPECT_TRUE(domain_->is_shared(0, buffer + 28, 100)) << "up to the end of its last line";
  EXPECT_FALSE(domain_->is_shared(0, buffer + 29, 100));
  EXPECT_FALSE(domain_->is_shared(1, buffer, 100)) << "another rank's";
  const int local = 0;
  EXPECT_FALSE(domain_->is_shared(0, &local, sizeof local));
  domain_->free_shared(0, const_cast<std::byte*>(buffer));
  EXPECT_FALSE(domain_->is_shared(0, buffer, 1));
}

}  // namespace
}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/buffers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/types/bfloat16.h"

namespace tutti::harness::verify {
namespace {

GuardedBuffer make(GuardedBufferOptions options) {
  auto buffer = GuardedBuffer::create(options);
  TUTTI_ASSERT(buffer.is_ok(), "{}", buffer.status().message());
  return std::move(buffer).value();
}

TEST(GuardedBuffer, StartsAtTheAskedAlignment) {
  for (const std::size_t misalignment : {0U, 1U, 3U, 63U}) {
    const GuardedBuffer buffer = make({.bytes = 1000, .misalignment = misalignment});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.payload().data()) % 64, misalignment);
    EXPECT_EQ(buffer.payload().size(), 1000U);
  }
}

TEST(GuardedBuffer, IsUnharmedByWritingAllOfItsPayload) {
  for (const std::size_t bytes : {0U, 1U, 64U, 1000U}) {
    const GuardedBuffer buffer = make({.bytes = bytes, .misalignment = 1});
    fill_poison(buffer.payload(), 5);
    EXPECT_FALSE(buffer.check_guards().has_value()) << bytes;
  }
}

TEST(GuardedBuffer, NoticesOneByteOnEitherSideAndAPageAway) {
  for (const std::ptrdiff_t offset : {-4096, -1, 1000, 1001, 5000}) {
    GuardedBuffer buffer = make({.bytes = 1000, .misalignment = 3});
    std::byte* const target = buffer.payload().data() + offset;
    *target = ~*target;
    const auto damage = buffer.check_guards();
    ASSERT_TRUE(damage.has_value()) << offset;
    EXPECT_EQ(damage->offset, offset);
    EXPECT_EQ(damage->actual, ~damage->expected);
    fill_poison(buffer.payload(), 5);
    const std::vector<std::byte> before(buffer.payload().begin(), buffer.payload().end());
    buffer.restore_guards();
    EXPECT_FALSE(buffer.check_guards().has_value()) << offset;
    EXPECT_TRUE(std::equal(before.begin(), before.end(), buffer.payload().begin()));
  }
}

TEST(GuardedBuffer, SaysWhereTheDamageIs) {
  const GuardDamage after{.offset = 1000, .expected = std::byte{0xa7}, .actual = std::byte{0x41}};
  EXPECT_EQ(after.text(1000), "byte 1 past the end of the buffer of 1000 bytes was overwritten: 0x41 instead of 0xa7");
  const GuardDamage before{.offset = -2, .expected = std::byte{0x01}, .actual = std::byte{0x00}};
  EXPECT_EQ(before.text(8), "byte 2 before the buffer of 8 bytes was overwritten: 0x00 instead of 0x01");
}

TEST(GuardedBuffer, TakesItsMemoryFromTheCallersAllocatorAndReturnsItOnce) {
  std::vector<std::byte> heap(20000);
  std::vector<void*> released;
  {
    GuardedBuffer buffer =
        make({.bytes = 1000,
              .allocator = {.allocate = [&](std::size_t) -> Result<void*> { return static_cast<void*>(heap.data()); },
                            .release = [&](void* pointer) { released.push_back(pointer); }}});
    EXPECT_GE(buffer.payload().data(), heap.data());
    GuardedBuffer moved = std::move(buffer);
    EXPECT_TRUE(released.empty());
  }
  EXPECT_EQ(released, std::vector<void*>{heap.data()});
}

TEST(GuardedBuffer, PassesOnTheAllocatorsError) {
  const auto buffer = GuardedBuffer::create({.bytes = 8,
                                             .allocator = {.allocate = [](std::size_t bytes) -> Result<void*> {
                                                             return error(Code::resource, "no {}", bytes);
                                                           },
                                                           .release = [](void*) {}}});
  EXPECT_EQ(buffer.status().code(), Code::resource);
}

TEST(GuardedBuffer, RefusesAnAlignmentThatIsNone) {
  EXPECT_THAT(GuardedBuffer::create({.bytes = 8, .alignment = 48}).status().message(), testing::HasSubstr("48"));
  EXPECT_THAT(GuardedBuffer::create({.bytes = 8, .misalignment = 64}).status().message(),
              testing::HasSubstr("[0, 64)"));
}

TEST(Poison, IsANanInEveryFloatAndDiffersBetweenRefills) {
  std::vector<std::byte> bytes(4099);
  for (std::uint64_t salt = 0; salt < 100; ++salt) {
    fill_poison(bytes, salt);
    float first = 0;
    std::memcpy(&first, bytes.data(), 4);
    EXPECT_TRUE(std::isnan(first));
    EXPECT_TRUE(std::isnan(BFloat16{poison_word(salt)}.to_float()));
    EXPECT_NE(poison_word(salt), poison_word(salt + 1));
    EXPECT_EQ(std::memcmp(bytes.data(), bytes.data() + 2048, 2048), 0);
    EXPECT_EQ(bytes.back(), bytes.front());
  }
}

}  // namespace
}  // namespace tutti::harness::verify

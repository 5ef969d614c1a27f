// SPDX-License-Identifier: Apache-2.0
// Places of an output: all of a short one, few lines of a long one, others each time.
#include "harness/measure/places.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "harness/verify/buffers.h"

namespace tutti::harness::measure {
namespace {

constexpr std::size_t kPlaceBytes = 64;
constexpr std::uint64_t kPoisonSalt = 5;

TEST(Places, AreAllOfAShortOutputAndFewLinesOfALongOne) {
  EXPECT_EQ(places_in(0), 0U);
  EXPECT_EQ(places_in(1), 1U);
  EXPECT_EQ(places_in(4096), 64U);
  EXPECT_EQ(places_in(4097), 64U);
  EXPECT_EQ(places_in(std::size_t{1} << 30U), 64U);
}

/// Lines of `bytes` zeros that hold the poison afterwards; every other byte is what it was.
std::set<std::size_t> lines_poisoned(std::size_t bytes, std::uint64_t draw, bool flushes = false) {
  std::vector<std::byte> output(bytes), poison(bytes);
  fill_poison(poison, kPoisonSalt);
  poison_places(output, {.draw = draw, .salt = kPoisonSalt, .flushes = flushes});
  std::set<std::size_t> lines;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (output[i] == std::byte{0}) continue;
    EXPECT_EQ(output[i], poison[i]) << "as if all of the output had been poisoned, byte " << i;
    lines.insert(i / kPlaceBytes);
  }
  return lines;
}

TEST(Places, OfAShortOutputLeaveNothingOut) {
  for (const std::size_t bytes : {1UL, 63UL, 64UL, 65UL, 1001UL, 4096UL}) {
    EXPECT_EQ(lines_poisoned(bytes, 1).size(), (bytes + 63) / 64) << bytes;
  }
}

TEST(Places, OfALongOutputLieInEqualPartsAndAreOthersEachTime) {
  constexpr std::size_t kLines = 64 * 100;
  std::set<std::size_t> all;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    const auto lines = lines_poisoned(kLines * kPlaceBytes, draw, draw % 2 == 1);
    ASSERT_EQ(lines.size(), kMostPlaces);
    std::size_t part = 0;
    for (const std::size_t line : lines) EXPECT_EQ(line / 100, part++) << "one in each part";
    EXPECT_EQ(lines_poisoned(kLines * kPlaceBytes, draw), lines) << "the draw brings them back";
    all.insert(lines.begin(), lines.end());
  }
  EXPECT_GT(all.size(), 15 * kMostPlaces);
}

TEST(Places, MayBeTheLastBytesOfAnOutput) {
  constexpr std::size_t kEnd = 3 * kMostPlaces;  // lines, and 32 bytes more
  std::set<std::size_t> all;
  for (std::uint64_t draw = 0; draw < 100; ++draw) all.merge(lines_poisoned(kEnd * kPlaceBytes + 32, draw));
  EXPECT_TRUE(all.contains(0) && all.contains(kEnd));
}

}  // namespace
}  // namespace tutti::harness::measure

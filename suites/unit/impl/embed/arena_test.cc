// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/arena.h"

#include <algorithm>
#include <cstring>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/embed/ranks.h"

namespace tutti::embed {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

Arena& arena() { return *Arena::of_process().value(); }

/// A buffer of the arena.
class Floats {
 public:
  Floats(std::size_t count, float value) : count_(count) {
    begin_ = static_cast<float*>(arena().allocate(count * sizeof(float)));
    std::fill_n(begin_, count, value);
  }
  ~Floats() { arena().release(begin_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  [[nodiscard]] float* data() const { return begin_; }
  [[nodiscard]] bool are_all(float value) const {
    return std::all_of(begin_, begin_ + count_, [&](float each) { return each == value; });
  }

 private:
  std::size_t count_;
  float* begin_;
};

Call sum_in(float* buffer, std::size_t count) {
  return {.collective = Collective::all_reduce,
          .dtype = Dtype::f32,
          .op = Op::sum,
          .count = static_cast<Count>(count),
          .input = buffer,
          .output = buffer,
          .buffers = Buffers::shared};
}

TEST(Arena, GivesWhatIsFreeAndNothingTwice) {
  auto* const one = static_cast<std::byte*>(arena().allocate(100));
  auto* const two = static_cast<std::byte*>(arena().allocate(kMiB));
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  EXPECT_TRUE(one + 100 <= two || two + kMiB <= one);
  EXPECT_TRUE(arena().holds(one, 100));
  EXPECT_FALSE(arena().holds(arena().begin() + arena().bytes() - 1, 2));
  EXPECT_FALSE(arena().holds(arena().begin() - 1, 2));
  int outside = 0;
  EXPECT_FALSE(arena().holds(&outside, sizeof outside));
  arena().release(two);
  EXPECT_EQ(arena().allocate(kMiB), two) << "what was released last is taken next";
  arena().release(one);
  arena().release(two);
  EXPECT_EQ(arena().allocate(0), nullptr);
  EXPECT_EQ(arena().allocate(arena().bytes()), nullptr) << "its first page is not for buffers";
}

TEST(Arena, PartsThatAreReleasedAreJoined) {
  std::vector<void*> parts;
  for (int i = 0; i < 9; ++i) parts.push_back(arena().allocate(kMiB));
  for (const std::size_t i : {1, 3, 2, 8, 0, 7, 4, 6, 5}) arena().release(parts[i]);
  void* const all = arena().allocate(arena().bytes() - 4096);
  EXPECT_NE(all, nullptr);
  arena().release(all);
}

TEST(Arena, PagesBeyondWhatIsKeptGoBack) {
  int number = -1;
  ASSERT_EQ(std::sscanf(arena().offer().c_str(), "%d:", &number), 1);
  const auto blocks = [&] {
    struct stat about {};
    EXPECT_EQ(::fstat(number, &about), 0);
    return about.st_blocks;
  };
  // Each is all that is kept, so the pages of one of the two are not.
  std::vector<void*> parts;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(arena().allocate(256 * kMiB));
    std::memset(parts.back(), 1, kMiB);
  }
  const auto before = blocks();
  for (void* const part : parts) arena().release(part);
  EXPECT_LE(blocks(), before - static_cast<blkcnt_t>(kMiB / 512));
}

TEST(Arena, AForkedChildHasACopyOfItsOwn) {
  const Floats numbers(100'000, 1.0F);
  Arena& of_parent = arena();
  std::array<int, 2> written{}, read{};
  ASSERT_EQ(::pipe(written.data()), 0);
  ASSERT_EQ(::pipe(read.data()), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(written[1]);
    (void)!::read(written[0], &byte, 1);  // the parent has written
    const bool is_copy = numbers.are_all(1.0F);
    std::fill_n(numbers.data(), 10, 3.0F);
    (void)!::write(read[1], &byte, 1);
    ::_exit(is_copy ? of_parent.allocate(kMiB) == nullptr ? 0 : 2 : 1);
  }
  std::fill_n(numbers.data(), 100'000, 2.0F);
  EXPECT_EQ(::write(written[1], &byte, 1), 1);
  EXPECT_EQ(::read(read[0], &byte, 1), 1);
  EXPECT_TRUE(numbers.are_all(2.0F)) << "the child has written into its parent's memory";
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "1 << 8: the child sees what its parent wrote later; 2 << 8: it got memory";
  for (const int end : {written[0], written[1], read[0], read[1]}) ::close(end);
}

TEST(Arena, ThreadsReduceInIt) {
  as_threads(
      3,
      [](World& world) {
        EXPECT_TRUE(world.has_arenas());
        const Floats numbers(100'000, static_cast<float>(world.rank()));
        const Status status = run_in(world, sum_in(numbers.data(), 100'000));
        EXPECT_TRUE(status.is_ok()) << status.message();
        EXPECT_TRUE(numbers.are_all(3.0F));
      },
      {.arena = &arena()});
}

TEST(Arena, ProcessesReduceInIt) {
  Processes processes(3, [](const Exchange& exchange, int rank) -> std::string {
    for (int time = 0; time < 3; ++time) {
      const Exchange own{.set = [&](const std::string& key,
                                    const std::string& value) { return exchange.set(fmt::format("{}.{}", key, time), value); },
                         .get = [&](const std::string& key, std::chrono::nanoseconds timeout) {
                           return exchange.get(fmt::format("{}.{}", key, time), timeout);
                         }};
      const auto world = World::join(own, rank, 3, {.arena = &arena()});
      if (!world.is_ok()) return world.status().message();
      if (!world.value()->has_arenas()) return "not all have one";
      for (const std::size_t count : {std::size_t{1000}, std::size_t{300'000}}) {
        const Floats numbers(count, static_cast<float>(rank));
        const Status status = run_in(*world.value(), sum_in(numbers.data(), count));
        if (!status.is_ok()) return status.message();
        if (!numbers.are_all(3.0F)) return fmt::format("{} numbers are wrong", count);
      }
    }
    return "";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(processes.said_by(rank), "");
}

TEST(Arena, WhatLiesElsewhereIsRefused) {
  as_threads(
      2,
      [](World& world) {
        std::vector<float> numbers(1000, 1.0F);
        const Status status = world.post(sum_in(numbers.data(), numbers.size())).status();
        EXPECT_EQ(status.code(), Code::invalid_argument);
        EXPECT_THAT(status.message(), HasSubstr("not from alloc_shared"));
      },
      {.arena = &arena()});
}

TEST(Arena, WhereARankHasNoneNoneIsShared) {
  Processes processes(2, [](const Exchange& exchange, int rank) -> std::string {
    const auto world = World::join(exchange, rank, 2, {.arena = rank == 0 ? &arena() : nullptr});
    if (!world.is_ok()) return world.status().message();
    return world.value()->has_arenas() ? "it is shared" : "";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(processes.said_by(rank), "");
}

TEST(Arena, AnotherFileThanWasOfferedIsRefused) {
  std::string offer = arena().offer();
  offer.back() = offer.back() == '0' ? '1' : '0';
  EXPECT_THAT(PeerArena::of(this_process(), offer).status().message(), HasSubstr("is not the memory of process"));
  EXPECT_EQ(PeerArena::of(this_process(), "3").status().code(), Code::mismatch);
  EXPECT_EQ(PeerArena::of(this_process(), "987654:1:00").status().code(), Code::io);
}

}  // namespace
}  // namespace tutti::embed

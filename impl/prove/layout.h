// SPDX-License-Identifier: Apache-2.0
// Where operands really lie: in place, input and output are one memory, which is called the output's and begins where the
// output does: an input that holds the output begins before it. And which bytes of each memory a plan
// may touch: of the user's buffers only this segment's bytes of each block.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "impl/prove/prove.h"

namespace tutti {

/// `input` is never used where the plans are in place.
enum Memory : std::uint8_t { memory_input, memory_output, memory_scratch, memory_line, kMemories };

/// A byte interval of one rank's memory.
struct Interval {
  Memory memory = memory_input;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] bool overlaps(const Interval& other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
};

class Layout {
 public:
  explicit Layout(const PlanSet& set)
      : problem_(set.schedule->problem),
        plans_(set.plans),
        block_bytes_(set.block_bytes),
        block_stride_(set.block_stride),
        is_in_place_(set.plans.front().header().is_in_place) {}

  [[nodiscard]] int ranks() const { return problem_.ranks; }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] bool is_in_place() const { return is_in_place_; }
  [[nodiscard]] std::int64_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] std::int64_t block_begin(int block) const { return block * block_stride_; }

  /// Offset of `rank`'s input in the memory where it lies.
  [[nodiscard]] std::int64_t input_shift(int rank) const {
    return is_in_place_ ? in_place_block(problem_, rank) * block_stride_ : 0;
  }
  [[nodiscard]] Memory input_memory() const { return is_in_place_ ? memory_output : memory_input; }

  /// `space` is not a channel.
  [[nodiscard]] Interval locate(int rank, Space space, std::int64_t offset, std::int64_t bytes) const {
    if (space == Space::input) {
      const std::int64_t begin = offset + input_shift(rank);
      return {.memory = input_memory(), .begin = begin, .end = begin + bytes};
    }
    const Memory memory = space == Space::output    ? memory_output
                          : space == Space::scratch ? memory_scratch
                                                    : memory_line;
    return {.memory = memory, .begin = offset, .end = offset + bytes};
  }

  /// Whether `rank` has these bytes at all, in this segment.
  [[nodiscard]] bool is_within(int rank, Space space, std::int64_t offset, std::int64_t bytes) const {
    if (offset < 0) return false;
    switch (space) {
      case Space::input:
        return is_in_blocks(input_blocks(problem_, rank), offset, bytes);
      case Space::output:
        return is_in_blocks(output_blocks(problem_, rank), offset, bytes);
      case Space::scratch:
        return offset + bytes <= plans_[static_cast<std::size_t>(rank)].header().scratch_bytes;
      case Space::line:
        return offset + bytes <= kLineBytes;
      case Space::channel:
        break;
    }
    return false;
  }

  /// `output bytes [64, 128)`
  [[nodiscard]] static std::string describe(const Interval& interval) {
    static constexpr std::array<const char*, kMemories> kNames{"input", "output", "scratch", "flag line"};
    return fmt::format("{} bytes [{}, {})", kNames[interval.memory], interval.begin, interval.end);
  }

 private:
  [[nodiscard]] bool is_in_blocks(int blocks, std::int64_t offset, std::int64_t bytes) const {
    if (block_bytes_ == block_stride_) return offset + bytes <= blocks * block_bytes_;
    return offset < blocks * block_stride_ && offset % block_stride_ + bytes <= block_bytes_;
  }

  Problem problem_;
  std::span<const Plan> plans_;
  std::int64_t block_bytes_;
  std::int64_t block_stride_;
  bool is_in_place_;
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Where operands really lie. In place, input and output are one memory, which is called the output's and begins where
// the output does. An input that holds the output begins before it. And which bytes of each memory a plan may touch: of
// the user's buffers only this segment's bytes of each block, never what lies between blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

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
        blocks_(set.blocks),
        is_in_place_(set.plans.front().header().is_in_place) {
    for (const BlockTable& table : blocks_) {
      for (const std::vector<Block>* list : {&table.input, &table.output}) {
        joined_.push_back(joined(*list));
      }
    }
  }

  [[nodiscard]] int ranks() const { return problem_.ranks; }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] bool is_in_place() const { return is_in_place_; }
  /// Every block begins at the same place on all ranks that have it.
  [[nodiscard]] bool has_equal_blocks() const { return blocks_.empty(); }
  /// This segment's bytes of a block of `rank`, from the buffer's address on.
  [[nodiscard]] Block input_block(int rank, int block) const {
    return has_equal_blocks() ? equal_block(block) : table_of(rank).input[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] Block output_block(int rank, int block) const {
    return has_equal_blocks() ? equal_block(block) : table_of(rank).output[static_cast<std::size_t>(block)];
  }

  /// Offset of `rank`'s input in the memory where it lies.
  [[nodiscard]] std::int64_t input_shift(int rank) const {
    if (!is_in_place_) return 0;
    return has_equal_blocks() ? in_place_block(problem_, rank) * block_stride_
                              : in_place_shift(problem_, rank, table_of(rank));
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
        return has_equal_blocks() ? is_in_blocks(input_blocks(problem_, rank), offset, bytes)
                                  : is_in_one_of(joined_[2 * static_cast<std::size_t>(rank)], offset, bytes);
      case Space::output:
        return has_equal_blocks() ? is_in_blocks(output_blocks(problem_, rank), offset, bytes)
                                  : is_in_one_of(joined_[2 * static_cast<std::size_t>(rank) + 1], offset, bytes);
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
  [[nodiscard]] const BlockTable& table_of(int rank) const { return blocks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Block equal_block(int block) const { return {.offset = block * block_stride_, .bytes = block_bytes_}; }
  /// In the order of their places, none empty, those without a gap between them joined.
  [[nodiscard]] static std::vector<Block> joined(std::vector<Block> blocks) {
    std::erase_if(blocks, [](const Block& block) { return block.bytes == 0; });
    std::ranges::sort(blocks, {}, &Block::offset);
    std::vector<Block> result;
    for (const Block& block : blocks) {
      if (!result.empty() && result.back().offset + result.back().bytes == block.offset) {
        result.back().bytes += block.bytes;
      } else {
        result.push_back(block);
      }
    }
    return result;
  }
  /// `blocks` are joined. An empty interval lies anywhere.
  [[nodiscard]] static bool is_in_one_of(const std::vector<Block>& blocks, std::int64_t offset, std::int64_t bytes) {
    if (bytes == 0) return true;
    const auto after = std::ranges::upper_bound(blocks, offset, {}, &Block::offset);
    return after != blocks.begin() && offset + bytes <= std::prev(after)->offset + std::prev(after)->bytes;
  }
  [[nodiscard]] bool is_in_blocks(int blocks, std::int64_t offset, std::int64_t bytes) const {
    if (block_bytes_ == block_stride_) return offset + bytes <= blocks * block_bytes_;
    return offset < blocks * block_stride_ && offset % block_stride_ + bytes <= block_bytes_;
  }

  Problem problem_;
  std::span<const Plan> plans_;
  std::int64_t block_bytes_;
  std::int64_t block_stride_;
  std::span<const BlockTable> blocks_;
  std::vector<std::vector<Block>> joined_;  ///< of rank r: input [2r], output [2r + 1]
  bool is_in_place_;
};

}  // namespace tutti

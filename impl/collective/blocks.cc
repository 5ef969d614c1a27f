// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/blocks.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tutti {
namespace {

/// One buffer's division, and the words for it.
struct Side {
  const char* name;
  const Division& division;
  std::size_t element_bytes;
};

Status check_size(const char* name, const char* what, std::size_t size, int ranks) {
  if (size == static_cast<std::size_t>(ranks)) return {};
  return error(Code::invalid_argument, "{} {} of the {} on {} ranks: one for each rank", size, what, name, ranks);
}

/// Bytes of each block. Errors also where all together are too many: every sum of them then fits.
Result<std::vector<std::int64_t>> lengths_of(const Side& side, int ranks) {
  TUTTI_RETURN_IF_ERROR(check_size(side.name, "counts", side.division.counts.size(), ranks));
  std::vector<std::int64_t> lengths;
  lengths.reserve(side.division.counts.size());
  std::int64_t total = 0;
  for (const Count count : side.division.counts) {
    const std::size_t block = lengths.size();
    if (count < 0) {
      return error(Code::invalid_argument, "count {} of block {} of the {} is negative: 0 or more", count, block,
                   side.name);
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(side.element_bytes), &bytes) ||
        __builtin_add_overflow(total, bytes, &total)) {
      return error(Code::invalid_argument,
                   "count {} of block {} of the {}: with it the blocks have more than {} bytes ({} in an element)",
                   count, block, side.name, std::numeric_limits<std::int64_t>::max(), side.element_bytes);
    }
    lengths.push_back(bytes);
  }
  return lengths;
}

/// The blocks, at their displacements or one after the other.
Result<std::vector<Block>> placed(const Side& side, std::span<const std::int64_t> lengths) {
  const std::span<const Count> displacements = side.division.displacements;
  std::vector<Block> blocks;
  blocks.reserve(lengths.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Block block{.offset = next, .bytes = lengths[i]};
    if (!displacements.empty()) {
      const auto element = static_cast<std::int64_t>(side.element_bytes);
      if (displacements[i] < 0) {
        return error(Code::invalid_argument, "displacement {} of block {} of the {} is negative: 0 or more",
                     displacements[i], i, side.name);
      }
      std::int64_t end = 0;
      if (__builtin_mul_overflow(displacements[i], element, &block.offset) ||
          __builtin_add_overflow(block.offset, block.bytes, &end)) {
        return error(Code::invalid_argument,
                     "displacement {} of block {} of the {}, which has {} bytes, is out of range: 0 to {} elements of "
                     "{} bytes",
                     displacements[i], i, side.name, lengths[i],
                     (std::numeric_limits<std::int64_t>::max() - lengths[i]) / element, element);
      }
    }
    next = block.offset + block.bytes;
    blocks.push_back(block);
  }
  return blocks;
}

Result<std::vector<Block>> divided(const Side& side, int ranks) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::int64_t> lengths, lengths_of(side, ranks));
  if (!side.division.displacements.empty()) {
    TUTTI_RETURN_IF_ERROR(check_size(side.name, "displacements", side.division.displacements.size(), ranks));
  }
  return placed(side, lengths);
}

/// The two blocks that share bytes, if any do.
Status check_apart(const char* name, std::span<const Block> blocks) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return blocks[i].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Block &one = blocks[order[i - 1]], &next = blocks[order[i]];
    if (one.offset + one.bytes <= next.offset) continue;
    return error(Code::invalid_argument, "blocks {} and {} of the {} overlap: bytes [{}, {}) and [{}, {})",
                 order[i - 1], order[i], name, one.offset, one.offset + one.bytes, next.offset,
                 next.offset + next.bytes);
  }
  return {};
}

/// The blocks of one buffer are those that the rank has: `blocks` of them, as long as all ranks know.
Status check_side(const char* name, int rank, std::span<const Block> blocks, std::size_t expected,
                  std::span<const std::int64_t> shared) {
  if (blocks.size() != expected) {
    return error(Code::invalid_argument, "{} blocks of the {} of rank {}: it has {}", blocks.size(), name, rank,
                 expected);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    std::int64_t end = 0;
    if (block.offset < 0 || block.bytes < 0 || __builtin_add_overflow(block.offset, block.bytes, &end)) {
      return error(Code::invalid_argument, "block {} of the {} has {} bytes from {} on: 0 or more, within 63 bits", i,
                   name, block.bytes, block.offset);
    }
    const std::size_t which = expected == 1 ? static_cast<std::size_t>(rank) : i;
    if (!shared.empty() && block.bytes != shared[which]) {
      return error(Code::invalid_argument, "block {} of the {} has {} bytes, but block {} of the call has {}", i, name,
                   block.bytes, which, shared[which]);
    }
  }
  return {};
}

Status check_same_both_ways(const BlockTable& table) {
  for (std::size_t i = 0; i < table.input.size(); ++i) {
    const Block &sent = table.input[i], &received = table.output[i];
    if (sent == received || sent.bytes + received.bytes == 0) continue;
    return error(Code::invalid_argument,
                 "all_to_all_v in place sends {} bytes from {} on to rank {} and receives {} bytes to {}: in place "
                 "both are one block",
                 sent.bytes, sent.offset, i, received.bytes, received.offset);
  }
  return {};
}

}  // namespace

Result<BlockTable> blocks_of(const Problem& problem, int rank, const Division& division, std::size_t element_bytes) {
  const bool is_output = divides_output(problem.collective);
  const Side side{.name = is_output ? "output" : "input", .division = division, .element_bytes = element_bytes};
  BlockTable table;
  TUTTI_ASSIGN_OR_RETURN(table.shared, lengths_of(side, problem.ranks));
  const bool has_divided = (is_output ? output_blocks(problem, rank) : input_blocks(problem, rank)) > 0;
  if (has_divided) {
    std::vector<Block>& blocks = is_output ? table.output : table.input;
    if (!division.displacements.empty()) {
      TUTTI_RETURN_IF_ERROR(check_size(side.name, "displacements", division.displacements.size(), problem.ranks));
    }
    TUTTI_ASSIGN_OR_RETURN(blocks, placed(side, table.shared));
  }
  std::vector<Block>& whole = is_output ? table.input : table.output;
  whole = {{.offset = 0, .bytes = table.shared[static_cast<std::size_t>(rank)]}};
  return table;
}

Result<BlockTable> blocks_of(const Problem& problem, const Division& send, const Division& receive,
                             std::size_t element_bytes) {
  BlockTable table;
  TUTTI_ASSIGN_OR_RETURN(table.input, divided({"input", send, element_bytes}, problem.ranks));
  TUTTI_ASSIGN_OR_RETURN(table.output, divided({"output", receive, element_bytes}, problem.ranks));
  return table;
}

Status check_blocks(const Problem& problem, int rank, const BlockTable& table, bool is_in_place) {
  const bool shares = !divides_both(problem.collective);
  if (table.shared.size() != static_cast<std::size_t>(shares ? problem.ranks : 0)) {
    return error(Code::invalid_argument, "{} lengths that all ranks know, on {} ranks: {}", table.shared.size(),
                 problem.ranks, shares ? "one for each block" : "none of all_to_all_v");
  }
  const auto inputs = static_cast<std::size_t>(input_blocks(problem, rank));
  const auto outputs = static_cast<std::size_t>(output_blocks(problem, rank));
  TUTTI_RETURN_IF_ERROR(check_side("input", rank, table.input, inputs, table.shared));
  TUTTI_RETURN_IF_ERROR(check_side("output", rank, table.output, outputs, table.shared));
  TUTTI_RETURN_IF_ERROR(check_apart("output", table.output));
  if (!is_in_place) return {};
  TUTTI_RETURN_IF_ERROR(check_apart("input", table.input));
  return shares ? Status() : check_same_both_ways(table);
}

std::int64_t extent_of(std::span<const Block> blocks) {
  std::int64_t extent = 0;
  for (const Block& block : blocks) {
    if (block.bytes > 0) extent = std::max(extent, block.offset + block.bytes);
  }
  return extent;
}

std::int64_t total_of(std::span<const Block> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0},
                         [](std::int64_t sum, const Block& block) { return sum + block.bytes; });
}

bool lies_in_place(const Problem& problem, int rank, const void* input, const void* output, const BlockTable& table) {
  const auto shift = static_cast<std::uintptr_t>(in_place_shift(problem, rank, table));
  return reinterpret_cast<std::uintptr_t>(input) == reinterpret_cast<std::uintptr_t>(output) + shift;
}

std::int64_t in_place_shift(const Problem& problem, int rank, const BlockTable& table) {
  if (table.input.empty() || table.output.empty()) return 0;
  const int block = in_place_block(problem, rank);
  return table.output[static_cast<std::size_t>(std::max(0, block))].offset -
         table.input[static_cast<std::size_t>(std::max(0, -block))].offset;
}

}  // namespace tutti

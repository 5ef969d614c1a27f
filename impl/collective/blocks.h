// SPDX-License-Identifier: Apache-2.0
// The v forms' blocks: what a call says of the length and the place of each, checked, and where a rank's blocks lie.
//
// A divided buffer is P blocks. Block b has counts[b] elements and begins displacements[b] elements after the buffer's
// address. Blocks may be empty, may lie in any order and may have gaps between them. Gaps are neither read nor written.
// For gather_v, all_gather_v, scatter_v and reduce_scatter_v all ranks pass the same counts. A rank that has the
// divided buffer passes its displacements there; the other buffer of rank r is block r alone. For all_to_all_v both
// buffers are divided, and every rank has counts and displacements of its own for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "impl/collective/collective.h"

namespace tutti {

/// Bytes [offset, offset + bytes) of a buffer.
struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  bool operator==(const Block&) const = default;
};

/// Where the blocks of one rank's v call lie.
struct BlockTable {
  std::vector<Block> input;   ///< one per block that the rank has (input_blocks)
  std::vector<Block> output;  ///< likewise (output_blocks)
  /// Bytes of every block, on which all ranks agree; empty for all_to_all_v, where each rank knows its own only.
  std::vector<std::int64_t> shared;

  bool operator==(const BlockTable&) const = default;
};

/// How a user divides a buffer, in elements. Without displacements each block follows the one before it.
struct Division {
  std::span<const Count> counts = {};
  std::span<const Count> displacements = {};
};

/// The blocks of `rank`: of gather_v, all_gather_v, scatter_v and reduce_scatter_v. Displacements are looked at only
/// where the rank has the divided buffer.
/// Errors: invalid_argument: not one count (displacement) for each rank; a negative one; bytes beyond 63 bits.
[[nodiscard]] Result<BlockTable> blocks_of(const Problem& problem, int rank, const Division& division,
                                           std::size_t element_bytes);
/// The blocks of a rank's all_to_all_v: what it sends to each rank, and what it receives. Errors: as above.
[[nodiscard]] Result<BlockTable> blocks_of(const Problem& problem, const Division& send, const Division& receive,
                                           std::size_t element_bytes);

/// What every table must be. It has as many blocks as the rank, of the lengths that all ranks share. No two blocks of
/// the output lie in one place. In place, where the buffers are one, no two of the input do either. In place,
/// all_to_all_v sends and receives the same blocks. Errors: invalid_argument naming the blocks.
[[nodiscard]] Status check_blocks(const Problem& problem, int rank, const BlockTable& table, bool is_in_place);

/// Bytes from the first byte of a buffer to the last of its blocks; 0 where all are empty.
[[nodiscard]] std::int64_t extent_of(std::span<const Block> blocks);
/// Bytes of all blocks.
[[nodiscard]] std::int64_t total_of(std::span<const Block> blocks);

/// As lies_in_place of equal blocks.
[[nodiscard]] bool lies_in_place(const Problem& problem, int rank, const void* input, const void* output,
                                 const BlockTable& table);
/// In place, the input's address less the output's.
[[nodiscard]] std::int64_t in_place_shift(const Problem& problem, int rank, const BlockTable& table);

}  // namespace tutti

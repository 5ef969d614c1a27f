// SPDX-License-Identifier: Apache-2.0
// What each collective means, stated once: how many blocks a rank gives and gets, which inputs make up which output
// block, where in place the input lies, and the bandwidth factor. The oracle, the prover, the bandwidth columns and the
// docs all read it here; README.md beside this file states every rule of arithmetic and every edge.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

/// Elements. Signed, so that differences are safe; 64 bits everywhere.
using Count = std::int64_t;

enum class Collective : std::uint8_t { all_reduce, broadcast, all_to_all, barrier };

/// Every collective, in the order in which `all` runs them.
[[nodiscard]] std::span<const Collective> all_collectives();
[[nodiscard]] std::string_view to_string(Collective collective);
/// Errors: invalid_argument naming the value and the nearest right name.
[[nodiscard]] Result<Collective> parse_collective(std::string_view name);

/// A collective on so many ranks; `root` is 0 where there is no root. Integers only: no bytes, no dtype.
struct Problem {
  Collective collective;
  int ranks;
  int root = 0;

  bool operator==(const Problem&) const = default;
};

[[nodiscard]] bool is_reducing(Collective collective);  ///< has an op
[[nodiscard]] bool is_rooted(Collective collective);    ///< has a root
[[nodiscard]] bool has_data(Collective collective);     ///< false for barrier only
/// Its buffers hold one block per rank (P blocks at most); otherwise one block.
[[nodiscard]] bool is_divided(Collective collective);

/// Blocks of `count` elements in the user's input (output) of `rank`; 0 where the buffer is not read (written).
[[nodiscard]] int input_blocks(const Problem& problem, int rank);
[[nodiscard]] int output_blocks(const Problem& problem, int rank);

/// Where output block `block` of `rank` comes from: block `block` of one rank's input, or of every rank's, reduced in
/// rank order by the op (`every_rank`; `rank` is then unused).
struct Origin {
  bool every_rank;
  int rank;
  int block;
};
[[nodiscard]] Origin origin_of(const Problem& problem, int rank, int block);

/// In place, input block 0 of `rank` lies at this block of the output buffer.
[[nodiscard]] int in_place_block(const Problem& problem, int rank);

/// Bytes of the larger of one rank's input and output: nccl-tests' `size`. INT64_MAX where there are more.
[[nodiscard]] std::int64_t buffer_bytes(const Problem& problem, Count count, std::size_t element_bytes);
/// The block count whose `buffer_bytes` is nearest to, and not above, `bytes`; at least one element when divided.
[[nodiscard]] Count count_for_bytes(const Problem& problem, std::int64_t bytes, std::size_t element_bytes);

/// busbw = algbw * bus_factor: 2(P-1)/P for all_reduce, (P-1)/P for all_to_all, 1 for broadcast; 0 for barrier.
/// Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] double bus_factor(const Problem& problem);

}  // namespace tutti

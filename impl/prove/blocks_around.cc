// SPDX-License-Identifier: Apache-2.0
// The blocks of the ranks that a proving rank does not know. They decide no step and no message of its own, so made-up
// ones will do. They are dense where only places are unknown. For all_to_all_v their lengths agree with what the rank
// itself sends and receives, in place the same both ways.
#include <utility>

#include "impl/prove/prove.h"

namespace tutti {
namespace {

std::vector<Block> one_after_the_other(std::span<const std::int64_t> lengths) {
  std::vector<Block> blocks;
  std::int64_t next = 0;
  for (const std::int64_t bytes : lengths)
    blocks.push_back({.offset = std::exchange(next, next + bytes), .bytes = bytes});
  return blocks;
}

/// What rank `from` sends to rank `to`, neither of them the one that knows.
std::int64_t made_up(const BlockTable& table, int from, int to) {
  return table.input[static_cast<std::size_t>(from + to) % table.input.size()].bytes;
}

BlockTable own_lengths(const Problem& problem, int knowing, const BlockTable& known, int rank) {
  std::vector<std::int64_t> sent, received;
  for (int peer = 0; peer < problem.ranks; ++peer) {
    const auto mine = static_cast<std::size_t>(rank);
    sent.push_back(peer == knowing ? known.output[mine].bytes : made_up(known, rank, peer));
    received.push_back(peer == knowing ? known.input[mine].bytes : made_up(known, peer, rank));
  }
  return {.input = one_after_the_other(sent), .output = one_after_the_other(received), .shared = {}};
}

BlockTable shared_lengths(const Problem& problem, const BlockTable& known, int rank) {
  const auto blocks = [&](int count) {
    return count == 1   ? std::vector<Block>{{.offset = 0, .bytes = known.shared[static_cast<std::size_t>(rank)]}}
           : count == 0 ? std::vector<Block>()
                        : one_after_the_other(known.shared);
  };
  return {.input = blocks(input_blocks(problem, rank)),
          .output = blocks(output_blocks(problem, rank)),
          .shared = known.shared};
}

}  // namespace

std::vector<BlockTable> blocks_around(const Problem& problem, int rank, const BlockTable& table) {
  std::vector<BlockTable> all;
  for (int other = 0; other < problem.ranks; ++other) {
    all.push_back(other == rank          ? table
                  : table.shared.empty() ? own_lengths(problem, rank, table, other)
                                         : shared_lengths(problem, table, other));
  }
  return all;
}

}  // namespace tutti

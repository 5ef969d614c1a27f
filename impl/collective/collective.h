// SPDX-License-Identifier: Apache-2.0
// What each collective means, stated once, in the table of meaning.h: how many blocks a rank gives and gets, which
// inputs make up which output block, where in place the input lies, and the bandwidth factor. The oracle, the prover,
// the bandwidth columns and the docs all read it here; README.md beside this file states every rule of arithmetic and
// every edge.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti {

/// Elements. Signed, so that differences are safe; 64 bits everywhere.
using Count = std::int64_t;

enum class Collective : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  gather,
  all_gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  sendrecv,
  pingpong,
  bandwidth,
  bibandwidth,
  message_rate,
  gather_v,
  all_gather_v,
  scatter_v,
  reduce_scatter_v,
  all_to_all_v,
  scan,
  exscan
};

/// The collectives of `all`, in the order in which it runs them.
[[nodiscard]] std::span<const Collective> all_collectives();
/// Those, and then those that run only by name: pingpong, those that have a window, the v forms, scan and exscan.
[[nodiscard]] std::span<const Collective> every_collective();
/// The collective with equal blocks that a v form is of; any other is its own base.
[[nodiscard]] Collective base_of(Collective collective);
/// A v form: every block has a length and a place of its own (blocks.h). All else is its base's.
[[nodiscard]] bool has_counts(Collective collective);
[[nodiscard]] std::string_view to_string(Collective collective);
/// Errors: invalid_argument naming the value and the nearest right name.
[[nodiscard]] Result<Collective> parse_collective(std::string_view name);

/// Of the collectives of pairs: which ranks exchange messages, and how many of them.
struct Pairing {
  int window = 1;   ///< messages that one rank of a pair sends in an operation, back to back (has_window)
  int first = -1;   ///< the one pair that plays, first < second, while all others stay idle (has_pairs);
  int second = -1;  ///< -1: every pair of the collective plays

  bool operator==(const Pairing&) const = default;
  [[nodiscard]] bool is_one_pair() const { return first >= 0; }
};
inline constexpr int kMaxWindow = 1024;
inline constexpr int kUsualWindow = 64;  ///< as in the OSU benchmarks

/// A collective on `ranks` ranks; `root` is 0 where there is no root. Integers only: no bytes, no dtype.
struct Problem {
  Collective collective;
  int ranks;
  int root = 0;
  Pairing pairing = {};
  /// Ranks h L to h L + L - 1 are on host h, where L is this; it divides `ranks`. 0: all ranks are on one host.
  int ranks_per_host = 0;
  /// On one host: ranks c L to c L + L - 1 share a cache, where L is this; the last ones may be fewer. 0: not told.
  int ranks_per_cache = 0;

  [[nodiscard]] bool is_on_one_host() const { return ranks_per_host == 0 || ranks_per_host == ranks; }
  bool operator==(const Problem&) const = default;
};

/// How many consecutive ranks of one host are taken for those of a cache: ranks_per_cache, at most P. Where it is not
/// told, the smallest number whose square is at least P: then a rank looks at the fewest others.
[[nodiscard]] int cache_width(const Problem& problem);
/// The largest divisor of P that is at most that.
[[nodiscard]] int even_cache_width(const Problem& problem);

[[nodiscard]] bool is_reducing(Collective collective);  ///< has an op
/// Whether a collective that has an op can have this one. scan and exscan have no avg: nobody says by what the sum over
/// some of the ranks is divided.
[[nodiscard]] bool takes_op(Collective collective, Op op);
/// What a rank gets comes from the ranks before it: scan and exscan.
[[nodiscard]] bool is_prefix(Collective collective);
[[nodiscard]] bool is_rooted(Collective collective);   ///< has a root
[[nodiscard]] bool has_data(Collective collective);    ///< false for barrier only
[[nodiscard]] bool has_window(Collective collective);  ///< an operation is a window of messages, a block each
[[nodiscard]] bool has_pairs(Collective collective);   ///< may be played by one pair alone
/// The larger of its buffers holds one block per rank; otherwise one block.
[[nodiscard]] bool is_divided(Collective collective);
/// Whether the input (output) is divided into P blocks, where a rank has it.
[[nodiscard]] bool divides_input(Collective collective);
[[nodiscard]] bool divides_output(Collective collective);
/// Both are: in a v form every rank then has counts of its own, a matrix over all ranks. Else all share one list.
[[nodiscard]] bool divides_both(Collective collective);

/// The rank that `rank` exchanges messages with in a collective of pairs; -1: no rank. Ranks 0 and 1, 2 and 3, ... are
/// pairs; in message_rate rank i and rank i + P/2. The last of an odd number of ranks has nobody.
[[nodiscard]] int partner_of(const Problem& problem, int rank);
/// Messages of one operation, over all pairs and in both directions; 0 of a collective without a window.
[[nodiscard]] int messages_of(const Problem& problem);

/// Blocks of `count` elements in the user's input (output) of `rank`; 0 where the buffer is not read (written).
[[nodiscard]] int input_blocks(const Problem& problem, int rank);
[[nodiscard]] int output_blocks(const Problem& problem, int rank);

/// Where an output block comes from: block `block` of the inputs of the ranks `first` to `last`, reduced in rank order
/// by the op. Where nothing is reduced, `first` is `last`.
struct Origin {
  int first;
  int last;
  int block;

  [[nodiscard]] int ranks() const { return last - first + 1; }
  [[nodiscard]] bool has(int rank) const { return first <= rank && rank <= last; }
  bool operator==(const Origin&) const = default;
};
[[nodiscard]] inline Origin from_one(int rank, int block) { return {.first = rank, .last = rank, .block = block}; }
[[nodiscard]] Origin origin_of(const Problem& problem, int rank, int block);

/// By how many blocks input block 0 lies after output block 0 in place, where the smaller of `rank`'s buffers is a
/// block of the larger. Negative: the output lies within the input. 0 where the rank has only one of the two.
[[nodiscard]] int in_place_block(const Problem& problem, int rank);
/// Whether the buffers of `rank` lie as in place demands; where it has only one of the two, whether both are the same.
[[nodiscard]] bool lies_in_place(const Problem& problem, int rank, const void* input, const void* output,
                                 std::int64_t block_bytes);
/// In place concerns the root's buffers alone: the other ranks have an input or an output, but not both.
[[nodiscard]] bool has_placement_at_root_only(Collective collective);

/// Bytes of the larger of one rank's input and output, of equal blocks: nccl-tests' `size`; of a window one message's.
/// INT64_MAX where there are more.
[[nodiscard]] std::int64_t buffer_bytes(const Problem& problem, Count count, std::size_t element_bytes);
/// The block count whose `buffer_bytes` is nearest to, and not above, `bytes`; at least one element where bytes are.
[[nodiscard]] Count count_for_bytes(const Problem& problem, std::int64_t bytes, std::size_t element_bytes);

/// busbw = algbw * bus_factor; README.md has the factors side by side. Of pairs it counts what crosses: pingpong's
/// bytes twice, bibandwidth's in both directions, message_rate's once for every pair. Source: nccl-tests,
/// doc/PERFORMANCE.md; it has no pairs, scan and exscan.
[[nodiscard]] double bus_factor(const Problem& problem);

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/collective.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "impl/collective/aliases.h"
#include "impl/types/names.h"

namespace tutti {
namespace {

struct Meaning {
  Collective id;
  std::string_view name;
  bool is_reducing;
  bool is_rooted;
  bool is_divided;
  bool is_in_all = true;
  Collective base = id;
  std::string_view aliases = {};
};

constexpr std::array kMeanings{
    Meaning{.id = Collective::broadcast,
            .name = "broadcast",
            .is_reducing = false,
            .is_rooted = true,
            .is_divided = false,
            .aliases = "bcast"},
    Meaning{.id = Collective::reduce, .name = "reduce", .is_reducing = true, .is_rooted = true, .is_divided = false},
    Meaning{.id = Collective::all_reduce,
            .name = "all_reduce",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = false},
    Meaning{.id = Collective::gather, .name = "gather", .is_reducing = false, .is_rooted = true, .is_divided = true},
    Meaning{.id = Collective::all_gather,
            .name = "all_gather",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = true},
    Meaning{.id = Collective::scatter, .name = "scatter", .is_reducing = false, .is_rooted = true, .is_divided = true},
    Meaning{.id = Collective::reduce_scatter,
            .name = "reduce_scatter",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = true,
            .aliases = "reduce_scatter_block"},
    Meaning{.id = Collective::all_to_all,
            .name = "all_to_all",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = true},
    Meaning{
        .id = Collective::barrier, .name = "barrier", .is_reducing = false, .is_rooted = false, .is_divided = false},
    Meaning{
        .id = Collective::sendrecv, .name = "sendrecv", .is_reducing = false, .is_rooted = false, .is_divided = false},
    Meaning{.id = Collective::pingpong,
            .name = "pingpong",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
    Meaning{.id = Collective::bandwidth,
            .name = "bandwidth",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
    Meaning{.id = Collective::bibandwidth,
            .name = "bibandwidth",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
    Meaning{.id = Collective::message_rate,
            .name = "message_rate",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
    Meaning{.id = Collective::gather_v,
            .name = "gather_v",
            .is_reducing = false,
            .is_rooted = true,
            .is_divided = true,
            .is_in_all = false,
            .base = Collective::gather},
    Meaning{.id = Collective::all_gather_v,
            .name = "all_gather_v",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = true,
            .is_in_all = false,
            .base = Collective::all_gather},
    Meaning{.id = Collective::scatter_v,
            .name = "scatter_v",
            .is_reducing = false,
            .is_rooted = true,
            .is_divided = true,
            .is_in_all = false,
            .base = Collective::scatter},
    Meaning{.id = Collective::reduce_scatter_v,
            .name = "reduce_scatter_v",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = true,
            .is_in_all = false,
            .base = Collective::reduce_scatter},
    Meaning{.id = Collective::all_to_all_v,
            .name = "all_to_all_v",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = true,
            .is_in_all = false,
            .base = Collective::all_to_all},
    Meaning{.id = Collective::scan,
            .name = "scan",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
    Meaning{.id = Collective::exscan,
            .name = "exscan",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = false,
            .is_in_all = false},
};

/// The rank of a pair that begins is the lower one.
bool begins(const Problem& problem, int rank) { return partner_of(problem, rank) > rank; }
bool answers(const Problem& problem, int rank) {
  const int partner = partner_of(problem, rank);
  return partner >= 0 && partner < rank;
}
/// In pingpong the last of an odd number of ranks plays alone: it copies.
bool plays_alone(const Problem& problem, int rank) {
  return partner_of(problem, rank) < 0 && !problem.pairing.is_one_pair();
}

int pairs_of(const Problem& problem) { return problem.pairing.is_one_pair() ? 1 : problem.ranks / 2; }

const Meaning& meaning(Collective collective) { return kMeanings.at(static_cast<std::size_t>(collective)); }

}  // namespace

std::span<const Collective> every_collective() {
  static constexpr auto kEvery = [] {
    std::array<Collective, kMeanings.size()> every{};
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = kMeanings[i].id;
    return every;
  }();
  return kEvery;
}

std::span<const Collective> all_collectives() {
  static constexpr auto kIsInAll = [](const Meaning& row) { return row.is_in_all; };
  static_assert(std::ranges::is_partitioned(kMeanings, kIsInAll));
  static constexpr auto kCount = static_cast<std::size_t>(std::ranges::count_if(kMeanings, kIsInAll));
  return every_collective().first(kCount);
}

Collective base_of(Collective collective) { return meaning(collective).base; }
bool has_counts(Collective collective) { return base_of(collective) != collective; }

std::string_view to_string(Collective collective) { return meaning(collective).name; }
std::string_view aliases_of(Collective collective) { return meaning(collective).aliases; }

Result<Collective> parse_collective(std::string_view name) {
  std::vector<std::string> names;
  for (const Meaning& row : kMeanings) {
    if (is_same_name(name, row.name) || is_alias(name, row.aliases)) return row.id;
    names.emplace_back(row.name);
  }
  return unknown_name("collective", name, names);
}

bool is_reducing(Collective collective) { return meaning(collective).is_reducing; }
bool is_prefix(Collective collective) { return collective == Collective::scan || collective == Collective::exscan; }
bool takes_op(Collective collective, Op op) { return op != Op::avg || !is_prefix(collective); }
bool is_rooted(Collective collective) { return meaning(collective).is_rooted; }
bool has_data(Collective collective) { return collective != Collective::barrier; }
bool has_window(Collective collective) {
  return collective == Collective::bandwidth || collective == Collective::bibandwidth ||
         collective == Collective::message_rate;
}
bool has_pairs(Collective collective) {
  return collective == Collective::pingpong || collective == Collective::bandwidth ||
         collective == Collective::bibandwidth;
}
bool is_divided(Collective collective) { return meaning(collective).is_divided; }

int partner_of(const Problem& problem, int rank) {
  const Pairing& pairing = problem.pairing;
  if (pairing.is_one_pair()) {
    if (rank == pairing.first) return pairing.second;
    return rank == pairing.second ? pairing.first : -1;
  }
  if (problem.collective == Collective::message_rate) {
    const int pairs = problem.ranks / 2;
    if (rank < pairs) return rank + pairs;
    return rank < 2 * pairs ? rank - pairs : -1;
  }
  const int other = rank % 2 == 0 ? rank + 1 : rank - 1;
  return other < problem.ranks ? other : -1;
}

int messages_of(const Problem& problem) {
  if (!has_window(problem.collective)) return 0;
  return problem.pairing.window * pairs_of(problem) * (problem.collective == Collective::bibandwidth ? 2 : 1);
}

int input_blocks(const Problem& problem, int rank) {
  switch (problem.collective) {
    case Collective::reduce:
    case Collective::all_reduce:
    case Collective::gather:
    case Collective::gather_v:
    case Collective::all_gather:
    case Collective::sendrecv:
    case Collective::all_gather_v:
    case Collective::scan:
    case Collective::exscan:
      return 1;
    case Collective::pingpong:
      return begins(problem, rank) || plays_alone(problem, rank) ? 1 : 0;
    case Collective::bandwidth:
    case Collective::message_rate:
      return begins(problem, rank) ? problem.pairing.window : 0;
    case Collective::bibandwidth:
      return partner_of(problem, rank) >= 0 ? problem.pairing.window : 0;
    case Collective::broadcast:
      return rank == problem.root ? 1 : 0;
    case Collective::scatter:
    case Collective::scatter_v:
      return rank == problem.root ? problem.ranks : 0;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return problem.ranks;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

int output_blocks(const Problem& problem, int rank) {
  switch (problem.collective) {
    case Collective::broadcast:
    case Collective::all_reduce:
    case Collective::scatter:
    case Collective::scatter_v:
    case Collective::reduce_scatter:
    case Collective::sendrecv:
    case Collective::reduce_scatter_v:
    case Collective::scan:
      return 1;
    case Collective::exscan:
      return rank > 0 ? 1 : 0;
    case Collective::pingpong:
      return partner_of(problem, rank) >= 0 || plays_alone(problem, rank) ? 1 : 0;
    case Collective::bandwidth:
    case Collective::message_rate:
      return answers(problem, rank) ? problem.pairing.window : 0;
    case Collective::bibandwidth:
      return partner_of(problem, rank) >= 0 ? problem.pairing.window : 0;
    case Collective::reduce:
      return rank == problem.root ? 1 : 0;
    case Collective::gather:
    case Collective::gather_v:
      return rank == problem.root ? problem.ranks : 0;
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return problem.ranks;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

Origin origin_of(const Problem& problem, int rank, int block) {
  switch (problem.collective) {
    case Collective::reduce:
    case Collective::all_reduce:
      return {.first = 0, .last = problem.ranks - 1, .block = block};
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return {.first = 0, .last = problem.ranks - 1, .block = rank};
    case Collective::broadcast:
      return from_one(problem.root, block);
    case Collective::gather:
    case Collective::gather_v:
    case Collective::all_gather:
    case Collective::all_gather_v:
      return from_one(block, 0);
    case Collective::scatter:
    case Collective::scatter_v:
      return from_one(problem.root, rank);
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return from_one(block, rank);
    case Collective::sendrecv:
      return from_one((rank + problem.ranks - 1) % problem.ranks, block);
    case Collective::pingpong:
      return from_one(answers(problem, rank) ? partner_of(problem, rank) : rank, block);
    case Collective::bandwidth:
    case Collective::bibandwidth:
    case Collective::message_rate:
      return from_one(partner_of(problem, rank), block);
    case Collective::scan:
      return {.first = 0, .last = rank, .block = block};
    case Collective::exscan:
      return {.first = 0, .last = rank - 1, .block = block};
    case Collective::barrier:
      break;
  }
  TUTTI_ASSERT(false, "{} has no output", to_string(problem.collective));
}

int in_place_block(const Problem& problem, int rank) {
  switch (problem.collective) {
    case Collective::gather:
    case Collective::gather_v:
      return rank == problem.root ? rank : 0;
    case Collective::all_gather:
    case Collective::all_gather_v:
      return rank;
    case Collective::scatter:
    case Collective::scatter_v:
      return rank == problem.root ? -rank : 0;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return -rank;
    default:
      return 0;
  }
}

bool lies_in_place(const Problem& problem, int rank, const void* input, const void* output, std::int64_t block_bytes) {
  const auto shift = static_cast<std::uintptr_t>(in_place_block(problem, rank) * block_bytes);
  return reinterpret_cast<std::uintptr_t>(input) == reinterpret_cast<std::uintptr_t>(output) + shift;
}

bool has_placement_at_root_only(Collective collective) {
  return is_rooted(collective) && collective != Collective::broadcast;
}

std::int64_t buffer_bytes(const Problem& problem, Count count, std::size_t element_bytes) {
  if (!has_data(problem.collective)) return 0;
  const int blocks = is_divided(problem.collective) ? problem.ranks : 1;
  std::int64_t bytes = 0;
  const bool overflows = __builtin_mul_overflow(count, static_cast<std::int64_t>(element_bytes), &bytes) ||
                         __builtin_mul_overflow(bytes, blocks, &bytes);
  return overflows ? std::numeric_limits<std::int64_t>::max() : bytes;
}

Count count_for_bytes(const Problem& problem, std::int64_t bytes, std::size_t element_bytes) {
  if (!has_data(problem.collective)) return 0;
  const Count elements = bytes / static_cast<std::int64_t>(element_bytes);
  const Count blocks = is_divided(problem.collective) ? problem.ranks : 1;
  return std::max<Count>(elements / blocks, bytes > 0 ? 1 : 0);
}

double bus_factor(const Problem& problem) {
  const double ranks = problem.ranks;
  switch (problem.collective) {
    case Collective::all_reduce:
      return 2.0 * (ranks - 1) / ranks;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::sendrecv:
    case Collective::scan:
    case Collective::exscan:
    case Collective::bandwidth:
      return 1.0;
    case Collective::pingpong:
    case Collective::bibandwidth:
      return 2.0;
    case Collective::message_rate:
      return pairs_of(problem);
    case Collective::gather:
    case Collective::gather_v:
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::scatter:
    case Collective::scatter_v:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return (ranks - 1) / ranks;
    case Collective::barrier:
      return 0.0;
  }
  return 0.0;
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/collective.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "impl/types/names.h"

namespace tutti {
namespace {

struct Meaning {
  Collective id;
  std::string_view name;
  bool is_reducing;
  bool is_rooted;
  bool is_divided;
};

constexpr std::array kMeanings{
    Meaning{.id = Collective::all_reduce,
            .name = "all_reduce",
            .is_reducing = true,
            .is_rooted = false,
            .is_divided = false},
    Meaning{
        .id = Collective::broadcast, .name = "broadcast", .is_reducing = false, .is_rooted = true, .is_divided = false},
    Meaning{.id = Collective::all_to_all,
            .name = "all_to_all",
            .is_reducing = false,
            .is_rooted = false,
            .is_divided = true},
    Meaning{
        .id = Collective::barrier, .name = "barrier", .is_reducing = false, .is_rooted = false, .is_divided = false},
};

const Meaning& meaning(Collective collective) { return kMeanings.at(static_cast<std::size_t>(collective)); }

}  // namespace

std::span<const Collective> all_collectives() {
  static constexpr std::array kAll{Collective::all_reduce, Collective::broadcast, Collective::all_to_all,
                                   Collective::barrier};
  return kAll;
}

std::string_view to_string(Collective collective) { return meaning(collective).name; }

Result<Collective> parse_collective(std::string_view name) {
  std::vector<std::string> names;
  for (const Meaning& row : kMeanings) {
    if (row.name == name) return row.id;
    names.emplace_back(row.name);
  }
  return unknown_name("collective", name, names);
}

bool is_reducing(Collective collective) { return meaning(collective).is_reducing; }
bool is_rooted(Collective collective) { return meaning(collective).is_rooted; }
bool has_data(Collective collective) { return collective != Collective::barrier; }
bool is_divided(Collective collective) { return meaning(collective).is_divided; }

int input_blocks(const Problem& problem, int rank) {
  switch (problem.collective) {
    case Collective::all_reduce:
      return 1;
    case Collective::broadcast:
      return rank == problem.root ? 1 : 0;
    case Collective::all_to_all:
      return problem.ranks;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

int output_blocks(const Problem& problem, int /*rank*/) {
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
      return 1;
    case Collective::all_to_all:
      return problem.ranks;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

Origin origin_of(const Problem& problem, int rank, int block) {
  switch (problem.collective) {
    case Collective::all_reduce:
      return {.every_rank = true, .rank = 0, .block = block};
    case Collective::broadcast:
      return {.every_rank = false, .rank = problem.root, .block = block};
    case Collective::all_to_all:
      return {.every_rank = false, .rank = block, .block = rank};
    case Collective::barrier:
      break;
  }
  TUTTI_ASSERT(false, "{} has no output", to_string(problem.collective));
}

int in_place_block(const Problem& /*problem*/, int /*rank*/) { return 0; }

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
  return is_divided(problem.collective) ? std::max<Count>(elements / problem.ranks, bytes > 0 ? 1 : 0) : elements;
}

double bus_factor(const Problem& problem) {
  const double ranks = problem.ranks;
  switch (problem.collective) {
    case Collective::all_reduce:
      return 2.0 * (ranks - 1) / ranks;
    case Collective::broadcast:
      return 1.0;
    case Collective::all_to_all:
      return (ranks - 1) / ranks;
    case Collective::barrier:
      return 0.0;
  }
  return 0.0;
}

}  // namespace tutti

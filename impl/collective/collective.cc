// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/collective.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "impl/collective/aliases.h"
#include "impl/collective/meaning.h"
#include "impl/types/names.h"

namespace tutti {
namespace {

using meaning::Blocks, meaning::Bus, meaning::Giver, meaning::InPlace, meaning::Pairs, meaning::Which, meaning::Who;
using meaning::kRows, meaning::Row, meaning::Rule;

static_assert(std::ranges::is_sorted(kRows, {}, &Row::id) &&
                  static_cast<std::size_t>(kRows.back().id) + 1 == kRows.size(),
              "a row lies at the number of its collective");

const Row& row_of(Collective collective) { return kRows.at(static_cast<std::size_t>(collective)); }

/// Every collective's own, or its base's: calls with other addresses than the last one ask for it.
constexpr auto kRules = [] {
  std::array<Rule, kRows.size()> rules{};
  for (std::size_t i = 0; i < rules.size(); ++i) rules[i] = kRows[static_cast<std::size_t>(kRows[i].base)].rule;
  return rules;
}();
const Rule& rule_of(Collective collective) { return kRules.at(static_cast<std::size_t>(collective)); }

/// The rank of a pair that begins is the lower one.
bool begins(const Problem& problem, int rank) { return partner_of(problem, rank) > rank; }
bool answers(const Problem& problem, int rank) {
  const int partner = partner_of(problem, rank);
  return partner >= 0 && partner < rank;
}
bool plays_alone(const Problem& problem, int rank) {
  return rule_of(problem.collective).is_played_alone && partner_of(problem, rank) < 0 && !problem.pairing.is_one_pair();
}

int pairs_of(const Problem& problem) { return problem.pairing.is_one_pair() ? 1 : problem.ranks / 2; }

bool is_one_of(Who who, const Problem& problem, int rank) {
  switch (who) {
    case Who::nobody:
      return false;
    case Who::everyone:
      return true;
    case Who::root:
      return rank == problem.root;
    case Who::all_but_first:
      return rank > 0;
    case Who::players:
      return partner_of(problem, rank) >= 0 || plays_alone(problem, rank);
    case Who::beginners:
      return begins(problem, rank) || plays_alone(problem, rank);
    case Who::answerers:
      return answers(problem, rank);
  }
  return false;
}

[[gnu::noinline]] int if_one_of(Who who, int number, const Problem& problem, int rank) {
  return is_one_of(who, problem, rank) ? number : 0;
}
/// `number` where the rank is one of them, else 0. What most collectives have, everyone, is on the way of calls whose
/// addresses are new: the rest is out of line and called last, so that no register is saved for it.
int if_among(Who who, int number, const Problem& problem, int rank) {
  return who == Who::everyone ? number : if_one_of(who, number, problem, rank);
}

int blocks_in(const meaning::Buffer& buffer, const Problem& problem, int rank) {
  int blocks = 1;
  if (buffer.blocks == Blocks::ranks) blocks = problem.ranks;
  if (buffer.blocks == Blocks::window) blocks = problem.pairing.window;
  return if_among(buffer.who, blocks, problem, rank);
}

}  // namespace

std::span<const Collective> every_collective() {
  static constexpr auto kEvery = [] {
    std::array<Collective, kRows.size()> every{};
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = kRows[i].id;
    return every;
  }();
  return kEvery;
}

std::span<const Collective> all_collectives() {
  static_assert(std::ranges::is_partitioned(kRows, &Row::is_in_all));
  static constexpr auto kCount = static_cast<std::size_t>(std::ranges::count_if(kRows, &Row::is_in_all));
  return every_collective().first(kCount);
}

Collective base_of(Collective collective) { return row_of(collective).base; }
bool has_counts(Collective collective) { return base_of(collective) != collective; }

std::string_view to_string(Collective collective) { return row_of(collective).name; }
std::string_view aliases_of(Collective collective) { return row_of(collective).aliases; }

Result<Collective> parse_collective(std::string_view name) {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (is_same_name(name, row.name) || is_alias(name, row.aliases)) return row.id;
    names.emplace_back(row.name);
  }
  return unknown_name("collective", name, names);
}

int cache_width(const Problem& problem) {
  if (problem.ranks_per_cache > 0) return std::min(problem.ranks, problem.ranks_per_cache);
  int root = 1;
  while (std::int64_t{root} * root < problem.ranks) ++root;
  return root;
}

int even_cache_width(const Problem& problem) {
  int width = cache_width(problem);
  while (problem.ranks % width != 0) --width;
  return width;
}

bool is_reducing(Collective collective) {
  return rule_of(collective).from.giver == Giver::all || is_prefix(collective);
}
bool is_prefix(Collective collective) {
  const Giver giver = rule_of(collective).from.giver;
  return giver == Giver::up_to_own || giver == Giver::before;
}
bool takes_op(Collective collective, Op op) { return op != Op::avg || !is_prefix(collective); }
bool is_rooted(Collective collective) {
  const Rule& rule = rule_of(collective);
  return rule.input.who == Who::root || rule.output.who == Who::root;
}
bool has_data(Collective collective) { return rule_of(collective).from.giver != Giver::nobody; }
bool has_window(Collective collective) { return rule_of(collective).input.blocks == Blocks::window; }
bool has_pairs(Collective collective) { return rule_of(collective).pairs == Pairs::neighbours; }
bool divides_input(Collective collective) { return rule_of(collective).input.blocks == Blocks::ranks; }
bool divides_output(Collective collective) { return rule_of(collective).output.blocks == Blocks::ranks; }
bool divides_both(Collective collective) { return divides_input(collective) && divides_output(collective); }
bool is_divided(Collective collective) { return divides_input(collective) || divides_output(collective); }

int partner_of(const Problem& problem, int rank) {
  const Pairing& pairing = problem.pairing;
  if (pairing.is_one_pair()) {
    if (rank == pairing.first) return pairing.second;
    return rank == pairing.second ? pairing.first : -1;
  }
  if (rule_of(problem.collective).pairs == Pairs::halves) {
    const int pairs = problem.ranks / 2;
    if (rank < pairs) return rank + pairs;
    return rank < 2 * pairs ? rank - pairs : -1;
  }
  const int other = rank % 2 == 0 ? rank + 1 : rank - 1;
  return other < problem.ranks ? other : -1;
}

int messages_of(const Problem& problem) {
  if (!has_window(problem.collective)) return 0;
  const bool is_both_ways = rule_of(problem.collective).input.who == Who::players;
  return problem.pairing.window * pairs_of(problem) * (is_both_ways ? 2 : 1);
}

int input_blocks(const Problem& problem, int rank) {
  return blocks_in(rule_of(problem.collective).input, problem, rank);
}

int output_blocks(const Problem& problem, int rank) {
  return blocks_in(rule_of(problem.collective).output, problem, rank);
}

Origin origin_of(const Problem& problem, int rank, int block) {
  const meaning::Source& from = rule_of(problem.collective).from;
  const int which = from.block == Which::same ? block : from.block == Which::own ? rank : 0;
  switch (from.giver) {
    case Giver::all:
      return {.first = 0, .last = problem.ranks - 1, .block = which};
    case Giver::up_to_own:
      return {.first = 0, .last = rank, .block = which};
    case Giver::before:
      return {.first = 0, .last = rank - 1, .block = which};
    case Giver::root:
      return from_one(problem.root, which);
    case Giver::numbered:
      return from_one(block, which);
    case Giver::previous:
      return from_one((rank + problem.ranks - 1) % problem.ranks, which);
    case Giver::partner:
      return from_one(partner_of(problem, rank), which);
    case Giver::beginner:
      return from_one(answers(problem, rank) ? partner_of(problem, rank) : rank, which);
    case Giver::nobody:
      break;
  }
  TUTTI_ASSERT(false, "{} has no output", to_string(problem.collective));
}

int in_place_block(const Problem& problem, int rank) {
  const Rule& rule = rule_of(problem.collective);
  switch (rule.in_place) {
    case InPlace::block_of_output:
      return if_among(rule.output.who, rank, problem, rank);
    case InPlace::block_of_input:
      return if_among(rule.input.who, -rank, problem, rank);
    case InPlace::one_buffer:
    case InPlace::one_where_both:
      return 0;
  }
  return 0;
}

bool lies_in_place(const Problem& problem, int rank, const void* input, const void* output, std::int64_t block_bytes) {
  const auto shift = static_cast<std::uintptr_t>(in_place_block(problem, rank) * block_bytes);
  return reinterpret_cast<std::uintptr_t>(input) == reinterpret_cast<std::uintptr_t>(output) + shift;
}

bool has_placement_at_root_only(Collective collective) {
  return is_rooted(collective) && rule_of(collective).in_place != InPlace::one_buffer;
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
  switch (rule_of(problem.collective).bus) {
    case Bus::none:
      return 0.0;
    case Bus::one:
      return 1.0;
    case Bus::two:
      return 2.0;
    case Bus::others:
      return (ranks - 1) / ranks;
    case Bus::twice_others:
      return 2.0 * (ranks - 1) / ranks;
    case Bus::pairs:
      return pairs_of(problem);
  }
  return 0.0;
}

}  // namespace tutti

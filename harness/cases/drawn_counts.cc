// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/drawn_counts.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "impl/types/scramble.h"

namespace tutti::harness::cases {
namespace {

constexpr std::uint64_t kMostPopular = std::uint64_t{1} << 20U;  ///< weight of the first under Zipf's law
constexpr std::uint64_t kBurst = 64;                             ///< times what a quiet pair sends
constexpr std::size_t kPairsPerBurst = 8;
constexpr std::size_t kPeersPerBusy = 4;  ///< of a row of `empty`, one peer in so many gets something
constexpr std::size_t kRowsPerSilent = 4;

/// 0 to size - 1 in an order that the seed draws, another one for each `which`.
std::vector<std::size_t> drawn_order(std::uint64_t seed, std::uint64_t which, std::size_t size) {
  const std::uint64_t start = scramble(scramble(seed) + which);
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [start](std::size_t index) { return scramble(start + index); });
  return order;
}

/// The k-th most popular peer gets 1 / k as much as the first.
std::vector<std::uint64_t> zipf_row(std::uint64_t seed, std::size_t ranks) {
  std::vector<std::uint64_t> row(ranks);
  const std::vector<std::size_t> order = drawn_order(seed, 0, ranks);
  for (std::size_t k = 0; k < ranks; ++k) row[order[k]] = kMostPopular / (k + 1);
  return row;
}

/// Three quarters go to one peer, the next one where the elements are twice as many.
std::vector<std::uint64_t> rotating_row(std::uint64_t seed, std::size_t ranks, Count elements) {
  std::vector<std::uint64_t> row(ranks, 1);
  const auto step = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(elements)));
  row[(drawn_order(seed, 0, ranks).front() + step) % ranks] = std::max<std::uint64_t>(1, 3 * (ranks - 1));
  return row;
}

std::vector<std::uint64_t> burst(std::uint64_t seed, std::size_t pairs) {
  std::vector<std::uint64_t> weights(pairs, 1);
  const std::vector<std::size_t> order = drawn_order(seed, 0, pairs);
  for (std::size_t i = 0; i < std::max<std::size_t>(1, pairs / kPairsPerBurst); ++i) weights[order[i]] = kBurst;
  return weights;
}

std::vector<std::uint64_t> empty(std::uint64_t seed, std::size_t rows, std::size_t ranks) {
  std::vector<std::uint64_t> weights(rows * ranks, 0);
  const std::size_t silent = rows < 2 ? 0 : std::max<std::size_t>(1, rows / kRowsPerSilent);
  const std::vector<std::size_t> order = drawn_order(seed, 0, rows);
  for (std::size_t i = silent; i < rows; ++i) {
    const std::vector<std::size_t> peers = drawn_order(seed, 1 + order[i], ranks);
    for (std::size_t k = 0; k < std::max<std::size_t>(1, ranks / kPeersPerBusy); ++k) {
      weights[order[i] * ranks + peers[k]] = 1;
    }
  }
  return weights;
}

}  // namespace

std::vector<std::uint64_t> drawn_weights(const Counts& counts, int rows, int ranks, Count elements) {
  TUTTI_ASSERT(is_drawn(counts.pattern), "'{}' is not drawn", counts.name);
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(ranks);
  const std::uint64_t seed = counts.seed.value_or(kUsualSeed);
  if (counts.pattern == Pattern::burst) return burst(seed, height * width);
  if (counts.pattern == Pattern::empty) return empty(seed, height, width);
  const std::vector<std::uint64_t> row =
      counts.pattern == Pattern::zipf ? zipf_row(seed, width) : rotating_row(seed, width, elements);
  std::vector<std::uint64_t> weights;
  for (std::size_t i = 0; i < height; ++i) weights.insert(weights.end(), row.begin(), row.end());
  return weights;
}

}  // namespace tutti::harness::cases

// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/mix.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/verify/inputs.h"
#include "impl/types/scramble.h"

namespace tutti::harness::soak {
namespace {

constexpr std::array<Count, 14> kCounts{0, 1, 2, 3, 5, 8, 11, 12, 64, 100, 1000, 1023, 4097, 20011};
constexpr std::uint64_t kExchanges = 4;      // one operation in kExchanges sends and receives
constexpr std::uint64_t kWorlds = 2;         // and one in kWorlds is on the world
constexpr std::uint64_t kSharedBuffers = 4;  // has shared buffers
constexpr std::uint64_t kMostWindow = 8;     // messages
constexpr std::uint64_t kPatterns = 6;       // equal to file, which stands for numbers of the seed's own
constexpr std::uint64_t kEmptyBlocks = 3;    // one of those numbers in kEmptyBlocks is 0
constexpr std::uint64_t kAnySeed = std::uint64_t{1} << 62U;

/// What is drawn for an operation.
enum Field : std::uint64_t {
  on_world,
  group,
  kind,
  shift,
  collective,
  root,
  dtype,
  op,
  count,
  placement,
  buffers,
  algorithm,
  uses_auto,
  window,
  pattern,
  places,  // and the next one
  numbers = places + 2
};

}  // namespace

std::uint64_t Mix::draw(std::int64_t index, std::uint64_t field, std::uint64_t below) const {
  return scramble(scramble(seed_ + (static_cast<std::uint64_t>(index) << 8U)) + field) % below;
}

std::vector<int> Mix::members(int epoch, int communicator, int rank) const {
  std::vector<int> all(static_cast<std::size_t>(ranks_));
  std::iota(all.begin(), all.end(), 0);
  if (communicator == 1) {
    std::erase_if(all, [rank](int each) { return each % 2 != rank % 2; });
    std::ranges::reverse(all);
  } else if (communicator == 2) {
    const auto left_out = static_cast<std::ptrdiff_t>(draw(-1 - epoch, 0, all.size()));
    std::rotate(all.begin(), all.begin() + left_out, all.end());
    if (all.size() > 1) all.erase(all.begin());
  } else if (communicator == 3) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[draw(-1 - epoch, i, i)]);
    all.resize(std::max<std::size_t>(1, (all.size() + 1) / 2 + draw(-1 - epoch, 1, all.size() / 2 + 1)));
    if (all.size() > static_cast<std::size_t>(ranks_)) all.resize(static_cast<std::size_t>(ranks_));
  }
  return all;
}

int Mix::communicator_at(std::int64_t index) const {
  return draw(index, on_world, kWorlds) == 0 ? 0 : 1 + static_cast<int>(draw(index, group, 3));
}
bool Mix::is_exchange(std::int64_t index) const { return draw(index, kind, kExchanges) == 0; }
Collective Mix::collective_at(std::int64_t index) const {
  return every_collective()[draw(index, collective, every_collective().size())];
}
bool Mix::is_barrier(std::int64_t index) const {
  return !is_exchange(index) && collective_at(index) == Collective::barrier;
}

SoakOperation Mix::at(std::int64_t index, int group_ranks) const {
  const auto of_ranks = static_cast<std::uint64_t>(group_ranks);
  SoakOperation drawn;
  drawn.communicator = communicator_at(index);
  drawn.is_exchange = is_exchange(index);
  drawn.shift = static_cast<int>(draw(index, shift, of_ranks));
  Problem& problem = drawn.what.problem;
  problem = {.collective = collective_at(index), .ranks = group_ranks};
  if (is_rooted(problem.collective)) problem.root = static_cast<int>(draw(index, root, of_ranks));
  drawn.what.dtype = all_dtypes()[draw(index, dtype, all_dtypes().size())];
  if (is_reducing(problem.collective)) {
    std::vector<Op> ops = all_ops();
    std::erase_if(ops, [&](Op each) {
      return !supports_inputs(drawn.what.dtype, each, group_ranks).is_ok() || !takes_op(problem.collective, each);
    });
    drawn.what.op = ops[draw(index, op, ops.size())];
  }
  if (has_window(problem.collective)) problem.pairing.window = 1 + static_cast<int>(draw(index, window, kMostWindow));
  const Count most = kMostSoakBytes / static_cast<Count>(size_of(drawn.what.dtype));
  const Count blocks = is_divided(problem.collective) ? group_ranks : problem.pairing.window;
  drawn.what.count = std::min(kCounts[draw(index, count, kCounts.size())], most / blocks);
  drawn.what.seed = seed_;
  drawn.what.salt = static_cast<std::uint64_t>(index) + 1;
  drawn.is_in_place = draw(index, placement, 3) == 0;
  drawn.buffers = draw(index, buffers, kSharedBuffers) == 0 ? Buffers::shared : Buffers::private_;
  drawn.algorithm = draw(index, uses_auto, 2) == 0 ? 0 : 1 + draw(index, algorithm, 1U << 16U);
  if (has_counts(problem.collective) && !drawn.is_exchange) {
    drawn.what.blocks = blocks_at(index, drawn, most);
    drawn.what.count = 0;
  }
  return drawn;
}

std::shared_ptr<const CellBlocks> Mix::blocks_at(std::int64_t index, const SoakOperation& one, Count most) const {
  const Problem& problem = one.what.problem;
  const auto ranks = static_cast<std::uint64_t>(problem.ranks);
  const bool may_be_many = problem.ranks <= kMostOwnPlaces;
  Counts counts{.pattern = static_cast<Pattern>(draw(index, pattern, kPatterns)), .name = {}, .numbers = {}};
  if (counts.pattern == Pattern::file) {
    const bool is_matrix = may_be_many && has_counts(problem.collective) && divides_both(problem.collective);
    const auto longest = static_cast<std::uint64_t>(std::min<Count>(one.what.count, most / problem.ranks)) + 1;
    for (std::uint64_t i = 0; i < (is_matrix ? ranks * ranks : ranks); ++i) {
      const std::uint64_t from = i / ranks, to = i % ranks;
      const std::uint64_t which = one.is_in_place && is_matrix ? std::min(from, to) * ranks + std::max(from, to) : i;
      const bool is_empty = draw(index, numbers + 2 * which, kEmptyBlocks) == 0;
      counts.numbers.push_back(is_empty ? 0 : static_cast<Count>(draw(index, numbers + 2 * which + 1, longest)));
    }
  }
  auto blocks = std::make_shared<CellBlocks>(problem, counts, std::min(one.what.count * problem.ranks, most));
  // Inputs are reduced exactly in any order, but only with those of the same index.
  const bool rounds = is_reducing(problem.collective) && !is_integer(one.what.dtype) && one.what.op != Op::min &&
                      one.what.op != Op::max;
  if (!may_be_many || rounds || draw(index, places, 2) == 0) return blocks;
  blocks->set_apart(draw(index, places + 1, kAnySeed));
  return blocks;
}

Count exchanged(const SoakOperation& operation, int from, int to) {
  return operation.what.count * ((from + 2 * to + static_cast<int>(operation.what.salt % 3)) % 3);
}

std::uint64_t Mix::hash() const {
  std::uint64_t hash = 0;
  const auto add = [&hash](auto value) { hash = scramble(hash ^ static_cast<std::uint64_t>(value)); };
  for (int epoch = 0; epoch < kSoakEpochs; ++epoch) {
    std::array<int, kSoakCommunicators> sizes{};
    for (int communicator = 0; communicator < kSoakCommunicators; ++communicator) {
      const std::vector<int> ranks = members(epoch, communicator, 0);
      sizes[static_cast<std::size_t>(communicator)] = static_cast<int>(ranks.size());
      for (const int rank : ranks) add(rank);
    }
    const auto [begin, end] = this->epoch(epoch);
    for (std::int64_t index = begin; index < end; ++index) {
      const int group_ranks = sizes[static_cast<std::size_t>(communicator_at(index))];
      const SoakOperation one = at(index, group_ranks);
      for (const int part :
           {one.communicator, static_cast<int>(one.is_exchange), one.shift,
            static_cast<int>(one.what.problem.collective), one.what.problem.root, static_cast<int>(one.what.dtype),
            static_cast<int>(one.what.op), static_cast<int>(one.is_in_place), static_cast<int>(one.buffers)}) {
        add(part);
      }
      add(one.what.count);
      add(one.algorithm);
      if (one.what.blocks == nullptr) continue;
      for (int rank = 0; rank < group_ranks; ++rank) {
        const BlockTable table = one.what.blocks->table(rank, 1);
        for (const auto* const blocks : {&table.input, &table.output}) {
          for (const Block& block : *blocks) add(block.offset + (block.bytes << 32U));
        }
      }
    }
  }
  return hash;
}

}  // namespace tutti::harness::soak

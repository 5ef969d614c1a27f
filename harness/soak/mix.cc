// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/mix.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/verify/inputs.h"

namespace tutti::harness {
namespace {

constexpr std::array<Count, 14> kCounts{0, 1, 2, 3, 5, 8, 11, 12, 64, 100, 1000, 1023, 4097, 20011};
constexpr std::uint64_t kExchanges = 4;      // one operation in so many sends and receives
constexpr std::uint64_t kWorlds = 2;         // and one in so many is on the world
constexpr std::uint64_t kSharedBuffers = 4;  // has shared buffers

std::uint64_t mixed(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

}  // namespace

std::uint64_t Mix::draw(std::int64_t index, std::uint64_t field, std::uint64_t below) const {
  return mixed(mixed(seed_ + (static_cast<std::uint64_t>(index) << 8U)) + field) % below;
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

SoakOperation Mix::at(std::int64_t index, int group_ranks) const {
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
    uses_auto
  };
  const auto of_ranks = static_cast<std::uint64_t>(group_ranks);
  SoakOperation drawn;
  drawn.communicator = draw(index, on_world, kWorlds) == 0 ? 0 : 1 + static_cast<int>(draw(index, group, 3));
  drawn.is_exchange = draw(index, kind, kExchanges) == 0;
  drawn.shift = static_cast<int>(draw(index, shift, of_ranks));
  const auto collectives = all_collectives();
  Problem& problem = drawn.what.problem;
  problem = {.collective = collectives[draw(index, collective, collectives.size())], .ranks = group_ranks};
  if (is_rooted(problem.collective)) problem.root = static_cast<int>(draw(index, root, of_ranks));
  drawn.what.dtype = all_dtypes()[draw(index, dtype, all_dtypes().size())];
  if (is_reducing(problem.collective)) {
    std::vector<Op> ops = all_ops();
    std::erase_if(ops, [&](Op each) { return !supports_inputs(drawn.what.dtype, each, group_ranks).is_ok(); });
    drawn.what.op = ops[draw(index, op, ops.size())];
  }
  const Count most = kMostSoakBytes / static_cast<Count>(size_of(drawn.what.dtype)) /
                     (is_divided(problem.collective) ? group_ranks : 1);
  drawn.what.count = std::min(kCounts[draw(index, count, kCounts.size())], most);
  drawn.what.seed = seed_;
  drawn.what.salt = static_cast<std::uint64_t>(index) + 1;
  drawn.is_in_place = draw(index, placement, 3) == 0;
  drawn.buffers = draw(index, buffers, kSharedBuffers) == 0 ? Buffers::shared : Buffers::private_;
  drawn.algorithm = draw(index, uses_auto, 2) == 0 ? 0 : 1 + draw(index, algorithm, 1U << 16U);
  return drawn;
}

Count exchanged(const SoakOperation& operation, int from, int to) {
  return operation.what.count * ((from + 2 * to + static_cast<int>(operation.what.salt % 3)) % 3);
}

std::uint64_t Mix::hash() const {
  std::uint64_t hash = 0;
  const auto add = [&hash](auto value) { hash = mixed(hash ^ static_cast<std::uint64_t>(value)); };
  for (int epoch = 0; epoch < kSoakEpochs; ++epoch) {
    std::array<int, kSoakCommunicators> sizes{};
    for (int communicator = 0; communicator < kSoakCommunicators; ++communicator) {
      const std::vector<int> ranks = members(epoch, communicator, 0);
      sizes[static_cast<std::size_t>(communicator)] = static_cast<int>(ranks.size());
      for (const int rank : ranks) add(rank);
    }
    const auto [begin, end] = this->epoch(epoch);
    for (std::int64_t index = begin; index < end; ++index) {
      const SoakOperation one = at(index, sizes[static_cast<std::size_t>(at(index, 1).communicator)]);
      for (const int part :
           {one.communicator, static_cast<int>(one.is_exchange), one.shift,
            static_cast<int>(one.what.problem.collective), one.what.problem.root, static_cast<int>(one.what.dtype),
            static_cast<int>(one.what.op), static_cast<int>(one.is_in_place), static_cast<int>(one.buffers)}) {
        add(part);
      }
      add(one.what.count);
      add(one.algorithm);
    }
  }
  return hash;
}

}  // namespace tutti::harness

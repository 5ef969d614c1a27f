// SPDX-License-Identifier: Apache-2.0
// For tests of groups: who is in one, and what a process holds of those that were.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "impl/communicator/communicator.h"

namespace tutti {

/// The world's ranks in the order of the group's, as the group itself says.
inline std::vector<std::int32_t> members_of(Communicator& group, int world_rank) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(group.ranks()), -1);
  const Status done = group.all_gather(&world_rank, members.data(), 1, Dtype::i32);
  EXPECT_TRUE(done.is_ok()) << done.message();
  return members;
}

/// The groups of every pair of a ring of the world's ranks that this rank is in: two.
inline std::vector<std::unique_ptr<Communicator>> pairs_of_a_ring(Communicator& world) {
  std::vector<std::unique_ptr<Communicator>> groups;
  for (int i = 0; i < world.ranks(); ++i) {
    auto group = world.new_group(std::array{i, (i + 1) % world.ranks()});
    EXPECT_TRUE(group.is_ok()) << group.status().message();
    if (group.is_ok() && group.value() != nullptr) groups.push_back(std::move(group).value());
  }
  return groups;
}

/// Sums in both of them and in the world at once, which each rank waits for in another order. So around the ring each
/// waits for a rank that waits for another, and a wait for one must move the others.
inline void sum_in_all_at_once(Communicator& world, const std::vector<std::unique_ptr<Communicator>>& groups,
                               Count count, int round) {
  const int rank = world.rank(), ranks = world.ranks();
  std::array<std::vector<std::int32_t>, 3> in, out;
  std::vector<Work> works;
  for (std::size_t i = 0; i < 3; ++i) {
    Communicator& communicator = i < 2 ? *groups[i] : world;
    in[i].assign(static_cast<std::size_t>(count), i < 2 ? rank : rank * 100);
    out[i].assign(static_cast<std::size_t>(count), -1);
    works.push_back(communicator
                        .post({.collective = Collective::all_reduce,
                               .dtype = Dtype::i32,
                               .op = Op::sum,
                               .count = count,
                               .input = in[i].data(),
                               .output = out[i].data()})
                        .value());
  }
  std::rotate(works.begin(), works.begin() + (rank + round) % 3, works.end());
  for (Work& work : works) {
    const Status done = work.wait(std::chrono::seconds(20));
    ASSERT_TRUE(done.is_ok()) << done.message();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const int peer = groups[i]->world_rank(1 - groups[i]->rank());
    ASSERT_EQ(std::ranges::count(out[i], rank + peer), count);
  }
  ASSERT_EQ(std::ranges::count(out[2], ranks * (ranks - 1) / 2 * 100), count);
}

/// Of this process; the look itself has one more, always.
inline std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

inline std::ptrdiff_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

}  // namespace tutti

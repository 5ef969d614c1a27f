// SPDX-License-Identifier: Apache-2.0
// For tests of groups: who is in one, and what a process holds of those that were.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
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

// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/caches.h"

#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/machine/machines.h"

namespace tutti::harness::machine {
namespace {

std::vector<int> cores_to(int count) {
  std::vector<int> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

/// A root whose core number i has a first cache for itself, and a last one that `sharers[i]` share.
void write_caches(const FakeRoot& root, const std::vector<std::string>& sharers) {
  for (std::size_t core = 0; core < sharers.size(); ++core) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/cache/", core);
    root.write(folder + "index0/level", "1");
    root.write(folder + "index0/type", "Data");
    root.write(folder + "index0/shared_cpu_list", fmt::format("{}", core));
    root.write(folder + "index3/level", "3");
    root.write(folder + "index3/type", "Unified");
    root.write(folder + "index3/shared_cpu_list", sharers[core]);
  }
}

TEST(CoresPerCache, IsHowManyCoresFollowEachOtherInOneLastCache) {
  const FakeRoot root;
  write_caches(root, {"0-3", "0-3", "0-3", "0-3", "4-7", "4-7", "4-7", "4-7"});
  EXPECT_EQ(cores_per_cache(root.tree(), cores_to(8)), 4);
  EXPECT_EQ(cores_per_cache(root.tree(), cores_to(6)), 4) << "the last cache may have fewer";
  EXPECT_EQ(cores_per_cache(root.tree(), std::vector{0, 1, 4, 5}), 2) << "of the cores that are allowed";
  EXPECT_EQ(cores_per_cache(root.tree(), std::vector{0, 1, 4, 5, 6}), 0) << "a later cache has more";
  EXPECT_EQ(cores_per_cache(root.tree(), cores_to(4)), 0) << "one cache";
}

TEST(CoresPerCache, SecondThreadsOfCoresDoNotCount) {
  const FakeRoot root;
  write_caches(root, {"0-1,4-5", "0-1,4-5", "2-3,6-7", "2-3,6-7", "0-1,4-5", "0-1,4-5", "2-3,6-7", "2-3,6-7"});
  EXPECT_EQ(cores_per_cache(root.tree(), cores_to(8)), 2);
}

TEST(CoresPerCache, IsNotKnownWhereCachesAreUnevenOrNotShown) {
  const FakeRoot uneven;
  write_caches(uneven, {"0-1", "0-1", "2", "3-4", "3-4"});
  EXPECT_EQ(cores_per_cache(uneven.tree(), cores_to(5)), 0);
  const FakeRoot apart;
  write_caches(apart, {"0", "1", "2"});
  EXPECT_EQ(cores_per_cache(apart.tree(), cores_to(3)), 0) << "a cache for each core";
  const FakeRoot nothing;
  EXPECT_EQ(cores_per_cache(nothing.tree(), cores_to(4)), 0);
}

}  // namespace
}  // namespace tutti::harness::machine

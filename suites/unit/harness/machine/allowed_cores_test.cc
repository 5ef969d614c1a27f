// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/allowed_cores.h"

#include <algorithm>
#include <sched.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

TEST(AllowedCores, AreThoseOfTheMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const std::vector<int> cores = allowed_cores();
  EXPECT_EQ(cores.size(), static_cast<std::size_t>(CPU_COUNT(&mask)));
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  for (const int core : cores) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(core), &mask)) << core;
}

TEST(AllowedCores, OfAPinnedThreadAreItsOwn) {
  const int last = allowed_cores().back();
  std::thread([last] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(static_cast<std::size_t>(last), &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_THAT(allowed_cores(), testing::ElementsAre(last));
  }).join();
  EXPECT_THAT(allowed_cores(), testing::Contains(last));
}

}  // namespace
}  // namespace tutti::harness::machine

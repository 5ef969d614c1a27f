// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/channels.h"

#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::simulate {
namespace {

TEST(Channels, HoldWhatAMapHolds) {
  Channels<int> channels;
  std::map<std::uint64_t, int> wanted;
  statistics::SplitMix random(7);
  for (int i = 0; i < 200'000; ++i) {
    // Few keys, so that runs of full slots have holes made in them; more of them later, so that the table grows.
    const std::uint64_t key =
        static_cast<std::uint64_t>(random.below(i < 100'000 ? 600 : 5000)) << 32U | random.below(3);
    const auto found = wanted.find(key);
    if (found != wanted.end() && random.below(2) == 0) {
      ASSERT_EQ(channels[key], found->second);
      channels.erase(key);
      wanted.erase(found);
    } else {
      channels[key] += i;
      wanted[key] += i;
    }
    ASSERT_EQ(channels.size(), wanted.size());
  }
  for (const auto& [key, value] : wanted) ASSERT_EQ(channels[key], value);
}

}  // namespace
}  // namespace tutti::harness::simulate

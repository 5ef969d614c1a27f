// SPDX-License-Identifier: Apache-2.0
// What flushed memory holds.
#include "harness/machine/flush.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

TEST(Flush, LeavesWhatTheMemoryHolds) {
  if (!can_flush()) GTEST_SKIP() << "no instruction for it";
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000}) {
    std::vector<std::byte> memory(bytes + 7, std::byte{0x5a});
    flush(std::span(memory).subspan(7));
    EXPECT_EQ(std::ranges::count(memory, std::byte{0x5a}), static_cast<std::ptrdiff_t>(bytes + 7));
  }
}

}  // namespace
}  // namespace tutti::harness::machine

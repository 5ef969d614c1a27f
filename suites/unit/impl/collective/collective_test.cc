// SPDX-License-Identifier: Apache-2.0
// The numbers that are derived from a collective's meaning.
#include "impl/collective/collective.h"

#include <limits>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(BufferBytes, IsOneBlockOrOnePerRank) {
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_reduce, .ranks = 5}, 10, 4), 40);
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_to_all, .ranks = 5}, 10, 4), 200);
  EXPECT_EQ(buffer_bytes({.collective = Collective::barrier, .ranks = 5}, 10, 4), 0);
}

TEST(BufferBytes, OfMoreThanFitStayAtTheMost) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Problem all_to_all{.collective = Collective::all_to_all, .ranks = 4};
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_reduce, .ranks = 4}, Count{1} << 62U, 4), kMost);
  EXPECT_EQ(buffer_bytes(all_to_all, Count{1} << 59U, 4), kMost);
  EXPECT_EQ(buffer_bytes(all_to_all, Count{1} << 58U, 4), Count{1} << 62U);
}

}  // namespace
}  // namespace tutti

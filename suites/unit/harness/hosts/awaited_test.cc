// SPDX-License-Identifier: Apache-2.0
// Who waits for whom: there and back, and each way in which it cannot be read.
#include "harness/hosts/awaited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::hosts {
namespace {

using testing::HasSubstr;

TEST(Awaited, ComesBackAsItWas) {
  const std::map<int, int> awaited{{0, 7}, {3, 0}};
  EXPECT_EQ(awaited_lines(awaited), "0 7\n3 0\n");
  const auto back = awaited_from_lines(awaited_lines(awaited), 8);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value(), awaited);
  EXPECT_TRUE(awaited_from_lines("", 8).value().empty());
}

TEST(Awaited, LinesThatCannotBeReadAreErrors) {
  for (const char* const line :
       {"1", "1 ", " 1 2", "1  2", "1 2 ", "1 2 3", "a 1", "1 b", "-1 2", "1 -2", "8 1", "1 8", "", "1 99999999999"}) {
    const auto read = awaited_from_lines(std::string("0 1\n") + line + "\n", 8);
    EXPECT_EQ(read.status().code(), Code::invalid_argument) << line;
    EXPECT_THAT(read.status().message(),
                HasSubstr(std::string("'") + line + "' is not a rank and the rank that it awaits, each from 0 to 7"));
  }
}

}  // namespace
}  // namespace tutti::harness::hosts

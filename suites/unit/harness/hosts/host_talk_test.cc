// SPDX-License-Identifier: Apache-2.0
// What a host reports of its ranks: there and back, and each way in which it cannot be read.
#include "harness/hosts/host_talk.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::hosts {
namespace {

using testing::HasSubstr;

TEST(RankReports, ComeBackAsTheyWere) {
  const std::vector<RankReport> reports{{},
                                        {.waited_ns = 2'000'000'001,
                                         .granted_ns = 7,
                                         .operation = 1ULL << 63U,
                                         .case_index = 4294967295U,
                                         .activity = 2,
                                         .state = 'T'}};
  EXPECT_EQ(to_lines(reports), "0 0 0 0 0 S\n2000000001 7 9223372036854775808 4294967295 2 T\n");
  const auto back = reports_from_lines(to_lines(reports), 2);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value(), reports);
}

TEST(RankReports, ThatCannotBeReadAreErrors) {
  for (const char* const line : {"0 0 0 0 0", "0 0 0 0 0 ", "0 0 0 0 0 SS", "0 0 0 0 S", "-1 0 0 0 0 S", "0 0 -1 0 0 S",
                                 "0 0 0 4294967296 0 S", "0 0 0 0 0x S", "", "0  0 0 0 0 S", "a 0 0 0 0 S"}) {
    const auto read = reports_from_lines(std::string("0 0 0 0 0 S\n") + line + "\n", 2);
    EXPECT_EQ(read.status().code(), Code::invalid_argument) << line;
    EXPECT_THAT(read.status().message(), HasSubstr(std::string("'") + line + "' is not a rank's five numbers"));
  }
  EXPECT_EQ(reports_from_lines("0 0 0 0 0 S\n", 2).status().message(), "1 lines of ranks, and it has 2 ranks");
  EXPECT_EQ(reports_from_lines("", 1).status().message(), "0 lines of ranks, and it has 1 ranks");
}

}  // namespace
}  // namespace tutti::harness::hosts

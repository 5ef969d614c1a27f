// SPDX-License-Identifier: Apache-2.0
// What a host reports of its ranks: there and back, and each way in which it cannot be read.
#include "harness/hosts/host_talk.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/bootstrap/meeting.h"

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

TEST(RankEvents, HaveARankNumbersAndARest) {
  const auto exit = event_from_text("exit", "3 17 256");
  ASSERT_TRUE(exit.is_ok()) << exit.status().message();
  EXPECT_EQ(exit.value().rank, 3);
  EXPECT_EQ(exit.value().numbers, (std::vector{17, 256}));
  const auto from = event_from_text("from", "3 row\n1 2");
  ASSERT_TRUE(from.is_ok()) << from.status().message();
  EXPECT_EQ(from.value().rank, 3);
  EXPECT_EQ(from.value().rest, "row\n1 2");
  EXPECT_EQ(event_from_text("garbage", "3 17 what it was").value().rest, "what it was");
  EXPECT_EQ(event_from_text("up", "0 17").value().numbers, (std::vector{17}));
  EXPECT_EQ(event_from_text("closed", "0").value().rank, 0);
  EXPECT_EQ(event_from_text("calls", "2 ").value().rest, "");
  EXPECT_EQ(event_from_text("stack", "2 thread 1\n  #0 poll\n").value().rest, "thread 1\n  #0 poll\n");
}

TEST(RankEvents, ThatCannotBeReadAreErrors) {
  using Words = std::pair<const char*, const char*>;
  for (const auto& [type, text] : {Words("up", "3"),         Words("up", "3 "),
                                   Words("up", "3 x"),       Words("up", "3 -1"),
                                   Words("up", "3 17 4"),    Words("from", "3"),
                                   Words("from", "x row\n"), Words("closed", ""),
                                   Words("closed", "-1"),    Words("closed", "3 4"),
                                   Words("closed", "3x"),    Words("standing", "3"),
                                   Words("standing", "{}"),  Words("calls", "3"),
                                   Words("calls", ""),       Words("stack", "-1 "),
                                   Words("garbage", "3 17"), Words("exit", "3 17"),
                                   Words("exit", "3 17 x"),  Words("exit", "3 17 99999999999")}) {
    const auto read = event_from_text(type, text);
    EXPECT_EQ(read.status().code(), Code::io) << type << " " << text;
    EXPECT_THAT(read.status().message(), HasSubstr(std::string("'") + type + "' of a rank cannot be read: '"));
  }
  EXPECT_EQ(event_from_text("dance", "3").status().message(), "it sends 'dance', which is no message of a host");
}

TEST(Failures, KeepAllWordsIfTheyHaveNoCode) {
  const Status back = error_from(error_text({Code::timeout, "too late"}));
  EXPECT_EQ(back.code(), Code::timeout);
  EXPECT_EQ(back.message(), "too late");
  EXPECT_EQ(error_from("too late").code(), Code::aborted);
  EXPECT_EQ(error_from("too late").message(), "too late");
}

}  // namespace
}  // namespace tutti::harness::hosts

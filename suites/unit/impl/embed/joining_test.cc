// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/joining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::embed {
namespace {

using ::testing::HasSubstr;

Seating rank_on(const std::string& host) {
  return {.build = "tutti 1", .host = host, .process = {.pid = 7, .start = 8}, .cores = {true, false, true, true}};
}

TEST(Joining, WhatARankSaysOfItselfIsReadAsItWasWritten) {
  const Seating here = seating_here();
  const auto read = seating_from(to_text(here));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().build, here.build);
  EXPECT_EQ(read.value().host, here.host);
  EXPECT_EQ(read.value().process.pid, here.process.pid);
  EXPECT_EQ(read.value().process.start, here.process.start);
  EXPECT_EQ(to_text(read.value()), to_text(here));
}

TEST(Joining, RanksOfOneHostAfterTheOtherAreAPlan) {
  const auto plan = plan_of({rank_on("a"), rank_on("a"), rank_on("b")});
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan.value().host_of, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(plan.value().cores, (std::vector<int>{3, 3}));
  const auto read = plan_from(to_text(plan.value()), 3);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().host_of, plan.value().host_of);
  EXPECT_EQ(read.value().processes.size(), 3U);
}

TEST(Joining, MemoryIsSharedWhereAllHaveSomeOnOneHost) {
  const auto with = [](const std::string& host, const std::string& arena) {
    Seating seating = rank_on(host);
    seating.arena = arena;
    return seating_from(to_text(seating)).value();
  };
  const std::vector<std::string> both{"3:4096:ab", "4:4096:cd"};
  const auto plan = plan_from(to_text(plan_of({with("a", both[0]), with("a", both[1])}).value()), 2);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_EQ(plan.value().arenas, both);
  EXPECT_TRUE(plan_of({with("a", both[0]), with("a", "")}).value().arenas.empty());
  EXPECT_TRUE(plan_of({with("a", both[0]), with("b", both[1])}).value().arenas.empty());
}

TEST(Joining, RanksThatGoToAndFroAreRefusedByName) {
  const auto plan = plan_of({rank_on("a"), rank_on("b"), rank_on("a")});
  EXPECT_EQ(plan.status().code(), Code::unavailable);
  EXPECT_THAT(plan.status().message(), HasSubstr("rank 2 is on the host of rank 0"));
}

TEST(Joining, AnotherBuildIsRefusedByName) {
  Seating other = rank_on("a");
  other.build = "tutti 2";
  EXPECT_THAT(plan_of({rank_on("a"), other}).status().message(), HasSubstr("rank 1 has another build"));
}

TEST(Joining, AnotherSelectionTableIsRefusedByBothNames) {
  const auto with = [](const std::string& table) {
    Seating seating = rank_on("a");
    seating.table = table;
    return seating_from(to_text(seating)).value();
  };
  EXPECT_TRUE(plan_of({with("my table.csv:0123"), with("my table.csv:0123")}).is_ok());
  const auto plan = plan_of({with("my table.csv:0123"), with("my table.csv:4567")});
  EXPECT_EQ(plan.status().code(), Code::mismatch);
  EXPECT_THAT(plan.status().message(),
              HasSubstr("rank 1 has the selection table my table.csv:4567, and rank 0 has my table.csv:0123"));
}

TEST(Joining, AFailureOfRank0IsThatOfTheOthers) {
  const auto plan = plan_from("error 6 rank 3 of 4 did not come within 1 s", 4);
  EXPECT_EQ(plan.status().code(), static_cast<Code>(6));
  EXPECT_EQ(plan.status().message(), "rank 3 of 4 did not come within 1 s");
}

TEST(Joining, WhatIsNoPlanIsRefused) {
  const std::string good = to_text(plan_of({rank_on("a"), rank_on("a")}).value());
  ASSERT_TRUE(plan_from(good, 2).is_ok());
  const auto with = [&](const std::string& line, const std::string& other) {
    std::string text = good;
    const std::size_t at = text.find(line);
    text.replace(at, text.find('\n', at) - at, other);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("error"), std::string("error 99 x"), std::string("error -1 x"), good.substr(0, 30),
        with("host_of", "host_of 0 2"), with("host_of", "host_of 1 1"), with("host_of", "host_of 0 -1"),
        with("host_of", "host_of 0 0 0"), with("host_of", "host_of 0 0x"), with("processes", "processes 7:8"),
        with("processes", "processes 7:8 -7:8"), with("processes", "processes 7:8 7"), with("cores", "cores"),
        with("cores", "cores 99999999999999999999"), with("arenas", "arenas 3:4096:ab")}) {
    EXPECT_FALSE(plan_from(text, 2).is_ok()) << text;
  }
  for (const std::string& text : {std::string(), std::string("build x\nhost y\nprocess 1:2\ncores 5-1\n"),
                                  std::string("build x\nhost y\nprocess 1:2\ncores 0-99999999\n"),
                                  std::string("build x\nhost y\nprocess 1\ncores 0-1\narena\n"),
                                  std::string("build x\nhost y\nprocess 1:2\ncores 0-1\n")}) {
    EXPECT_FALSE(seating_from(text).is_ok()) << text;
  }
}

}  // namespace
}  // namespace tutti::embed

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/block_medians.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::record {
namespace {

using testing::HasSubstr;

TEST(BlockMedians, AreReadAsTheyWereWritten) {
  const BlockMedians medians{
      .case_id = "a/b", .operations = 3, .of_rounds = {{.round = 0, .median_us = 1.25}, {.round = 4, .median_us = 2}}};
  const auto read = block_medians_from_json(to_json(medians));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value(), medians);
}

TEST(BlockMedians, ThatCannotBeAreRefused) {
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({"case":"a","operations":1,"rounds":[0,0],"us":[1,2]})", "round 0"},
           {R"({"case":"a","operations":1,"rounds":[-1],"us":[1]})", "round -1"},
           {R"({"case":"a","operations":1,"rounds":[0],"us":[0]})", "median 0"},
           {R"({"case":"a","operations":1,"rounds":[0],"us":[]})", "1 rounds, 0 medians"},
           {R"({"case":"a","operations":0,"rounds":[],"us":[]})", "0 operations"},
           {R"({"case":1,"operations":1,"rounds":[],"us":[]})", "medians of blocks"}}) {
    const auto read = block_medians_from_json(text);
    ASSERT_FALSE(read.is_ok()) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/unusual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::record {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(const Row& row) {
  std::vector<std::string> words;
  for (const Unusual& one : unusual_conditions(row)) words.push_back(one.words);
  return words;
}

TEST(Unusual, IsNothingThatNobodyAskedFor) {
  EXPECT_TRUE(words_of({}).empty()) << "it does not say";
  EXPECT_TRUE(words_of({.checked_on = "timed", .conditions = {{"cache", "hot"}, {"skew", "0"}, {"sync", "roundtime"}}})
                  .empty());
  EXPECT_TRUE(words_of({.checked_on = "every; special values too"}).empty()) << "a check, which times nothing";
  EXPECT_TRUE(words_of({.checked_on = "last timed; 3 passes of 15 ranks"}).empty()) << "after all samples";
}

TEST(Unusual, IsWhateverChangesWhatATimeMeans) {
  EXPECT_THAT(
      words_of(
          {.checked_on = "every further; special values",
           .conditions = {{"cache", "rotate"}, {"skew", "12.5"}, {"sync", "dissemination"}, {"overlap_calls", "4"}}}),
      ElementsAre("cache rotate", "sync dissemination", "skew 12.5 us (times are from the late rank's entry on)",
                  "nonblocking calls", "other data in every sample", "special values"));
  EXPECT_EQ(unusual_conditions({.conditions = {{"cache", "cold"}}}).front().usual, "hot");
  EXPECT_THAT(words_of({.graph = "yes", .grouped = 8, .registered = "windows"}),
              ElementsAre("operations of a graph", "groups of 8 operations", "registered windows"));
  EXPECT_THAT(words_of({.conditions = {{"crowd", "4"}}}), ElementsAre("4 busy threads beside the ranks"));
  EXPECT_THAT(words_of({.gpu = "H200"}), ElementsAre("GPU H200"))
      << "nobody asked for it, and another one has other times";
}

}  // namespace
}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/board/binding.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/allowed_cores.h"

namespace tutti::harness::board {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Masks = std::vector<std::vector<int>>;

const Places kTwoNodes{.allowed = {0, 1, 2, 3, 6, 7}, .nodes = {{0, 1, 2, 3}, {4, 5, 6, 7}, {}}};

TEST(Masks, OfCoreAreTheAllowedCoresInOrder) {
  EXPECT_EQ(masks_for(Bind::core, 5, kTwoNodes).value(), (Masks{{0}, {1}, {2}, {3}, {6}}));
}

TEST(Masks, OfCoreAreRefusedWhereNotEveryRankHasOne) {
  const Status status = masks_for(Bind::core, 7, kTwoNodes).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("7 ranks on 6 allowed cores: did you mean 'none'?"));
}

TEST(Masks, OfNumaAreTheAllowedCoresOfEachNodeInEqualShares) {
  EXPECT_EQ(masks_for(Bind::numa, 3, kTwoNodes).value(), (Masks{{0, 1, 2, 3}, {0, 1, 2, 3}, {6, 7}}));
  EXPECT_EQ(masks_for(Bind::numa, 4, kTwoNodes).value(), (Masks{{0, 1, 2, 3}, {0, 1, 2, 3}, {6, 7}, {6, 7}}));
  EXPECT_EQ(masks_for(Bind::numa, 1, kTwoNodes).value(), (Masks{{0, 1, 2, 3}}));
}

TEST(Masks, OfNumaAreRefusedWhereNoNodeIsShown) {
  const Status status = masks_for(Bind::numa, 2, {.allowed = {0, 1}, .nodes = {}}).status();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(status.message(), HasSubstr("does not show its nodes"));
}

TEST(Masks, OfNoneAreAllAllowedCores) {
  EXPECT_EQ(masks_for(Bind::none, 2, {.allowed = {1, 3}, .nodes = {}}).value(), (Masks{{1, 3}, {1, 3}}));
}

TEST(Masks, WithoutAChoiceAreThoseOfCoreWhereEveryRankHasOne) {
  const Places two{.allowed = {4, 5}, .nodes = {}};
  EXPECT_EQ(masks_for(std::nullopt, 2, two).value(), (Masks{{4}, {5}}));
  EXPECT_EQ(masks_for(std::nullopt, 3, two).value(), (Masks{{4, 5}, {4, 5}, {4, 5}}));
}

TEST(Masks, AreCrowdedWhereRanksShareACore) {
  EXPECT_FALSE(is_crowded({{0}, {1}}));
  EXPECT_FALSE(is_crowded({{0, 1}, {0, 1}}));
  EXPECT_TRUE(is_crowded({{0, 1}, {0, 1}, {0, 1}}));
  EXPECT_TRUE(is_crowded({{0, 1}, {2}, {2}}));
}

TEST(Binding, MovesTheThreadAndNoOther) {
  const std::vector<int> before = allowed_cores();
  std::thread([&] {
    ASSERT_TRUE(bind_this_thread({before.back()}).is_ok());
    EXPECT_THAT(allowed_cores(), ElementsAre(before.back()));
  }).join();
  EXPECT_EQ(allowed_cores(), before);
  EXPECT_EQ(places_here().allowed, before);
}

TEST(Binding, SaysWhyItCannotBe) {
  const Status status = bind_this_thread({1000});
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(status.message(), HasSubstr("core 1000"));
}

}  // namespace
}  // namespace tutti::harness::board

// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/groups.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/expand.h"
#include "harness/cases/sweep.h"

namespace tutti::harness::cases {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string refusal(std::string_view text) { return std::string(parse_groups(text).status().message()); }

TEST(Groups, NeighboursAndEveryOtherRank) {
  const Groups halves = parse_groups("2x4").value();
  EXPECT_EQ(to_string(halves), "2x4");
  EXPECT_THAT(members_of(halves, 0, 8), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(members_of(halves, 1, 8), ElementsAre(4, 5, 6, 7));
  const Groups odd = parse_groups("mod:2").value();
  EXPECT_EQ(to_string(odd), "MOD:2");
  EXPECT_THAT(members_of(odd, 0, 5), ElementsAre(0, 2, 4));
  EXPECT_THAT(members_of(odd, 1, 5), ElementsAre(1, 3));
}

TEST(Groups, WhatIsNoneIsRefusedWithBothForms) {
  for (const char* text : {"", "2", "x4", "1x4", "2x0", "2x", "MOD:1", "MOD:", "MOD", "4096x2", "2x4x2", "-2x4"}) {
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("2x4"), HasSubstr("MOD:2"), HasSubstr("2 to 4096"))) << text;
  }
}

TEST(Groups, RanksThatDoNotFitAreNamed) {
  EXPECT_TRUE(check_groups(parse_groups("2x4").value(), 8).is_ok());
  EXPECT_THAT(std::string(check_groups(parse_groups("2x4").value(), 4).message()),
              AllOf(HasSubstr("'2x4'"), HasSubstr("--ranks is 4"), HasSubstr("did you mean --ranks 8?")));
  EXPECT_TRUE(check_groups(parse_groups("MOD:3").value(), 3).is_ok());
  EXPECT_THAT(std::string(check_groups(parse_groups("MOD:3").value(), 2).message()),
              HasSubstr("did you mean 'MOD:2'?"));
}

TEST(Groups, WhatRunsBesideHasASizeOrNone) {
  const std::vector<Dealt> beside = parse_beside("all_to_all:1M,barrier").value();
  ASSERT_THAT(beside, SizeIs(2));
  EXPECT_EQ(beside[0].collective, Collective::all_to_all);
  EXPECT_EQ(beside[0].bytes, 1 << 20);
  EXPECT_EQ(beside[1].collective, Collective::barrier);
  EXPECT_FALSE(beside[1].bytes);
  EXPECT_THAT(std::string(parse_beside("barrier:8").status().message()), HasSubstr("has no data"));
  EXPECT_THAT(std::string(parse_beside("all_reduc").status().message()), HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_FALSE(parse_beside("all_reduce,").is_ok());
  EXPECT_FALSE(parse_beside("all_reduce:x").is_ok());
}

Sweep two_by_two(std::vector<std::string> beside = {}) {
  Sweep sweep;
  sweep.collectives = {Collective::all_reduce};
  sweep.sizes = {1024};
  sweep.ranks = {4};
  sweep.backends = {"tutti"};
  sweep.groups = parse_groups("2x2").value();
  for (const std::string& text : beside) sweep.beside.push_back(parse_beside(text).value().front());
  return sweep;
}

std::vector<std::string> ids(const Sweep& sweep) {
  std::vector<std::string> list;
  const Expansion expansion = expand(sweep).value();
  for (const Cell& cell : expansion.cells) {
    Case one;
    static_cast<Cell&>(one) = cell;
    list.push_back(case_id(one));
  }
  return list;
}

TEST(Groups, EachGroupIsACellAloneAndTogether) {
  EXPECT_THAT(
      ids(two_by_two()),
      ElementsAre(
          "all_reduce/tutti.none/shm/float/sum/P4.processes.group0of2x2.alone/none/1024B/out/private/isolated",
          "all_reduce/tutti.none/shm/float/sum/P4.processes.group0of2x2.together/none/1024B/out/private/isolated",
          "all_reduce/tutti.none/shm/float/sum/P4.processes.group1of2x2.alone/none/1024B/out/private/isolated",
          "all_reduce/tutti.none/shm/float/sum/P4.processes.group1of2x2.together/none/1024B/out/private/isolated"));
}

TEST(Groups, IdsAreReadBack) {
  for (const std::vector<std::string>& beside :
       {std::vector<std::string>{}, std::vector<std::string>{"broadcast:64"}, std::vector<std::string>{"barrier"}}) {
    const Expansion expansion = expand(two_by_two(beside)).value();
    EXPECT_FALSE(expansion.cells.empty());
    for (const Cell& cell : expansion.cells) {
      Case one;
      static_cast<Cell&>(one) = cell;
      const auto read = parse_case_id(case_id(one));
      ASSERT_TRUE(read.is_ok()) << read.status().message();
      EXPECT_EQ(read.value(), one) << case_id(one);
    }
  }
}

TEST(Groups, AnIdWithAnotherGroupIsRefused) {
  for (const char* ranks :
       {"P4.processes.group2of2x2.alone", "P5.processes.group0of2x2.alone", "P4.processes.group0of2x2.apart",
        "P4.processes.group0of1x4.alone", "P4.processes.group0of2x2", "P4.processes.group0of2x2.alone.a b"}) {
    const std::string id =
        std::string("all_reduce/tutti.ring/shm/float/sum/") + ranks + "/none/1024B/out/private/isolated";
    EXPECT_FALSE(parse_case_id(id).is_ok()) << id;
  }
}

TEST(Groups, SizesAreThoseOfTheGroupsRanks) {
  Sweep sweep = two_by_two();
  sweep.collectives = {Collective::all_gather};
  sweep.sizes = {3 * 4};  // three floats: of two ranks one each
  const Expansion expansion = expand(sweep).value();
  ASSERT_THAT(expansion.cells, SizeIs(4));
  EXPECT_EQ(expansion.cells[0].bytes, 8);
  EXPECT_EQ(expansion.cells[0].problem().ranks, 2);
  EXPECT_EQ(within_group(Case{expansion.cells[0]}).ranks, 2);
}

TEST(Groups, ADealNamesWhatEachGroupRuns) {
  const Expansion expansion = expand(two_by_two({"broadcast:64"})).value();
  ASSERT_THAT(expansion.cells, SizeIs(4));
  const std::string deal = "all_reduce-float-sum-1024B-out-private+broadcast-float-root0-64B-in-private";
  for (const Cell& cell : expansion.cells) EXPECT_EQ(cell.among.deal, deal);
  EXPECT_EQ(expansion.cells[1].collective, Collective::all_reduce);
  EXPECT_EQ(expansion.cells[2].collective, Collective::broadcast);
  EXPECT_EQ(expansion.cells[2].bytes, 64);
}

TEST(Groups, ContentionsThatDifferOnlyInTheFirstGroupsWorkAreTwo) {
  Sweep sweep = two_by_two({"barrier"});
  sweep.dtypes.values = {Dtype::f32, Dtype::i32};
  const std::vector<std::string> all = ids(sweep);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 8U);
}

TEST(Groups, ARootOfTheJobThatNoGroupHasIsLeftOut) {
  Sweep sweep = two_by_two();
  sweep.collectives = {Collective::reduce};
  sweep.roots.values = {3};
  const Expansion expansion = expand(sweep).value();
  EXPECT_THAT(expansion.cells, IsEmpty());
  ASSERT_THAT(expansion.left_out, SizeIs(1));
  EXPECT_EQ(expansion.left_out.front().reason, "root 3 on 2 ranks");
}

TEST(Groups, AllRootsAreThoseThatEveryGroupHas) {
  Sweep sweep = two_by_two();
  sweep.groups = parse_groups("MOD:2").value();
  sweep.ranks = {5};
  sweep.collectives = {Collective::reduce};
  sweep.roots = {{}, true};
  const Expansion expansion = expand(sweep).value();
  EXPECT_THAT(expansion.cells, SizeIs(2 * 4)) << "roots 0 and 1 of groups of three and two";
  EXPECT_THAT(expansion.left_out, IsEmpty());
}

TEST(Groups, GroupsWhoseBlocksHaveOtherCallsAreLeftOut) {
  Sweep sweep = two_by_two({"broadcast"});
  sweep.cadence = Cadence::streaming;
  EXPECT_THAT(expand(sweep).value().cells, IsEmpty());
  sweep.placements = {{Placement::in}};
  EXPECT_THAT(expand(sweep).value().cells, SizeIs(4));
}

}  // namespace
}  // namespace tutti::harness::cases

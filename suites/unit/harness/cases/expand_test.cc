// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/expand.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/conformance.h"

namespace tutti::harness::cases {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Sweep sweep_of(std::vector<Collective> collectives) {
  Sweep sweep;
  sweep.collectives = std::move(collectives);
  sweep.sizes = {8, 1024};
  sweep.ranks = {2};
  sweep.backends = {"tutti"};
  return sweep;
}

std::vector<std::string> ids(const Expansion& expansion) {
  std::vector<std::string> list;
  for (const Cell& cell : expansion.cells) {
    Case one;
    static_cast<Cell&>(one) = cell;
    list.push_back(case_id(one));
  }
  return list;
}

TEST(Expand, OneCellPerSizeOfAReducingCollective) {
  const Expansion expansion = expand(sweep_of({Collective::all_reduce})).value();
  EXPECT_THAT(ids(expansion),
              ElementsAre("all_reduce/tutti.none/shm/float/sum/P2.processes/none/8B/out/private/isolated",
                          "all_reduce/tutti.none/shm/float/sum/P2.processes/none/1024B/out/private/isolated"));
  EXPECT_EQ(expansion.cells[1].count, 256);
  EXPECT_THAT(expansion.left_out, IsEmpty());
}

TEST(Expand, BroadcastRunsInPlaceUnlessThePlacementWasChosen) {
  Sweep sweep = sweep_of({Collective::broadcast});
  sweep.sizes = {8};
  EXPECT_THAT(ids(expand(sweep).value()),
              ElementsAre("broadcast/tutti.none/shm/float/none/P2.processes/root0/8B/in/private/isolated"));
  sweep.placements = {{Placement::out}};
  EXPECT_THAT(ids(expand(sweep).value()),
              ElementsAre("broadcast/tutti.none/shm/float/none/P2.processes/root0/8B/out/private/isolated"));
}

TEST(Expand, ABarrierIsOneCellOfNoBytesWhateverTheOtherAxesSay) {
  Sweep sweep = sweep_of({Collective::barrier});
  sweep.dtypes = {{Dtype::f32, Dtype::i32}, false};
  sweep.buffers = {Buffers::private_, Buffers::shared};
  sweep.placements = {{Placement::in, Placement::out}};
  EXPECT_THAT(ids(expand(sweep).value()),
              ElementsAre("barrier/tutti.none/shm/none/none/P2.processes/none/0B/none/none/isolated"));
}

TEST(Expand, OpsDoNotMultiplyWhatDoesNotReduce) {
  Sweep sweep = sweep_of({Collective::all_to_all});
  sweep.ops = {all_ops(), true};
  sweep.sizes = {16};
  EXPECT_THAT(ids(expand(sweep).value()),
              ElementsAre("all_to_all/tutti.none/shm/float/none/P2.processes/none/16B/out/private/isolated"));
}

TEST(Expand, ADividedCollectiveBelowPElementsRunsOnePerBlockAndIsMerged) {
  Sweep sweep = sweep_of({Collective::all_to_all});
  sweep.ranks = {5};
  sweep.sizes = {4, 8, 20, 24, 40};
  const Expansion expansion = expand(sweep).value();
  ASSERT_EQ(expansion.cells.size(), 2U);
  EXPECT_EQ(expansion.cells[0].bytes, 20);
  EXPECT_EQ(expansion.cells[0].count, 1);
  EXPECT_EQ(expansion.cells[1].bytes, 40);
  EXPECT_EQ(expansion.cells[1].count, 2);
}

TEST(Expand, ASizeBelowOneElementRunsOneAndNothingStaysNothing) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::all_gather_v}) {
    Sweep sweep = sweep_of({collective});
    sweep.sizes = {0, 1, 3, 4, 8};
    std::vector<std::pair<std::int64_t, Count>> found;
    const Expansion expansion = expand(sweep).value();
    for (const Cell& cell : expansion.cells) found.emplace_back(cell.bytes, cell.count);
    const bool is_divided = collective != Collective::all_reduce;
    const std::vector<std::pair<std::int64_t, Count>> divided{{0, 0}, {8, 1}}, whole{{0, 0}, {4, 1}, {8, 2}};
    EXPECT_EQ(found, is_divided ? divided : whole) << to_string(collective);
  }
}

TEST(Expand, SizesAreRoundedDownToWholeElements) {
  Sweep sweep = sweep_of({Collective::all_reduce});
  sweep.sizes = {8, 9, 11, 12};
  const Expansion expansion = expand(sweep).value();
  ASSERT_EQ(expansion.cells.size(), 2U);
  EXPECT_EQ(expansion.cells[0].bytes, 8);
  EXPECT_EQ(expansion.cells[1].bytes, 12);
}

TEST(Expand, OrdersByRanksCollectiveDtypeOpRootPlacementBuffersBytes) {
  Sweep sweep = sweep_of({Collective::all_reduce, Collective::broadcast});
  sweep.ranks = {3, 2};
  sweep.dtypes = {{Dtype::i32}, false};
  sweep.ops = {{Op::max, Op::sum}, false};
  sweep.roots = {{1, 0}, false};
  sweep.ranks_as = RanksAs::threads;
  sweep.sizes = {8, 4};
  std::vector<std::string> expected;
  for (const char* p : {"P3", "P2"}) {
    for (const char* op : {"max", "sum"}) {
      for (const char* size : {"8B", "4B"}) {
        expected.push_back(std::string("all_reduce/tutti.none/local/int32/") + op + "/" + p + ".threads/none/" + size +
                           "/out/private/isolated");
      }
    }
    for (const char* root : {"root1", "root0"}) {
      for (const char* size : {"8B", "4B"}) {
        expected.push_back(std::string("broadcast/tutti.none/local/int32/none/") + p + ".threads/" + root + "/" + size +
                           "/in/private/isolated");
      }
    }
  }
  EXPECT_EQ(ids(expand(sweep).value()), expected);
}

TEST(Expand, AllRootsAreEveryRank) {
  Sweep sweep = sweep_of({Collective::broadcast});
  sweep.ranks = {1, 3};
  sweep.roots = {{}, true};
  sweep.sizes = {8};
  std::vector<int> roots;
  const Expansion expansion = expand(sweep).value();
  for (const Cell& cell : expansion.cells) roots.push_back(cell.root);
  EXPECT_THAT(roots, ElementsAre(0, 0, 1, 2));
}

TEST(Expand, ARootThatFitsSomewhereIsLeftOutElsewhereAndCounted) {
  Sweep sweep = sweep_of({Collective::broadcast, Collective::all_reduce});
  sweep.ranks = {2, 4};
  sweep.roots = {{0, 3}, false};
  const Expansion expansion = expand(sweep).value();
  EXPECT_EQ(expansion.cells.size(), 2U + 2U + 4U + 2U);
  EXPECT_THAT(expansion.left_out, ElementsAre(LeftOut{.cells = 2, .reason = "root 3 on 2 ranks"}));
}

TEST(Expand, TheFirstRootThatDoesNotFitIsP) {
  Sweep sweep = sweep_of({Collective::broadcast});
  sweep.ranks = {2, 3};
  sweep.sizes = {8};
  sweep.roots = {{2}, false};
  const Expansion expansion = expand(sweep).value();
  EXPECT_THAT(ids(expansion),
              ElementsAre("broadcast/tutti.none/shm/float/none/P3.processes/root2/8B/in/private/isolated"));
  EXPECT_THAT(expansion.left_out, ElementsAre(LeftOut{.cells = 1, .reason = "root 2 on 2 ranks"}));
}

TEST(Expand, ARootThatFitsNowhereIsAUsageError) {
  Sweep sweep = sweep_of({Collective::broadcast});
  sweep.ranks = {1, 2};
  sweep.roots = {{7}, false};
  const Status status = expand(sweep).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("root '7' fits none of the rank counts (1,2)"), HasSubstr("did you mean '1'?")));
}

bool only_integers_have_max(Dtype dtype, Op op) { return op != Op::max || dtype == Dtype::i32; }

TEST(Expand, APairFromAllThatDoesNotExistIsLeftOutAndCounted) {
  Sweep sweep = sweep_of({Collective::all_reduce});
  sweep.dtypes = {{Dtype::f32, Dtype::i32}, false};
  sweep.ops = {{Op::sum, Op::max}, true};
  const Expansion expansion = expand(sweep, only_integers_have_max).value();
  EXPECT_EQ(expansion.cells.size(), 6U);
  EXPECT_THAT(expansion.left_out, ElementsAre(LeftOut{.cells = 2, .reason = "float has no max"}));
}

TEST(Expand, APairThatIsNamedAndDoesNotExistIsAUsageError) {
  Sweep sweep = sweep_of({Collective::all_reduce});
  sweep.ops = {{Op::max}, false};
  const Status status = expand(sweep, only_integers_have_max).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(),
            "op 'max' does not exist for dtype 'float': allowed are sum prod min avg band bor bxor premul_sum");
  sweep.collectives = {Collective::broadcast};
  EXPECT_TRUE(expand(sweep, only_integers_have_max).is_ok()) << "nothing reduces, so the pair is never run";
}

TEST(Expand, BitsOfFloatsAreAUsageErrorWhereTheyAreNamedAndLeftOutOtherwise) {
  Sweep sweep = sweep_of({Collective::all_reduce});
  sweep.ops = {{Op::band}, false};
  EXPECT_EQ(expand(sweep).status().message(),
            "op 'band' does not exist for dtype 'float': allowed are sum prod min max avg premul_sum");
  sweep.dtypes = {all_dtypes(), true};
  const Expansion expansion = expand(sweep).value();
  std::set<Dtype> dtypes;
  for (const Cell& cell : expansion.cells) dtypes.insert(cell.dtype);
  EXPECT_THAT(dtypes, ElementsAre(Dtype::i8, Dtype::u8, Dtype::i32, Dtype::u32, Dtype::i64, Dtype::u64));
  ASSERT_EQ(expansion.left_out.size(), 1U);
  EXPECT_EQ(expansion.left_out[0].reason, "band exists for integers only");
  EXPECT_EQ(expansion.left_out[0].cells, static_cast<std::int64_t>(expansion.cells.size()));  // six of twelve dtypes
}

TEST(Expand, AnOpThatACollectiveDoesNotHaveIsLeftOutOrAUsageErrorWhereNoneHasIt) {
  Sweep sweep = sweep_of({Collective::all_reduce, Collective::scan});
  sweep.ops = {{Op::sum, Op::avg}, false};
  const Expansion both = expand(sweep).value();
  const auto is_of_scan = [](const Cell& cell) { return cell.collective == Collective::scan; };
  EXPECT_EQ(3 * std::ranges::count_if(both.cells, is_of_scan), std::ssize(both.cells));
  ASSERT_EQ(both.left_out.size(), 1U);
  EXPECT_EQ(both.left_out[0].reason, "scan has no avg: nothing says by what the sum over some of the ranks is divided");
  sweep.collectives = {Collective::scan, Collective::broadcast};
  EXPECT_THAT(expand(sweep).status().message(),
              AllOf(HasSubstr("op 'avg' does not exist for 'scan'"), HasSubstr("allowed are sum prod min max band")));
  EXPECT_THAT(conformance_cases(sweep).status().message(), HasSubstr("op 'avg' does not exist for 'scan'"));
  sweep.ops.is_all = true;
  EXPECT_TRUE(expand(sweep).is_ok());
}

TEST(Expand, AnAlgorithmRunsWhereItExistsAndIsCountedWhereNot) {
  Sweep sweep = sweep_of({Collective::all_reduce, Collective::barrier});
  sweep.algorithms = {"ring"};
  const Expansion expansion = expand(sweep).value();
  EXPECT_EQ(expansion.cells.size(), 2U);
  EXPECT_THAT(expansion.left_out, ElementsAre(LeftOut{.cells = 1, .reason = "barrier has no algorithm ring"}));
}

TEST(Expand, AnAlgorithmThatNoneOfTheCollectivesHasIsAUsageError) {
  Sweep sweep = sweep_of({Collective::broadcast});
  sweep.algorithms = {"ring"};
  const Status status = expand(sweep).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("unknown broadcast algorithm 'ring'"));
}

Counts file_of(std::vector<Count> numbers) {
  return {.pattern = Pattern::file, .name = "file-00000000", .numbers = std::move(numbers)};
}

TEST(Expand, CountsMultiplyVFormsOnlyAndAFileIsOneCell) {
  Sweep sweep = sweep_of({Collective::all_to_all, Collective::all_to_all_v});
  sweep.counts = {counts_of_name("equal").value(), counts_of_name("ramp").value(), file_of({1, 2, 3, 4})};
  EXPECT_THAT(
      ids(expand(sweep).value()),
      ElementsAre("all_to_all/tutti.none/shm/float/none/P2.processes/none/8B/out/private/isolated",
                  "all_to_all/tutti.none/shm/float/none/P2.processes/none/1024B/out/private/isolated",
                  "all_to_all_v/tutti.none/shm/float/none/P2.processes/none/8B/out/private/isolated",
                  "all_to_all_v/tutti.none/shm/float/none/P2.processes/none/1024B/out/private/isolated",
                  "all_to_all_v/tutti.none/shm/float/none/P2.processes/none/8B.ramp/out/private/isolated",
                  "all_to_all_v/tutti.none/shm/float/none/P2.processes/none/1024B.ramp/out/private/isolated",
                  "all_to_all_v/tutti.none/shm/float/none/P2.processes/none/28B.file-00000000/out/private/isolated"));
}

TEST(Expand, AFileThatFitsSomewhereIsLeftOutElsewhereAndCounted) {
  Sweep sweep = sweep_of({Collective::all_to_all_v});
  sweep.ranks = {2, 3, 4};
  sweep.counts = {file_of({1, 2, 3, 4})};
  sweep.placements = {{Placement::out, Placement::in}};
  const Expansion expansion = expand(sweep).value();
  EXPECT_EQ(expansion.cells.size(), 3U) << "a matrix of 2 out of place, 4 counts in both";
  EXPECT_THAT(expansion.left_out,
              ElementsAre(LeftOut{1, "in place all_to_all_v sends what it receives: the file's counts do not"},
                          LeftOut{2, "a file of 4 counts: all_to_all_v on 3 ranks needs 3 or 9"}));
}

TEST(Expand, AFileThatFitsNowhereIsAUsageError) {
  Sweep sweep = sweep_of({Collective::all_gather_v});
  sweep.counts = {file_of({1, 2, 3, 4})};
  EXPECT_THAT(expand(sweep).status().message(),
              HasSubstr("fit none of the rank counts: a file of 4 counts: all_gather_v on 2 ranks needs 2"));
}

TEST(Expand, WindowsMultiplyWhatHasOneAndPairsWhatOnePairCanPlay) {
  Sweep sweep = sweep_of({Collective::pingpong, Collective::message_rate, Collective::bandwidth, Collective::sendrecv});
  sweep.sizes = {8};
  sweep.ranks = {3};
  sweep.windows = {1, 64};
  sweep.pairs = {{Pairing{}, Pairing{.first = 0, .second = 2}}, false};
  EXPECT_THAT(ids(expand(sweep).value()),
              ElementsAre("pingpong/tutti.none/shm/float/none/P3.processes/none/8B/out/private/isolated",
                          "pingpong/tutti.none/shm/float/none/P3.processes/pair0-2/8B/out/private/isolated",
                          "message_rate/tutti.none/shm/float/none/P3.processes/none/8B.window1/out/private/isolated",
                          "message_rate/tutti.none/shm/float/none/P3.processes/none/8B.window64/out/private/isolated",
                          "bandwidth/tutti.none/shm/float/none/P3.processes/none/8B.window1/out/private/isolated",
                          "bandwidth/tutti.none/shm/float/none/P3.processes/none/8B.window64/out/private/isolated",
                          "bandwidth/tutti.none/shm/float/none/P3.processes/pair0-2/8B.window1/out/private/isolated",
                          "bandwidth/tutti.none/shm/float/none/P3.processes/pair0-2/8B.window64/out/private/isolated",
                          "sendrecv/tutti.none/shm/float/none/P3.processes/none/8B/out/private/isolated"));
}

TEST(Expand, AllPairsAreEveryTwoRanksOnce) {
  Sweep sweep = sweep_of({Collective::pingpong});
  sweep.sizes = {8};
  sweep.ranks = {1, 4};
  sweep.pairs = {{}, true};
  const auto expansion = expand(sweep);
  ASSERT_TRUE(expansion.is_ok());
  std::vector<std::string> names;
  for (const Cell& cell : expansion.value().cells) names.push_back(pair_name(cell));
  EXPECT_THAT(names, ElementsAre("0-1", "0-2", "0-3", "1-2", "1-3", "2-3"));
}

TEST(Expand, WhatNeedsAPairIsLeftOutWhereThereIsNoneAndAUsageErrorWhereThereIsNoneAnywhere) {
  Sweep sweep = sweep_of({Collective::bandwidth});
  sweep.ranks = {1, 2};
  EXPECT_THAT(expand(sweep).value().left_out, ElementsAre(LeftOut{2, "bandwidth on 1 rank, which is no pair"}));
  sweep.pairs = {{Pairing{.first = 0, .second = 1}}, false};
  EXPECT_EQ(expand(sweep).value().cells.size(), 2);
  sweep.pairs = {{Pairing{.first = 0, .second = 2}}, false};
  EXPECT_THAT(expand(sweep).status().message(),
              AllOf(HasSubstr("pair '0-2' fits none of the rank counts (1,2)"), HasSubstr("did you mean '0-1'?")));
  sweep.ranks = {1};
  sweep.pairs = Sweep().pairs;
  EXPECT_THAT(expand(sweep).status().message(), AllOf(HasSubstr("bandwidth on 1 rank"), HasSubstr("'2'")));
  sweep.collectives = {Collective::pingpong};
  EXPECT_EQ(expand(sweep).value().cells.size(), 2) << "one rank plays alone";
  sweep.pairs = {{}, true};
  EXPECT_THAT(expand(sweep).status().message(), HasSubstr("did you mean 'neighbours'?"));
}

TEST(CasesOf, ReferencesHaveNoAlgorithmAndTheOwnBackendOneCaseEach) {
  Sweep sweep = sweep_of({Collective::broadcast, Collective::all_reduce});
  sweep.backends = {"tutti", "openmpi"};
  sweep.algorithms = {"knomial", "ring", "all"};
  sweep.sizes = {8};
  const Cell cell = expand(sweep).value().cells.front();
  std::vector<std::string> systems;
  for (const Case& one : cases_of(cell, sweep)) systems.push_back(one.backend + "." + one.algorithm);
  EXPECT_THAT(systems, ElementsAre("tutti.knomial", "tutti.chain", "tutti.direct", "tutti.nested", "tutti.two_level",
                                   "openmpi.none"));
}

TEST(CasesOf, AutoStaysAuto) {
  const Sweep sweep = sweep_of({Collective::barrier});
  const std::vector<Case> cases = cases_of(expand(sweep).value().cells.front(), sweep);
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].algorithm, "auto");
}

}  // namespace
}  // namespace tutti::harness::cases

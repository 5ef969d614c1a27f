// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/limit.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Cell cell_of(Collective collective, int ranks, std::int64_t bytes, bool is_in_place = false) {
  Cell cell{.collective = collective,
            .op = is_reducing(collective) ? Op::sum : Op::none,
            .ranks = ranks,
            .ranks_as = RanksAs::threads,
            .root = is_rooted(collective) ? ranks - 1 : 0,
            .is_in_place = is_in_place};
  if (has_counts(collective)) cell.counts = {.pattern = Pattern::ramp, .name = "ramp"};
  set_bytes(cell, bytes);
  return cell;
}

std::vector<Cell> cells_with_a_limit(int ranks, std::int64_t bytes) {
  std::vector<Cell> cells;
  for (const Collective collective : every_collective()) {
    for (const bool is_in_place : {false, true}) {
      const Cell cell = cell_of(collective, ranks, bytes, is_in_place);
      if (limit_of(cell)) cells.push_back(cell);
    }
  }
  return cells;
}

TEST(LeastMovements, OfAllReduceIsOneReadOfEveryInputAndOneWriteOfEveryOutput) {
  const auto all = least_movements(cell_of(Collective::all_reduce, 3, 400));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].bytes, 400);
  EXPECT_THAT(all[0].sources, ElementsAre(Piece{0, false, 0}, Piece{1, false, 0}, Piece{2, false, 0}));
  EXPECT_THAT(all[0].destinations, ElementsAre(Piece{0, true, 0}, Piece{1, true, 0}, Piece{2, true, 0}));
}

TEST(LeastMovements, OfAllGatherReadEachInputOnce) {
  const auto all = least_movements(cell_of(Collective::all_gather, 2, 800));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_THAT(all[1].sources, ElementsAre(Piece{1, false, 0}));
  EXPECT_THAT(all[1].destinations, ElementsAre(Piece{0, true, 400}, Piece{1, true, 400}));
}

TEST(LeastMovements, OfAScanGoOnFromThePrefixThatWasWritten) {
  const auto scan = least_movements(cell_of(Collective::scan, 3, 400));
  ASSERT_THAT(scan, SizeIs(3));
  EXPECT_THAT(scan[0].sources, ElementsAre(Piece{0, false, 0}));
  EXPECT_THAT(scan[2].sources, ElementsAre(Piece{1, true, 0}, Piece{2, false, 0}));
  EXPECT_THAT(scan[2].destinations, ElementsAre(Piece{2, true, 0}));
  const auto exscan = least_movements(cell_of(Collective::exscan, 3, 400));
  ASSERT_THAT(exscan, SizeIs(2));
  EXPECT_THAT(exscan[1].sources, ElementsAre(Piece{1, true, 0}, Piece{1, false, 0}));
}

// A rank goes on only from what it has written itself, a part that fits a cache at a time.
TEST(LimitShares, OfAScanAreSlicesThatDependOnTheirOwnAlone) {
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<Movement> done;
    for (const Movement& one : share_of(cell_of(Collective::scan, 3, 100'000), rank)) {
      EXPECT_LE(one.bytes, 8192);
      for (const Piece& piece : one.sources) {
        const auto wrote_it = [&](const Movement& other) {
          return other.bytes == one.bytes && other.destinations.front() == piece;
        };
        EXPECT_TRUE(!piece.is_output || std::ranges::any_of(done, wrote_it));
      }
      done.push_back(one);
    }
    EXPECT_GT(done.size(), 3U);
  }
}

TEST(LeastMovements, OfAVFormHaveItsLengthsAndLeaveEmptyBlocksOut) {
  Cell cell = cell_of(Collective::gather_v, 3, 0);
  cell.counts = {.pattern = Pattern::file, .name = "lengths", .numbers = {5, 0, 7}};
  set_bytes(cell, 0);
  const auto all = least_movements(cell);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].bytes, 20);
  EXPECT_EQ(all[1].bytes, 28);
  EXPECT_THAT(all[1].destinations, ElementsAre(Piece{2, true, 20}));
}

TEST(LimitShares, TogetherWriteEveryOutputByteOnce) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::int64_t bytes : {4, 8, 400, 20000}) {
      for (const Cell& cell : cells_with_a_limit(ranks, bytes)) {
        std::map<std::pair<int, std::int64_t>, std::int64_t> written;  // (rank, offset) -> bytes
        for (int rank = 0; rank < ranks; ++rank) {
          for (const Movement& one : share_of(cell, rank)) {
            ASSERT_GT(one.bytes, 0);
            for (const Piece& piece : one.destinations) {
              EXPECT_TRUE(written.try_emplace({piece.rank, piece.offset}, one.bytes).second)
                  << to_string(cell.collective);
            }
          }
        }
        std::int64_t total = 0, expected = 0;
        for (auto here = written.begin(); here != written.end(); ++here) {
          total += here->second;
          const auto next = std::next(here);
          const bool is_same_buffer = next != written.end() && next->first.first == here->first.first;
          if (is_same_buffer) {
            EXPECT_LE(here->first.second + here->second, next->first.second);
          }
        }
        for (const Movement& one : least_movements(cell)) expected += one.bytes * std::ssize(one.destinations);
        EXPECT_EQ(total, expected) << to_string(cell.collective) << " P=" << ranks << " " << bytes << " bytes";
      }
    }
  }
}

TEST(LimitShares, OfARootedCollectiveAreEverybodys) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(share_of(cell_of(Collective::broadcast, 4, 4096), rank), SizeIs(1)) << rank;
    EXPECT_THAT(share_of(cell_of(Collective::gather, 4, 4096), rank), SizeIs(1)) << rank;
  }
  EXPECT_EQ(share_of(cell_of(Collective::broadcast, 4, 4096), 1)[0].bytes, 1024);
}

TEST(LimitOf, IsNotThereWhereNothingMovesOrInputsAreOverwritten) {
  EXPECT_FALSE(limit_of(cell_of(Collective::barrier, 2, 0)));
  EXPECT_FALSE(limit_of(cell_of(Collective::pingpong, 2, 64)));
  EXPECT_FALSE(limit_of(cell_of(Collective::bandwidth, 2, 64)));
  EXPECT_FALSE(limit_of(cell_of(Collective::all_to_all, 2, 64, true)));
  EXPECT_TRUE(limit_of(cell_of(Collective::all_to_all, 2, 64)));
  EXPECT_FALSE(limit_of(cell_of(Collective::exscan, 2, 64, true)));
  EXPECT_TRUE(limit_of(cell_of(Collective::scan, 2, 64, true)));
  Cell scaled = cell_of(Collective::all_reduce, 2, 64);
  scaled.op = Op::premul_sum;
  EXPECT_EQ(limit_of(scaled)->op, Op::sum);
  EXPECT_EQ(limit_of(scaled)->buffers, Buffers::shared);
}

/// Elements that are wrong after one call, on all runners together.
std::int64_t wrong_after_a_call(const Cell& cell) {
  const auto domain = local::open_domain(local::shape_for(cell.ranks)).value();
  const BoardMemory memory(cell.ranks);
  std::atomic<std::int64_t> wrong = 0;
  on_runners(memory.board(), cell.ranks, [&](Runner& runner) {
    LimitBackend backend(*domain, runner.ranks());
    const Case instance = *limit_of(cell);
    auto variant = make_limit(runner, backend,
                              {.backend = backend,
                               .memory = [](const Case&, std::size_t) { return plain_memory(); },
                               .instance = instance},
                              monotonic_ns() + 20'000'000)
                       .value();
    ASSERT_TRUE(variant.has_value());
    for (int way = 0; way < LimitBackend::kWays; ++way) {
      backend.set_stores(static_cast<LimitBackend::Stores>(way));
      variant->refill(static_cast<std::uint64_t>(77 + way));
      ASSERT_TRUE(runner.start_together().is_ok());
      RankTimes times;
      ASSERT_TRUE(variant->run(times).is_ok());
      const Damage damage = variant->verify();
      wrong += damage.wrong;
      EXPECT_EQ(damage.wrong, 0) << case_id(instance) << ": " << damage.text;
    }
  });
  return wrong;
}

TEST(Limit, DoesWhatTheCollectiveMeans) {
  for (const std::int64_t bytes : {8, 4000}) {
    for (const Cell& cell : cells_with_a_limit(3, bytes)) EXPECT_EQ(wrong_after_a_call(cell), 0);
  }
}

/// All ranks on one host, whose teams move.
TEST(Limit, OnTeamsDoesWhatTheCollectiveMeans) {
  for (const int teams : {1, 3}) {
    for (const std::int64_t bytes : {8, 40000}) {
      for (const Cell& cell : cells_with_a_limit(3, bytes)) {
        const auto domain = local::open_domain(local::shape_for(3)).value();
        const BoardMemory memory(3);
        Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = 3, .ranks = {0, 1, 2}});
        LimitBackend backend(*domain, runner.ranks(), teams);
        const Case instance = *limit_of(cell);
        auto variant = make_limit(runner, backend,
                                  {.backend = backend,
                                   .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                   .instance = instance},
                                  monotonic_ns() + 1'000'000)
                           .value();
        ASSERT_TRUE(variant.has_value());
        RankTimes times;
        variant->refill(77);
        ASSERT_TRUE(variant->run(times).is_ok());
        const Damage damage = variant->verify();
        EXPECT_EQ(damage.wrong, 0) << case_id(instance) << " on " << teams << ": " << damage.text;
        variant->refill(78);
        const Status looped = variant->run_loop(times, {.operations = cell.is_in_place ? 1 : 3});
        ASSERT_TRUE(looped.is_ok()) << looped.message();
        EXPECT_EQ(variant->verify().wrong, 0) << case_id(instance);
      }
    }
  }
}

TEST(Limit, DividesWhereTheOpIsAvg) {
  Cell cell = cell_of(Collective::all_reduce, 3, 4000);
  cell.op = Op::avg;
  EXPECT_EQ(wrong_after_a_call(cell), 0);
}

TEST(Limit, RotatesThroughAsManySetsAsTheSystemsDo) {
  Case one;
  static_cast<Cell&>(one) = cell_of(Collective::all_reduce, 1, 4000);
  const std::vector<std::byte> filler(1 << 16, std::byte{1});
  const auto domain = local::open_domain(local::shape_for(1)).value();
  const BoardMemory memory(1);
  on_runners(memory.board(), 1, [&](Runner& runner) {
    LimitBackend backend(*domain, runner.ranks());
    auto limit = make_limit(runner, backend,
                            {.backend = backend,
                             .memory = [](const Case&, std::size_t) { return plain_memory(); },
                             .instance = one,
                             .rotation = {.sets = 3, .filler_bytes = 1 << 16},
                             .filler = filler},
                            1);
    ASSERT_TRUE(limit.is_ok() && limit.value()) << limit.status().message();
    EXPECT_EQ(limit.value()->sets(), 3);
    for (int set = 0; set < 3; ++set) {
      limit.value()->next_set();
      limit.value()->refill(static_cast<std::uint64_t>(set));
      RankTimes times;
      ASSERT_TRUE(limit.value()->run(times).is_ok());
      EXPECT_EQ(limit.value()->verify().wrong, 0) << "in set " << set;
    }
  });
}

TEST(WithLimit, AddsTheLimitOfACellThatHasOne) {
  Case one;
  static_cast<Cell&>(one) = cell_of(Collective::all_reduce, 2, 4096);
  EXPECT_THAT(with_limit({one}), SizeIs(2));
  one.collective = Collective::barrier;
  EXPECT_THAT(with_limit({one}), SizeIs(1));
}

}  // namespace
}  // namespace tutti::harness::measure

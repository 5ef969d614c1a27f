// SPDX-License-Identifier: Apache-2.0
// How elements are shared out among blocks, where the blocks lie, and what a file of counts may hold.
#include "harness/cases/counts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numeric>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/sweep.h"

namespace tutti::harness::cases {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Counts named(std::string_view name) { return counts_of_name(name).value(); }

std::vector<Count> counts_of(std::string_view name, int ranks, Count elements) {
  const CellBlocks blocks({.collective = Collective::all_gather_v, .ranks = ranks}, named(name), elements);
  std::vector<Count> counts;
  for (int block = 0; block < ranks; ++block) counts.push_back(blocks.output(0, block).count);
  return counts;
}

std::string text_of(const CellBlocks& blocks, int rank, int ranks, bool is_output) {
  std::string text;
  for (int block = 0; block < ranks; ++block) {
    const Place place = is_output ? blocks.output(rank, block) : blocks.input(rank, block);
    text += fmt::format("{}+{} ", place.first, place.count);
  }
  return text;
}

TEST(Counts, OfThePatternsShareOutAllElements) {
  EXPECT_THAT(counts_of("equal", 4, 40), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(counts_of("ramp", 4, 100), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(counts_of("one-heavy", 4, 120), ElementsAre(10, 10, 90, 10));
  EXPECT_THAT(counts_of("zeros", 5, 30), ElementsAre(10, 0, 10, 0, 10));
  for (const char* name : {"ramp", "one-heavy", "zeros", "random"}) {
    for (const int ranks : {1, 2, 3, 16}) {
      for (const Count elements : {0, 1, 7, 1023}) {
        const std::vector<Count> counts = counts_of(name, ranks, elements);
        EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), Count{0}), elements) << name << " " << ranks;
        for (const Count count : counts) EXPECT_GE(count, 0);
      }
    }
  }
}

TEST(CellBlocks, FollowOneAnotherAndTheOtherBufferIsTheRanksOwn) {
  const CellBlocks blocks({.collective = Collective::scatter_v, .ranks = 4, .root = 1}, named("ramp"), 100);
  EXPECT_EQ(text_of(blocks, 1, 4, false), "0+10 10+20 30+30 60+40 ");
  EXPECT_EQ(blocks.input_elements(1), 100);
  EXPECT_EQ(blocks.input_elements(0), 0);
  EXPECT_EQ(blocks.output(3, 0), (Place{.first = 0, .count = 40}));
  EXPECT_EQ(blocks.output_elements(2), 30);
  EXPECT_EQ(blocks.largest(), 40);
  EXPECT_EQ(blocks.most_elements(), 100);
}

// Rank i sends to rank j what it gets from it.
TEST(CellBlocks, OfAllToAllAreTheSameBothWays) {
  const CellBlocks blocks({.collective = Collective::all_to_all_v, .ranks = 3}, named("ramp"), 60);
  EXPECT_EQ(text_of(blocks, 0, 3, false), "0+10 10+20 30+30 ");
  EXPECT_EQ(text_of(blocks, 1, 3, false), "0+20 20+30 50+10 ");
  EXPECT_EQ(text_of(blocks, 2, 3, true), "0+30 30+10 40+20 ");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(blocks.input_elements(rank), 60);
  EXPECT_TRUE(blocks.is_same_both_ways());
}

TEST(CellBlocks, OfAFilesMatrixAreItsRowsAndColumns) {
  const Counts matrix{.pattern = Pattern::file, .name = "file-0", .numbers = {1, 2, 3, 4}};
  const CellBlocks blocks({.collective = Collective::all_to_all_v, .ranks = 2}, matrix, 0);
  EXPECT_EQ(text_of(blocks, 0, 2, false), "0+1 1+2 ");
  EXPECT_EQ(text_of(blocks, 1, 2, false), "0+3 3+4 ");
  EXPECT_EQ(text_of(blocks, 0, 2, true), "0+1 1+3 ");
  EXPECT_EQ(text_of(blocks, 1, 2, true), "0+2 2+4 ");
  EXPECT_EQ(blocks.input_elements(1), 7);
  EXPECT_EQ(blocks.output_elements(1), 6);
  EXPECT_EQ(blocks.most_elements(), 7);
  EXPECT_FALSE(blocks.is_same_both_ways());
}

TEST(CellBlocks, RandomOnesHaveGapsAndAnotherOrderButNoOverlap) {
  bool has_other_order = false, has_empty = false;
  Count gaps = 0;
  for (const Collective form : {Collective::gather_v, Collective::all_to_all_v}) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      const CellBlocks blocks({.collective = form, .ranks = ranks}, named("random"), 1000);
      std::vector<bool> is_taken(static_cast<std::size_t>(blocks.output_elements(0)));
      for (int block = 0; block < ranks; ++block) {
        const Place place = blocks.output(0, block);
        has_empty |= place.count == 0;
        has_other_order |= block > 0 && place.first < blocks.output(0, block - 1).first;
        for (Count i = place.first; i < place.first + place.count; ++i) {
          ASSERT_FALSE(is_taken.at(static_cast<std::size_t>(i)));
          is_taken[static_cast<std::size_t>(i)] = true;
        }
      }
      gaps += std::count(is_taken.begin(), is_taken.end(), false);
      EXPECT_EQ(std::count(is_taken.begin(), is_taken.end(), true), 1000);
    }
  }
  EXPECT_TRUE(has_other_order && has_empty);
  EXPECT_GT(gaps, 0);
}

// ---- patterns that a seed draws

/// [from][to] of all_to_all_v.
std::vector<std::vector<Count>> pairs_of(std::string_view name, int ranks, Count elements) {
  const CellBlocks blocks({.collective = Collective::all_to_all_v, .ranks = ranks}, named(name), elements);
  std::vector<std::vector<Count>> pairs;
  for (int from = 0; from < ranks; ++from) {
    std::vector<Count>& row = pairs.emplace_back();
    for (int to = 0; to < ranks; ++to) {
      row.push_back(blocks.input(from, to).count);
      EXPECT_EQ(blocks.output(to, from).count, row.back()) << name << " " << from << " to " << to;
    }
  }
  return pairs;
}

std::vector<Count> all_of(const std::vector<std::vector<Count>>& pairs) {
  std::vector<Count> all;
  for (const auto& row : pairs) all.insert(all.end(), row.begin(), row.end());
  return all;
}

Count sum_of(const std::vector<Count>& counts) { return std::accumulate(counts.begin(), counts.end(), Count{0}); }

constexpr std::array kDrawn{"zipf", "rotating", "burst", "empty"};

TEST(DrawnCounts, AreInEachRowOnAverageWhatWasAskedFor) {
  for (const char* const name : kDrawn) {
    for (const int ranks : {1, 2, 3, 5, 8, 16}) {
      for (const Count elements : {0, 1, 7, 1023, 100000}) {
        EXPECT_EQ(sum_of(all_of(pairs_of(name, ranks, elements))), elements * ranks) << name << " " << ranks;
        EXPECT_EQ(sum_of(counts_of(name, ranks, elements)), elements) << name << " " << ranks;
      }
    }
  }
}

TEST(DrawnCounts, OfZipfFallWithOnePerRankOfPopularityFromEveryRank) {
  const auto pairs = pairs_of("zipf", 4, 25000);
  for (const auto& row : pairs) EXPECT_EQ(row, pairs.front());
  std::vector<Count> row = pairs.front();
  std::ranges::sort(row, std::greater());
  for (std::size_t k = 0; k < row.size(); ++k) {
    EXPECT_NEAR(static_cast<double>(row[k]), 12000.0 / static_cast<double>(k + 1), 2) << k;
  }
}

TEST(DrawnCounts, OfRotatingHaveOneHotPeerWhichIsTheNextOneForTwiceTheElements) {
  const auto hot = [](Count elements) {
    const std::vector<Count> row = pairs_of("rotating", 5, elements).front();
    const auto most = std::ranges::max_element(row);
    EXPECT_NEAR(static_cast<double>(*most), 0.75 * static_cast<double>(elements), 2);
    return static_cast<int>(most - row.begin());
  };
  for (Count elements = 64; elements < 5000; elements *= 2) EXPECT_EQ(hot(2 * elements), (hot(elements) + 1) % 5);
}

TEST(DrawnCounts, OfBurstAreFewPairsManyTimesTheMean) {
  const std::vector<Count> all = all_of(pairs_of("burst", 8, 80000));
  const auto is_burst = [](Count count) { return count > 5 * 10000; };
  EXPECT_EQ(std::ranges::count_if(all, is_burst), 8);
  for (const Count count : all) EXPECT_TRUE(is_burst(count) || count < 10000 / 5) << count;
}

TEST(DrawnCounts, OfEmptyAreMostlyNothingAndSomeRanksSendNothingAtAll) {
  for (const int ranks : {2, 4, 8}) {
    const auto pairs = pairs_of("empty", ranks, 1000);
    const auto is_silent = [](const std::vector<Count>& row) { return sum_of(row) == 0; };
    EXPECT_EQ(std::ranges::count_if(pairs, is_silent), std::max(1, ranks / 4));
    const std::vector<Count> all = all_of(pairs);
    EXPECT_GE(std::ranges::count(all, 0), static_cast<std::ptrdiff_t>(all.size()) * 3 / 4);
  }
}

TEST(DrawnCounts, AreTheSeedsAndTheNameSaysWhich) {
  for (const char* const name : kDrawn) {
    bool differs = false;
    for (const int seed : {2, 3, 4, 5, 6, 7}) {
      const std::string with_seed = fmt::format("{}-seed{}", name, seed);
      EXPECT_EQ(counts_of_name(with_seed).value().name, with_seed);
      differs |= pairs_of(with_seed, 4, 1000) != pairs_of(name, 4, 1000);
    }
    EXPECT_TRUE(differs) << name;
    EXPECT_EQ(pairs_of(fmt::format("{}-seed1", name), 4, 1000), pairs_of(name, 4, 1000));
    EXPECT_EQ(with_seed(parse_counts(name).value(), 7).name, fmt::format("{}-seed7", name));
    EXPECT_EQ(with_seed(parse_counts(fmt::format("{}-seed3", name)).value(), 7).seed, 3U);
  }
  EXPECT_EQ(with_seed(named("ramp"), 7), named("ramp"));
  EXPECT_THAT(counts_of_name("ramp-seed7").status().message(), HasSubstr("did you mean 'ramp'?"));
  EXPECT_THAT(counts_of_name("zipf-seedx").status().message(), HasSubstr("a seed"));
}

TEST(DrawnCounts, OfEachPairOfRanksAreOnSoManyRanksOnly) {
  EXPECT_TRUE(fits(named("zipf"), {.collective = Collective::all_to_all_v, .ranks = kMostDrawnRanks}));
  const Problem large{.collective = Collective::all_to_all_v, .ranks = kMostDrawnRanks + 1};
  EXPECT_FALSE(fits(named("zipf"), large));
  EXPECT_EQ(misfit(named("zipf"), large),
            "counts 'zipf' are one for each pair of ranks: all_to_all_v has them on 1 to 256 ranks");
  EXPECT_TRUE(fits(named("zipf"), {.collective = Collective::all_gather_v, .ranks = 1000}));
}

TEST(CellBlocks, AreTablesInBytes) {
  const CellBlocks blocks({.collective = Collective::all_gather_v, .ranks = 3}, named("ramp"), 6);
  const BlockTable table = blocks.table(1, 8);
  EXPECT_THAT(table.shared, ElementsAre(8, 16, 24));
  EXPECT_THAT(table.output, ElementsAre(Block{0, 8}, Block{8, 16}, Block{24, 24}));
  EXPECT_THAT(table.input, ElementsAre(Block{0, 16}));
}

// ---- the option

class CountsFile : public testing::Test {
 protected:
  Result<Counts> parse(const std::string& content) {
    std::ofstream(path_) << content;
    return parse_counts(path_);
  }
  ~CountsFile() override { std::remove(path_.c_str()); }
  const std::string path_ = testing::TempDir() + fmt::format("tutti_counts_{}.txt", getpid());
};

TEST_F(CountsFile, HoldsNumbersBetweenBlanks) {
  const Counts counts = parse("3 0\n\t5\n").value();
  EXPECT_EQ(counts.pattern, Pattern::file);
  EXPECT_THAT(counts.numbers, ElementsAre(3, 0, 5));
  EXPECT_THAT(counts.name, testing::MatchesRegex("file-[0-9a-f]{8}"));
  EXPECT_EQ(counts_of_name(counts.name).value().name, counts.name);
  EXPECT_NE(parse("3 0 6").value().name, counts.name);
  EXPECT_TRUE(fits(counts, {.collective = Collective::gather_v, .ranks = 3}));
  EXPECT_FALSE(fits(counts, {.collective = Collective::gather_v, .ranks = 2}));
}

TEST_F(CountsFile, OfPTimesPIsForAllToAllOnly) {
  const Counts matrix = parse("1 2\n3 4\n").value();
  EXPECT_TRUE(fits(matrix, {.collective = Collective::all_to_all_v, .ranks = 2}));
  EXPECT_FALSE(fits(matrix, {.collective = Collective::gather_v, .ranks = 2}));
  EXPECT_TRUE(fits(matrix, {.collective = Collective::gather_v, .ranks = 4}));
}

TEST_F(CountsFile, NamesTheLineThatIsWrong) {
  EXPECT_THAT(parse("1 2\n3 four\n").status().message(), AllOf(HasSubstr("line 2: 'four' is not a count")));
  EXPECT_THAT(parse("1\n\n-2\n").status().message(), HasSubstr("line 3: '-2' is not a count"));
  EXPECT_THAT(parse("1.5").status().message(), HasSubstr("line 1: '1.5' is not a count"));
  EXPECT_THAT(parse("274877906945").status().message(), HasSubstr("whole numbers from 0 to 274877906944"));
  EXPECT_THAT(parse(" \n").status().message(), HasSubstr("there are none in the file"));
}

TEST_F(CountsFile, WithACommaInItsNameStandsAlone) {
  const std::string path = testing::TempDir() + fmt::format("tutti_counts_{},ramp", getpid());
  std::ofstream(path) << "1 2";
  const auto list = parse_counts_list(path);
  std::remove(path.c_str());
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  ASSERT_EQ(list.value().size(), 1U);
  EXPECT_THAT(list.value().front().numbers, ElementsAre(1, 2));
  EXPECT_EQ(parse_counts_list("ramp,zeros").value().size(), 2U);
}

TEST(ParseCounts, OfAPatternIsItsName) {
  EXPECT_EQ(parse_counts("one-heavy").value().pattern, Pattern::one_heavy);
  EXPECT_THAT(parse_counts("rampp").status().message(), AllOf(HasSubstr("'rampp'"), HasSubstr("did you mean 'ramp'?")));
  EXPECT_THAT(counts_of_name("file-12").status().message(), HasSubstr("file-12"));
}

}  // namespace
}  // namespace tutti::harness::cases

// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/meaning.h"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::meaning {
namespace {

std::string number_of(Blocks blocks) {
  return blocks == Blocks::one ? "n" : blocks == Blocks::ranks ? "P x n" : "W x n";
}

/// Where a buffer is, in the words of README.md.
std::string place_of(Who who, Pairs pairs) {
  const bool is_halves = pairs == Pairs::halves;
  switch (who) {
    case Who::nobody:
    case Who::everyone:
    case Who::players:
      return "";
    case Who::root:
      return " at the root, none elsewhere";
    case Who::all_but_first:
      return ", none at rank 0";
    case Who::beginners:
      return is_halves ? " at ranks below P/2, none at others" : " at even ranks, none at odd ones";
    case Who::answerers:
      return is_halves ? " from P/2 on, none at others" : " at odd ranks, none at even ones";
  }
  return "?";
}

std::string words_for(const Buffer& buffer, Pairs pairs) {
  return buffer.who == Who::nobody ? "none" : number_of(buffer.blocks) + place_of(buffer.who, pairs);
}

std::string words_for(Bus bus) {
  switch (bus) {
    case Bus::none:
      return "no bytes";
    case Bus::one:
      return "1";
    case Bus::two:
      return "2";
    case Bus::others:
      return "(P-1)/P";
    case Bus::twice_others:
      return "2(P-1)/P";
    case Bus::pairs:
      return "P/2, rounded down";
  }
  return "?";
}

TEST(MeaningTable, IsTheOneOfTheReadme) {
  std::ifstream readme(TUTTI_SOURCE_DIR "/impl/collective/README.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(readme, line);) lines.push_back(line);
  for (const Row& row : kRows) {
    if (row.base != row.id) continue;
    const Rule& rule = row.rule;
    const std::string begin = fmt::format("| `{}` | {} | {} | ", row.name, words_for(rule.input, rule.pairs),
                                          words_for(rule.output, rule.pairs));
    const std::string end = fmt::format(" | {} |", words_for(rule.bus));
    EXPECT_THAT(lines, testing::Contains(testing::AllOf(testing::StartsWith(begin), testing::EndsWith(end))));
  }
}

TEST(MeaningTable, HasNoRuleOfAVFormButThatOfItsBase) {
  for (const Row& row : kRows) {
    if (row.base == row.id) continue;
    EXPECT_EQ(row.rule.from.giver, Giver::nobody) << row.name;
    const Problem with_counts{.collective = row.id, .ranks = 5, .root = 3};
    const Problem base{.collective = row.base, .ranks = 5, .root = 3};
    EXPECT_TRUE(has_counts(row.id));
    EXPECT_EQ(is_reducing(row.id), is_reducing(row.base));
    EXPECT_EQ(is_rooted(row.id), is_rooted(row.base));
    EXPECT_EQ(has_placement_at_root_only(row.id), has_placement_at_root_only(row.base));
    EXPECT_EQ(divides_both(row.id), row.base == Collective::all_to_all);
    EXPECT_EQ(bus_factor(with_counts), bus_factor(base));
    for (int rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(input_blocks(with_counts, rank), input_blocks(base, rank));
      EXPECT_EQ(output_blocks(with_counts, rank), output_blocks(base, rank));
      EXPECT_EQ(in_place_block(with_counts, rank), in_place_block(base, rank));
      EXPECT_EQ(origin_of(with_counts, rank, 0), origin_of(base, rank, 0));
    }
  }
}

}  // namespace
}  // namespace tutti::meaning

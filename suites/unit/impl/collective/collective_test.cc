// SPDX-License-Identifier: Apache-2.0
// The numbers that are derived from a collective's meaning.
#include "impl/collective/collective.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(BufferBytes, IsOneBlockOrOnePerRank) {
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_reduce, .ranks = 5}, 10, 4), 40);
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_to_all, .ranks = 5}, 10, 4), 200);
  EXPECT_EQ(buffer_bytes({.collective = Collective::barrier, .ranks = 5}, 10, 4), 0);
}

TEST(BufferBytes, OfMoreThanFitStayAtTheMost) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Problem all_to_all{.collective = Collective::all_to_all, .ranks = 4};
  EXPECT_EQ(buffer_bytes({.collective = Collective::all_reduce, .ranks = 4}, Count{1} << 62U, 4), kMost);
  EXPECT_EQ(buffer_bytes(all_to_all, Count{1} << 59U, 4), kMost);
  EXPECT_EQ(buffer_bytes(all_to_all, Count{1} << 58U, 4), Count{1} << 62U);
}

TEST(BufferBytes, IsTheLargerOfInputAndOutputAtAnyRank) {
  for (const Collective collective : every_collective()) {
    if (!has_data(collective)) continue;
    const Problem problem{.collective = collective, .ranks = 5, .root = 3};
    int most = 0;
    for (int rank = 0; rank < 5; ++rank) {
      most = std::max({most, input_blocks(problem, rank), output_blocks(problem, rank)});
    }
    EXPECT_EQ(buffer_bytes(problem, 10, 4), most * 40) << to_string(collective);
  }
}

TEST(Collectives, AreInTheOrderInWhichAllRunsThem) {
  std::vector<std::string_view> names;
  for (const Collective collective : all_collectives()) names.push_back(to_string(collective));
  EXPECT_EQ(names, (std::vector<std::string_view>{"broadcast", "reduce", "all_reduce", "gather", "all_gather",
                                                  "scatter", "reduce_scatter", "all_to_all", "barrier", "sendrecv"}));
  EXPECT_EQ(every_collective().size(), names.size() + 11);
  EXPECT_EQ(every_collective()[names.size()], Collective::pingpong);
  EXPECT_EQ(every_collective().back(), Collective::exscan);
  EXPECT_EQ(every_collective().data(), all_collectives().data());
  for (const Collective collective : every_collective()) {
    EXPECT_EQ(parse_collective(to_string(collective)).value(), collective);
  }
}

Problem on_four(Collective collective) { return {.collective = collective, .ranks = 4, .root = 2}; }

TEST(Origin, OfABlockIsTheInputBlockItIsMadeOf) {
  EXPECT_EQ(origin_of(on_four(Collective::gather), 2, 3), from_one(3, 0));
  EXPECT_EQ(origin_of(on_four(Collective::scatter), 1, 0), from_one(2, 1));
  EXPECT_EQ(origin_of(on_four(Collective::reduce_scatter), 3, 0), (Origin{.first = 0, .last = 3, .block = 3}));
  EXPECT_EQ(origin_of(on_four(Collective::sendrecv), 3, 0), from_one(2, 0));
  EXPECT_EQ(origin_of(on_four(Collective::sendrecv), 0, 0), from_one(3, 0));
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(origin_of(on_four(Collective::pingpong), rank, 0), from_one(rank / 2 * 2, 0));
  }
}

TEST(Origin, OfAScanAreTheRanksUpToOnesOwnAndOfAnExscanThoseBefore) {
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(origin_of(on_four(Collective::scan), rank, 0), (Origin{.first = 0, .last = rank, .block = 0}));
    EXPECT_EQ(output_blocks(on_four(Collective::scan), rank), 1);
    EXPECT_EQ(output_blocks(on_four(Collective::exscan), rank), rank == 0 ? 0 : 1);
    if (rank == 0) continue;
    EXPECT_EQ(origin_of(on_four(Collective::exscan), rank, 0), (Origin{.first = 0, .last = rank - 1, .block = 0}));
  }
}

TEST(Ops, OfScanAndExscanAreAllButAvg) {
  for (const Collective collective : every_collective()) {
    for (const Op op : all_ops()) EXPECT_EQ(takes_op(collective, op), op != Op::avg || !is_prefix(collective));
    EXPECT_EQ(is_prefix(collective), collective == Collective::scan || collective == Collective::exscan);
  }
}

TEST(Blocks, OfPingpongAreGivenByTheEvenRanksAlone) {
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(input_blocks(on_four(Collective::pingpong), rank), 1 - rank % 2);
    EXPECT_EQ(output_blocks(on_four(Collective::pingpong), rank), 1);
  }
}

Problem window_on(Collective collective, int ranks) {
  return {.collective = collective, .ranks = ranks, .pairing = {.window = 7}};
}

TEST(Pairs, AreNeighboursAndInMessageRateTheHalves) {
  for (const Collective collective : {Collective::pingpong, Collective::bandwidth, Collective::bibandwidth}) {
    std::vector<int> partners;
    for (int rank = 0; rank < 5; ++rank) partners.push_back(partner_of(window_on(collective, 5), rank));
    EXPECT_EQ(partners, (std::vector{1, 0, 3, 2, -1})) << to_string(collective);
  }
  std::vector<int> partners;
  for (int rank = 0; rank < 5; ++rank) partners.push_back(partner_of(window_on(Collective::message_rate, 5), rank));
  EXPECT_EQ(partners, (std::vector{2, 3, 0, 1, -1}));
}

TEST(Pairs, OneOfThemLeavesAllOthersWithoutAPartnerAndWithoutBlocks) {
  for (const Collective collective : {Collective::pingpong, Collective::bandwidth, Collective::bibandwidth}) {
    const Problem problem{.collective = collective, .ranks = 5, .pairing = {.first = 1, .second = 4}};
    EXPECT_EQ(partner_of(problem, 1), 4);
    EXPECT_EQ(partner_of(problem, 4), 1);
    EXPECT_EQ(origin_of(problem, 4, 0), from_one(1, 0)) << to_string(collective);
    EXPECT_EQ(input_blocks(problem, 1), 1) << to_string(collective);
    EXPECT_EQ(output_blocks(problem, 4), 1) << to_string(collective);
    for (const int idle : {0, 2, 3}) {
      EXPECT_EQ(partner_of(problem, idle), -1);
      EXPECT_EQ(input_blocks(problem, idle) + output_blocks(problem, idle), 0) << to_string(collective);
    }
  }
}

TEST(Windows, AreABlockForEachMessageFromTheLowerRankOrFromBoth) {
  for (const Collective collective : {Collective::bandwidth, Collective::message_rate}) {
    EXPECT_EQ(input_blocks(window_on(collective, 2), 0), 7);
    EXPECT_EQ(output_blocks(window_on(collective, 2), 0), 0);
    EXPECT_EQ(input_blocks(window_on(collective, 2), 1), 0);
    EXPECT_EQ(output_blocks(window_on(collective, 2), 1), 7);
    EXPECT_EQ(origin_of(window_on(collective, 2), 1, 6), from_one(0, 6));
  }
  for (const int rank : {0, 1}) {
    EXPECT_EQ(input_blocks(window_on(Collective::bibandwidth, 2), rank), 7);
    EXPECT_EQ(output_blocks(window_on(Collective::bibandwidth, 2), rank), 7);
    EXPECT_EQ(origin_of(window_on(Collective::bibandwidth, 2), rank, 3), from_one(1 - rank, 3));
  }
}

TEST(Windows, CountTheMessagesOfAllPairsInBothDirections) {
  EXPECT_EQ(messages_of(window_on(Collective::bandwidth, 5)), 14);
  EXPECT_EQ(messages_of(window_on(Collective::bibandwidth, 5)), 28);
  EXPECT_EQ(messages_of(window_on(Collective::message_rate, 5)), 14);
  EXPECT_EQ(
      messages_of({.collective = Collective::bandwidth, .ranks = 5, .pairing = {.window = 7, .first = 0, .second = 4}}),
      7);
  EXPECT_EQ(messages_of(on_four(Collective::pingpong)), 0);
  EXPECT_EQ(bus_factor(window_on(Collective::bandwidth, 4)), 1.0);
  EXPECT_EQ(bus_factor(window_on(Collective::bibandwidth, 4)), 2.0) << "as many bytes in both directions";
  EXPECT_EQ(bus_factor(window_on(Collective::message_rate, 7)), 3.0) << "three pairs at once";
}

TEST(InPlace, TheSmallerBufferIsABlockOfTheLarger) {
  EXPECT_EQ(in_place_block(on_four(Collective::all_gather), 3), 3);
  EXPECT_EQ(in_place_block(on_four(Collective::reduce_scatter), 3), -3);
  EXPECT_EQ(in_place_block(on_four(Collective::gather), 2), 2);
  EXPECT_EQ(in_place_block(on_four(Collective::scatter), 2), -2);
  for (const Collective same :
       {Collective::broadcast, Collective::reduce, Collective::all_reduce, Collective::all_to_all})
    EXPECT_EQ(in_place_block(on_four(same), 2), 0) << to_string(same);
  for (const Collective collective : every_collective()) {
    for (int rank = 0; rank < 4; ++rank) {
      const Problem problem = on_four(collective);
      const int in = input_blocks(problem, rank), out = output_blocks(problem, rank);
      if (in == 0 || out == 0) {
        EXPECT_EQ(in_place_block(problem, rank), 0);
        continue;
      }
      EXPECT_LE(std::abs(in_place_block(problem, rank)) + std::min(in, out), std::max(in, out));
    }
  }
}

TEST(InPlace, IsSeenByTheAddresses) {
  const float buffer[8] = {};
  const Problem all_gather = on_four(Collective::all_gather);
  EXPECT_TRUE(lies_in_place(all_gather, 3, buffer + 6, buffer, 8));
  EXPECT_FALSE(lies_in_place(all_gather, 3, buffer, buffer, 8));
  EXPECT_TRUE(lies_in_place(on_four(Collective::reduce_scatter), 3, buffer, buffer + 6, 8));
  EXPECT_FALSE(lies_in_place(on_four(Collective::reduce_scatter), 3, buffer + 6, buffer, 8));
}

TEST(VForms, AreNamedButNotOfAllAndMeanWhatTheirBaseMeans) {
  std::vector<std::string_view> names;
  for (const Collective collective : every_collective()) {
    EXPECT_EQ(parse_collective(to_string(collective)).value(), collective);
    if (!has_counts(collective)) continue;
    names.push_back(to_string(collective));
    const Collective base = base_of(collective);
    EXPECT_EQ(std::string(to_string(base)) + "_v", to_string(collective));
    EXPECT_EQ(is_reducing(collective), is_reducing(base));
    EXPECT_EQ(is_rooted(collective), is_rooted(base));
    EXPECT_TRUE(is_divided(collective) && has_data(collective));
    EXPECT_EQ(bus_factor(on_four(collective)), bus_factor(on_four(base)));
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(input_blocks(on_four(collective), rank), input_blocks(on_four(base), rank));
      EXPECT_EQ(output_blocks(on_four(collective), rank), output_blocks(on_four(base), rank));
      EXPECT_EQ(in_place_block(on_four(collective), rank), in_place_block(on_four(base), rank));
      if (output_blocks(on_four(base), rank) == 0) continue;
      const Origin origin = origin_of(on_four(collective), rank, 0), of_base = origin_of(on_four(base), rank, 0);
      EXPECT_EQ(origin, of_base);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"gather_v", "all_gather_v", "scatter_v", "reduce_scatter_v",
                                                  "all_to_all_v"}));
  for (const Collective collective : all_collectives()) EXPECT_FALSE(has_counts(collective));
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_EQ(bus_factor(on_four(Collective::all_reduce)), 1.5);
  for (const Collective whole : {Collective::broadcast, Collective::reduce, Collective::sendrecv,
                                 Collective::scan, Collective::exscan}) {
    EXPECT_EQ(bus_factor(on_four(whole)), 1.0);
  }
  EXPECT_EQ(bus_factor(on_four(Collective::pingpong)), 2.0) << "the bytes cross twice";
  for (const Collective divided : {Collective::gather, Collective::all_gather, Collective::scatter,
                                   Collective::reduce_scatter, Collective::all_to_all}) {
    EXPECT_TRUE(is_divided(divided));
    EXPECT_EQ(bus_factor(on_four(divided)), 0.75);
  }
}

}  // namespace
}  // namespace tutti

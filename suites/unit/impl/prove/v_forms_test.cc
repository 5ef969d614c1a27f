// SPDX-License-Identifier: Apache-2.0
// The algorithms that take counts hold for blocks of any lengths, order and gaps, in and out of place. What is wrong in
// a v form's plans or between its ranks' blocks is found.
#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

#include "suites/unit/impl/prove/programs.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Numbers = std::vector<Count>;

struct Shares {
  const char* name;
  Count (*count)(int block, int ranks);
};
const Shares kShares[] = {{"ramp", [](int block, int) { return Count{5} * block; }},
                          {"zeros", [](int block, int) { return Count{block % 2 == 0 ? 0 : 37}; }},
                          {"one heavy", [](int block, int ranks) { return Count{block == ranks / 2 ? 300 : 1}; }},
                          {"all empty", [](int, int) { return Count{0}; }}};

/// Displacements in a random order, with gaps of up to 20 elements; dense and in order for `gaps == 0`.
Numbers places_of(const Numbers& counts, unsigned gaps) {
  std::mt19937 draw(gaps);
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (gaps > 0) std::shuffle(order.begin(), order.end(), draw);
  Numbers displacements(counts.size());
  Count next = 0;
  for (const std::size_t block : order) {
    if (gaps > 0) next += static_cast<Count>(draw() % 21);
    displacements[block] = next;
    next += counts[block];
  }
  return displacements;
}

/// All ranks' blocks: block b has count(b), and rank i of all_to_all_v sends count(i + j) to rank j.
std::vector<BlockTable> tables_of(const Problem& problem, Count (*count)(int, int), unsigned gaps) {
  const bool has_own = problem.collective == Collective::all_to_all;
  std::vector<BlockTable> tables;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    Numbers counts;
    for (int block = 0; block < problem.ranks; ++block) {
      counts.push_back(count((has_own ? rank + block : block) % problem.ranks, problem.ranks));
    }
    const Numbers displacements = places_of(counts, gaps == 0 ? 0 : gaps + static_cast<unsigned>(rank));
    const Division division{.counts = counts, .displacements = displacements};
    const auto table = has_own ? blocks_of(problem, division, division, 4) : blocks_of(problem, rank, division, 4);
    EXPECT_TRUE(table.is_ok()) << table.status().message();
    tables.push_back(table.value());
  }
  return tables;
}

BindRequest v_request(const Schedule& schedule, bool is_in_place = false) {
  BindRequest request = request_for(schedule, Buffers::private_, is_in_place);
  request.resources.slots = std::max(1, schedule.least_slots(1));
  return request;
}

std::string findings_of(const Schedule& schedule, std::span<const BlockTable> tables, bool is_in_place = false) {
  const Result<Proof> proof = prove(schedule, v_request(schedule, is_in_place), tables);
  if (!proof.is_ok()) return std::string(proof.status().message());
  std::string text;
  for (const Finding& finding : proof.value().findings) text += to_string(finding) + "\n";
  return text;
}

TEST(ProveV, EveryAlgorithmThatTakesCountsHoldsForAnyBlocks) {
  int algorithms = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->takes_counts) continue;
    ++algorithms;
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
      for (const int root : is_rooted(algorithm->collective) ? std::vector{0, ranks - 1} : std::vector{0}) {
        const Problem problem{.collective = algorithm->collective, .ranks = ranks, .root = root};
        const Schedule schedule = schedule_of(*algorithm, problem);
        for (const Shares& shares : kShares) {
          for (const unsigned gaps : {0U, 100U}) {
            const std::vector<BlockTable> tables = tables_of(problem, shares.count, gaps);
            for (const bool is_in_place : {false, true}) {
              ASSERT_EQ(findings_of(schedule, tables, is_in_place), "")
                  << to_string(algorithm->collective) << " " << algorithm->name << " on " << ranks << ", root " << root
                  << ", " << shares.name << ", gaps " << gaps << ", in place " << is_in_place;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(algorithms, 0);
}

/// all_to_all_v on two ranks, every block of 5 floats, with gaps of 3 before each.
class TwoRanks : public testing::Test {
 protected:
  TwoRanks() {
    request_.keep_exposures = true;
    const Numbers counts{5, 5}, displacements{3, 11};
    const Division division{.counts = counts, .displacements = displacements};
    for (request_.rank = 0; request_.rank < 2; ++request_.rank) {
      tables_.push_back(blocks_of(schedule_.problem, division, division, 4).value());
      request_.blocks = &tables_.back();
      plans_.push_back(bind(schedule_, request_).value().plan(0));
    }
  }
  std::string findings() const {
    std::string text;
    for (const Finding& finding : prove_plans({.schedule = &schedule_,
                                  .plans = plans_,
                                  .slots = 1,
                                  .slot_bytes = request_.resources.slot_bytes,
                                  .blocks = tables_})
                                      .findings) {
      text += to_string(finding) + "\n";
    }
    return text;
  }
  /// The plan of rank 0 with its operands changed.
  void change(const std::function<void(std::vector<PlanOperand>&)>& apply) {
    const Plan& plan = plans_[0];
    std::vector<PlanOperand> operands(plan.operands().begin(), plan.operands().end());
    apply(operands);
    plans_[0] = Plan(plan.header(), plan.ops(), operands, plan.exposures());
  }

  Schedule schedule_ = schedule_for(Collective::all_to_all, "pairwise", 2);
  BindRequest request_ = v_request(schedule_);
  std::vector<BlockTable> tables_;
  std::vector<Plan> plans_;
};

TEST_F(TwoRanks, WriteIntoAGapIsOutOfBounds) {
  EXPECT_EQ(findings(), "");
  change([](std::vector<PlanOperand>& operands) {
    for (PlanOperand& operand : operands) {
      if (operand.space == Space::output) operand.offset -= 4;
    }
  });
  EXPECT_THAT(findings(), AllOf(HasSubstr("writes output bytes [8, 28) of rank 0, out of bounds"),
                                HasSubstr("output bytes [12, 32) (block 0) are never written")));
}

TEST_F(TwoRanks, ReadFromAGapIsOutOfBounds) {
  change([](std::vector<PlanOperand>& operands) {
    for (PlanOperand& operand : operands) {
      if (operand.space == Space::input) operand.offset += 4;
    }
  });
  EXPECT_THAT(findings(), HasSubstr("reads input bytes [16, 36) of rank 0, out of bounds"));
}

TEST_F(TwoRanks, BytesFromAnotherPlaceOfTheRightRankAreFound) {
  change([](std::vector<PlanOperand>& operands) {
    for (PlanOperand& operand : operands) {
      if (operand.space == Space::input) operand.offset = operand.offset == 12 ? 44 : 12;
    }
  });
  EXPECT_THAT(findings(),
              AllOf(HasSubstr("output bytes [12, 32) (block 0) "), HasSubstr("hold bytes [44, 64) of rank 0's input")));
}

TEST(ProveV, TwoEndsOfOnePairMeanTheSameLength) {
  const Problem problem{.collective = Collective::all_to_all, .ranks = 2};
  std::vector<BlockTable> tables = tables_of(
      problem, [](int, int) { return Count{8}; }, 0);
  const Numbers eight{8, 8}, nine{9, 8};
  tables[1] = blocks_of(problem, {.counts = eight}, {.counts = nine}, 4).value();
  EXPECT_THAT(findings_of(schedule_for(Collective::all_to_all, "pairwise", 2), tables),
              HasSubstr("receives the last 36 bytes of a message from rank 0, which sends the last 32 in its step"));
}

// A rank of all_to_all_v knows its own blocks only: what it proves with is a call that may be made.
TEST(ProveV, BlocksMadeUpAroundARanksOwnAreThoseOfOneCall) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->takes_counts) continue;
    for (const int ranks : {1, 2, 3, 5, 8}) {
      const Problem problem{.collective = algorithm->collective, .ranks = ranks, .root = ranks - 1};
      const Schedule schedule = schedule_of(*algorithm, problem);
      const std::vector<BlockTable> whole = tables_of(problem, kShares[0].count, 7);
      for (const int rank : {0, ranks - 1}) {
        const BlockTable& mine = whole[static_cast<std::size_t>(rank)];
        const std::vector<BlockTable> around = blocks_around(problem, rank, mine);
        ASSERT_EQ(around.size(), whole.size());
        EXPECT_EQ(around[static_cast<std::size_t>(rank)], mine);
        EXPECT_EQ(findings_of(schedule, around), "") << algorithm->name << " on " << ranks;
        EXPECT_EQ(findings_of(schedule, around, true), "") << algorithm->name << " on " << ranks << ", in place";
      }
    }
  }
}

// Out of place a rank may get more from a peer than it gives.
TEST(ProveV, BlocksMadeUpAroundAnUnevenExchangeAreThoseOfOneCall) {
  const Problem problem{.collective = Collective::all_to_all, .ranks = 4};
  const Numbers send{1, 20, 0, 7}, receive{1, 0, 40, 3};
  const BlockTable mine = blocks_of(problem, {.counts = send}, {.counts = receive}, 4).value();
  EXPECT_EQ(findings_of(schedule_for(Collective::all_to_all, "pairwise", 4), blocks_around(problem, 0, mine)), "");
}

}  // namespace
}  // namespace tutti

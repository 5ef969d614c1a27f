// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/pretend.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace tutti::harness::accept {
namespace {

const Noise kStill{.measurement = 0, .nodes = 0, .links = 0, .outliers = 0};

Outcome one_of(PretendedCrew& crew, const Transfer& transfer, Measure measure = Measure::bandwidth) {
  return crew.play({{transfer.sender, transfer.receiver}}, {{.measure = measure}}).front().front();
}
Outcome one_of(PretendedCrew&& crew, const Transfer& transfer) { return one_of(crew, transfer); }

/// How much slower `transfer` is with this fault than without: 0.2 for 20 %. Nothing is random. Leaves are 0-1, 2-3.
double loss_with(const Fault& fault, const Transfer& transfer) {
  PretendedCluster cluster{.nodes = 4, .leaf_size = 2, .noise = kStill, .faults = {}};
  const double before = one_of(PretendedCrew(cluster), transfer).log_speed;
  cluster.faults = {fault};
  const Outcome after = one_of(PretendedCrew(cluster), transfer);
  EXPECT_EQ(after.ending, Ending::measured);
  return -std::expm1(after.log_speed - before);
}

Ending ending_with(const Fault& fault, const Transfer& transfer) {
  return one_of(PretendedCrew({.nodes = 4, .leaf_size = 2, .noise = {}, .faults = {fault}}), transfer).ending;
}

TEST(PretendedCrew, AFaultSlowsItsPartInItsDirectionsOnly) {
  const double none = 1e-12;
  const auto share = [](Trouble trouble, Transfer transfer) {
    return loss_with({.trouble = trouble, .first = 1, .second = 2, .share = 0.2}, transfer);
  };
  struct Row {
    Trouble trouble;
    bool from_one, to_one, one_to_two, two_to_one;  // 1 -> 0, 0 -> 1, 1 -> 2, 2 -> 1
  };
  for (const Row& row : {Row{Trouble::nic, true, true, true, true}, Row{Trouble::nic_out, true, false, true, false},
                         Row{Trouble::nic_in, false, true, false, true}, Row{Trouble::link, false, false, true, true},
                         Row{Trouble::link_out, false, false, true, false},
                         Row{Trouble::uplink, false, false, true, true},  // of leaf 1: nodes 2 and 3
                         Row{Trouble::uplink_out, false, false, false, true}}) {
    EXPECT_NEAR(share(row.trouble, {1, 0}), row.from_one ? 0.2 : 0, none) << static_cast<int>(row.trouble);
    EXPECT_NEAR(share(row.trouble, {0, 1}), row.to_one ? 0.2 : 0, none) << static_cast<int>(row.trouble);
    EXPECT_NEAR(share(row.trouble, {1, 2}), row.one_to_two ? 0.2 : 0, none) << static_cast<int>(row.trouble);
    EXPECT_NEAR(share(row.trouble, {2, 1}), row.two_to_one ? 0.2 : 0, none) << static_cast<int>(row.trouble);
  }
}

TEST(PretendedCrew, WhatIsSlowTwiceIsNotSlower) {
  PretendedCluster cluster{.nodes = 2, .leaf_size = 2, .noise = kStill, .faults = {}};
  const double before = one_of(PretendedCrew(cluster), {0, 1}).log_speed;
  cluster.faults = {{.trouble = Trouble::nic, .first = 0, .share = 0.2},
                    {.trouble = Trouble::nic, .first = 1, .share = 0.3}};
  EXPECT_NEAR(one_of(PretendedCrew(cluster), {0, 1}).log_speed - before, std::log(0.7), 1e-12);
}

TEST(PretendedCrew, EndsWithoutASpeed) {
  EXPECT_EQ(ending_with({.trouble = Trouble::wrong, .first = 1, .second = 2}, {1, 2}), Ending::wrong);
  EXPECT_EQ(ending_with({.trouble = Trouble::wrong, .first = 1, .second = 2}, {2, 1}), Ending::measured);
  EXPECT_EQ(ending_with({.trouble = Trouble::hung, .first = 1, .second = 2}, {2, 1}), Ending::hung);
  EXPECT_EQ(ending_with({.trouble = Trouble::hung, .first = 1, .second = 2}, {1, 3}), Ending::measured);
  EXPECT_EQ(ending_with({.trouble = Trouble::dead, .first = 1}, {3, 1}), Ending::failed);
  EXPECT_EQ(ending_with({.trouble = Trouble::dead, .first = 1}, {3, 2}), Ending::measured);
}

TEST(PretendedCrew, NoiseHasTheSizeThatWasAskedForAndFollowsTheSeed) {
  const auto deviation = [](const Transfer& transfer, std::uint64_t seed) {
    PretendedCrew crew(
        {.nodes = 4,
         .noise = {.measurement = 0.02, .nodes = 0, .links = 0, .outliers = 0, .multiples = {1, 1, 1, 3}},
         .faults = {},
         .seed = seed});
    double sum = 0, squares = 0;
    constexpr int kTimes = 4000;
    for (int i = 0; i < kTimes; ++i) {
      const double speed = one_of(crew, transfer).log_speed;
      sum += speed / kTimes;
      squares += speed * speed / kTimes;
    }
    return std::sqrt(squares - sum * sum);
  };
  EXPECT_NEAR(deviation({0, 1}, 7), 0.02, 0.002);
  EXPECT_NEAR(deviation({0, 3}, 7), 0.06, 0.006) << "the noisier end counts";
  EXPECT_EQ(deviation({0, 1}, 7), deviation({0, 1}, 7));
  EXPECT_NE(deviation({0, 1}, 7), deviation({0, 1}, 8));
}

TEST(PretendedCrew, MeasuresTheWayBackAloneAndTogether) {
  PretendedCrew crew({.nodes = 4,
                      .leaf_size = 4,
                      .noise = kStill,
                      .faults = {{.trouble = Trouble::nic_out, .first = 1, .share = 0.2},
                                 {.trouble = Trouble::node, .first = 3, .share = 0.3}}});
  const double whole = one_of(crew, {0, 2}).log_speed;
  EXPECT_NEAR(one_of(crew, {0, 1}, Measure::back).log_speed - whole, std::log(0.8), 1e-12);
  EXPECT_NEAR(one_of(crew, {1, 0}, Measure::back).log_speed - whole, 0, 1e-12);
  const auto alone = crew.play({{0}, {3}}, {{.measure = Measure::alone}});
  EXPECT_NEAR(alone[1].front().log_speed - alone[0].front().log_speed, std::log(0.7), 1e-12);
  const Outcome all = crew.play({{0, 1, 2}}, {{.measure = Measure::ring}}).front().front();
  ASSERT_EQ(all.members.size(), 3U);
  EXPECT_NEAR(all.members[1] - whole, std::log(0.8), 1e-12) << "node 1 sends slowly to node 2";
  EXPECT_EQ(all.members[1], all.members[2]) << "which receives slowly";
  EXPECT_NEAR(all.members[0] - whole, 0, 1e-12);
}

TEST(PretendedCrew, AnUnsteadyNodeIsSlowHalfOfTheTimeInSpells) {
  PretendedCrew crew({.nodes = 2,
                      .leaf_size = 2,
                      .noise = kStill,
                      .faults = {{.trouble = Trouble::unsteady, .first = 1, .share = 0.4}}});
  const double whole =
      one_of(PretendedCrew({.nodes = 2, .leaf_size = 2, .noise = kStill, .faults = {}}), {0, 1}).log_speed;
  int slow = 0, changes = 0;
  bool was_slow = false;
  constexpr int kTimes = 4000;
  for (int i = 0; i < kTimes; ++i) {
    const bool is_slow = one_of(crew, {0, 1}).log_speed < whole - 0.1;
    slow += is_slow;
    changes += is_slow != was_slow;
    was_slow = is_slow;
  }
  EXPECT_NEAR(slow, kTimes / 2, kTimes / 10);
  EXPECT_NEAR(changes, kTimes / 8, kTimes / 32);
}

TEST(PretendedCrew, WhoIsAbsentSaysWhy) {
  const PretendedCrew crew({.nodes = 2, .noise = {}, .faults = {{.trouble = Trouble::absent, .first = 1}}});
  EXPECT_EQ(crew.absence_of(0), "");
  EXPECT_EQ(crew.absence_of(1), "agent: exit 255 \"node2: no route to host\"");
}

}  // namespace
}  // namespace tutti::harness::accept

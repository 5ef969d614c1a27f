// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/export.h"

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"

namespace tutti::harness::exchange {
namespace {

Schedule ring_of_two() {
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2};
  return schedule_of(*find_algorithm(problem.collective, "ring").value(), problem);
}

/// 4 bytes a unit: adding one up takes 8 ns, storing it 2 ns.
LocalCosts costs() {
  return {.reduce = [](double bytes) { return 2 * bytes; }, .copy = [](double bytes) { return bytes / 2; }};
}

TEST(Goal, OfARingHasItsWorkBetweenReceivingAndSending) {
  EXPECT_EQ(goal_text(ring_of_two(), 8, costs()).value(),
            "num_ranks 2\n"
            "\nrank 0 {\n"
            "l1: send 4b to 1 tag 0\n"
            "l2: recv 4b from 1 tag 0\n"
            "l3: calc 10\n"
            "l4: send 4b to 1 tag 0\n"
            "l5: recv 4b from 1 tag 0\n"
            "l6: calc 2\n"
            "l2 requires l1\n"
            "l3 requires l2\n"
            "l4 requires l3\n"
            "l5 requires l4\n"
            "l6 requires l5\n"
            "}\n"
            "\nrank 1 {\n"
            "l1: send 4b to 0 tag 0\n"
            "l2: recv 4b from 0 tag 0\n"
            "l3: calc 10\n"
            "l4: send 4b to 0 tag 0\n"
            "l5: recv 4b from 0 tag 0\n"
            "l6: calc 2\n"
            "l2 requires l1\n"
            "l3 requires l2\n"
            "l4 requires l3\n"
            "l5 requires l4\n"
            "l6 requires l5\n"
            "}\n");
}

TEST(Goal, WithoutCostsHasMessagesAlone) {
  const std::string text = goal_text(ring_of_two(), 8).value();
  EXPECT_EQ(text.find("calc"), std::string::npos) << text;
  EXPECT_NE(text.find("l3: send 4b to 1 tag 0\n"), std::string::npos) << text;
}

TEST(Goal, WorkBelowHalfANanosecondIsLeftOut) {
  const LocalCosts little{.reduce = [](double) { return 0.2; }, .copy = [](double) { return 0.2; }};
  EXPECT_EQ(goal_text(ring_of_two(), 8, little).value(), goal_text(ring_of_two(), 8).value());
}

}  // namespace
}  // namespace tutti::harness::exchange

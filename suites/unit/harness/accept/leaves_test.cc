// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/leaves.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::accept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Leaves, AreTheSwitchesThatSlurmNames) {
  EXPECT_EQ(leaf_from_slurm("s0.s1.node3", "switch.switch.node"), "s0.s1");
  EXPECT_EQ(leaf_from_slurm("s1.node3", "switch.node"), "s1");
  EXPECT_EQ(leaf_from_slurm("b2.node3.example.org", "block.node"), "b2") << "a node's name may have dots";
  EXPECT_EQ(leaf_from_slurm("node3", "node"), "");
  EXPECT_EQ(leaf_from_slurm("s1.node3", "switch.switch.node"), "") << "it does not fit";
  EXPECT_EQ(leaf_from_slurm("s0.s1.", "switch.switch.node"), "");
  EXPECT_EQ(leaf_from_slurm(".node3", "switch.node"), "");
  EXPECT_EQ(leaf_from_slurm("s0.s1.node3", "switch.switch"), "");
  EXPECT_EQ(leaf_from_slurm("", ""), "");
}

TEST(Leaves, HaveNumbersInTheOrderOfTheNodes) {
  EXPECT_THAT(leaves_from_paths(std::vector<std::string>{"s0.s2", "s0.s1", "s0.s2", "s9.s1"}), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(leaves_from_paths(std::vector<std::string>{"s0", ""}), IsEmpty()) << "one is not known";
}

}  // namespace
}  // namespace tutti::harness::accept

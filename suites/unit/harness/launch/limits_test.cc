// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/machine/machines.h"

namespace tutti::harness::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

const Needs kNeeds{.ranks = 64,
                   .descriptors = {.base = 12, .per_rank = 1},
                   .tasks = {.base = 100, .per_rank = 2},
                   .new_tasks = {.base = 2, .per_rank = 2},
                   .address_bytes = {.base = 1 << 20, .per_rank = 4096}};

TEST(Limits, ThatAreJustEnoughAreEnough) {
  EXPECT_TRUE(check_limits(kNeeds, {}).is_ok());
  EXPECT_TRUE(check_limits(kNeeds, {.descriptors = 76, .tasks = 228, .address_bytes = (1 << 20) + 64 * 4096}).is_ok());
}

TEST(Limits, AreToldWithTheNumbersAndHowManyRanksFit) {
  const Status files = check_limits(kNeeds, {.descriptors = 75});
  EXPECT_EQ(files.code(), Code::resource);
  EXPECT_EQ(files.message(),
            "64 ranks need 76 open files in one process, and the limit is 75 (ulimit -n): raise it, or take at most 63 "
            "ranks");
  EXPECT_EQ(check_limits(kNeeds, {.tasks = 150}).message(),
            "64 ranks need 228 processes and threads of this user, with those that there are, and the limit is 150 "
            "(ulimit -u): raise it, or take at most 25 ranks");
  EXPECT_EQ(check_limits(kNeeds, {.address_bytes = (1 << 20) + 4096}).message(),
            "64 ranks need 1280 KiB of addresses in one process, and the limit is 1028 (ulimit -v): raise it, or take "
            "at most 1 rank");
}

TEST(Limits, OfACgroupCountWhatIsNew) {
  EXPECT_TRUE(check_limits(kNeeds, {.new_tasks = 130}).is_ok());
  EXPECT_EQ(
      check_limits(kNeeds, {.new_tasks = 30}).message(),
      "64 ranks need 130 new processes and threads, and the limit is 30 (what pids.max of the cgroup leaves): raise "
      "it, or take at most 14 ranks");
}

TEST(Limits, OfACgroupAreTheLeastOfAllAroundTheProcess) {
  const FakeRoot root;
  EXPECT_EQ(tasks_left(root.tree()), std::nullopt);
  root.write("proc/self/cgroup", "0::/outer/inner");
  root.write("sys/fs/cgroup/outer/inner/pids.max", "max");
  EXPECT_EQ(tasks_left(root.tree()), std::nullopt);
  root.write("sys/fs/cgroup/outer/pids.max", "30");
  root.write("sys/fs/cgroup/outer/pids.current", "4");
  EXPECT_EQ(tasks_left(root.tree()), 26);
  root.write("proc/self/cgroup", "7:pids:/job\n0::/outer/inner");
  root.write("sys/fs/cgroup/pids/job/pids.max", "10");
  root.write("sys/fs/cgroup/pids/job/pids.current", "12");
  EXPECT_EQ(tasks_left(root.tree()), 0);
}

TEST(Limits, PromiseNoRankWhereNoneFits) {
  for (const std::uint64_t limit : {0U, 11U, 12U}) {
    EXPECT_THAT(check_limits(kNeeds, {.descriptors = limit}).message(), Not(HasSubstr("at most")));
  }
}

TEST(Limits, OfMpirunAreMoreForEachRankThanOfOurOwnProcesses) {
  const Job own{.ranks = 64};
  const Job theirs{.ranks = 64, .start = StartCommand{}};
  const Job threads{.ranks = 64, .ranks_as = RanksAs::threads};
  EXPECT_GT(needs_of(theirs).descriptors.per_rank, needs_of(own).descriptors.per_rank);
  EXPECT_GT(needs_of(theirs).tasks.per_rank, needs_of(own).tasks.per_rank);
  EXPECT_EQ(needs_of(threads).descriptors.per_rank, 0) << "one connection for all";
  EXPECT_GT(needs_of(threads).address_bytes.per_rank, needs_of(own).address_bytes.per_rank) << "a stack each";
}

TEST(Limits, AreAskedForAllOfTheDomain) {
  const Job little{.ranks = 2};
  const Job much{.ranks = 2, .domain_bytes = std::size_t{1} << 40};
  const Needs needs = needs_of(much);
  EXPECT_GE(needs.address_bytes.base, needs_of(little).address_bytes.base + (std::uint64_t{1} << 39));
  EXPECT_EQ(check_limits(needs, {.address_bytes = std::uint64_t{1} << 40}).code(), Code::resource);
}

}  // namespace
}  // namespace tutti::harness::launch

// SPDX-License-Identifier: Apache-2.0
// What disturbed a measurement, from literal counts.
#include "harness/machine/disturbance.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "suites/unit/harness/machine/machines.h"

namespace tutti::harness::machine {
namespace {

/// One second of two cores, both of which the ranks used.
Watched quiet() {
  Watched watched;
  watched.before = {
      .at_ns = 1'000'000'000, .all_s = 100, .busy_s = 50, .stolen_s = 1, .stopped = 3, .hot = 4, .clock_khz = 3e6};
  watched.after = {
      .at_ns = 2'000'000'000, .all_s = 102, .busy_s = 52, .stolen_s = 1, .stopped = 3, .hot = 4, .clock_khz = 3e6};
  watched.used_s = 2;
  return watched;
}

TEST(Disturbance, IsNoneWhereNothingWasSeen) {
  EXPECT_EQ(disturbances_of(quiet()), "");
  EXPECT_EQ(disturbances_of({}), "") << "nothing is known";
}

TEST(Disturbance, OfEachKindIsNamedFromItsThresholdOn) {
  Watched watched = quiet();
  watched.used_s = 1.78;  // others: 0.22, of which 0.04 are what readings do not tell
  EXPECT_EQ(disturbances_of(watched), "");
  watched.used_s = 1.7;
  EXPECT_EQ(disturbances_of(watched), "load");
  watched = quiet();
  watched.after.stolen_s = 1.01;
  EXPECT_EQ(disturbances_of(watched), "");
  watched.after.stolen_s = 1.03;
  EXPECT_EQ(disturbances_of(watched), "steal");
  watched = quiet();
  watched.most_switches = 500;
  EXPECT_EQ(disturbances_of(watched), "");
  watched.most_switches = 501;
  EXPECT_EQ(disturbances_of(watched), "switches");
  watched.ranks_share_cores = true;
  EXPECT_EQ(disturbances_of(watched), "");
  watched = quiet();
  watched.after.at_ns = watched.before.at_ns + 5'000'000;
  watched.most_switches = 9;  // 1800 a second, but too few to change the median of thirty samples
  EXPECT_EQ(disturbances_of(watched), "");
  watched.most_switches = 10;
  EXPECT_EQ(disturbances_of(watched), "switches");
  watched = quiet();
  watched.after.stopped = 4;
  EXPECT_EQ(disturbances_of(watched), "quota");
  watched = quiet();
  watched.after.hot = 5;
  EXPECT_EQ(disturbances_of(watched), "heat");
  watched = quiet();
  watched.after.clock_khz = 2.9e6;
  EXPECT_EQ(disturbances_of(watched), "");
  watched.after.clock_khz = 2.8e6;
  EXPECT_EQ(disturbances_of(watched), "clock");
  watched.before.clock_khz.reset();
  EXPECT_EQ(disturbances_of(watched), "");
}

TEST(Disturbance, ThreadsUseTheCoresTogetherAndTheOneThatIsTakenOffMostCounts) {
  Watched watched = quiet();
  watched.used_s = 0;
  add_thread(watched, {.used_s = 5, .switches = 70}, {.used_s = 6, .switches = 79});
  add_thread(watched, {.used_s = 0.5, .switches = 3}, {.used_s = 1.5, .switches = 610});
  add_thread(watched, {}, {});
  EXPECT_DOUBLE_EQ(watched.used_s, 2);
  EXPECT_EQ(watched.most_switches, 607);
  EXPECT_EQ(disturbances_of(watched), "switches");
}

TEST(Disturbance, OfSeveralKindsIsAList) {
  Watched watched = quiet();
  watched.used_s = 0;
  watched.most_switches = 900;
  watched.after.stopped = 9;
  EXPECT_EQ(disturbances_of(watched), "load; switches; quota");
}

TEST(Disturbance, IsCountedOnTheRanksCoresAlone) {
  const FakeRoot root;
  const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  root.write("proc/stat",
             "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 100 100\ncpu1 1000 0 0 0 0 0 0 0 0 0\n"
             "cpu2 10 0 0 0 0 0 0 0 0 0\nintr 5\n");
  root.write("sys/fs/cgroup/cpu.stat", "nr_periods 7\nnr_throttled 5\nthrottled_usec 9");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "2");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000");
  root.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "3000000");
  const CoresCounted counted = count_cores(root.tree(), {0, 2});
  EXPECT_DOUBLE_EQ(counted.all_s, 82 * tick_s);
  EXPECT_DOUBLE_EQ(counted.busy_s, 29 * tick_s) << "neither idle, nor waiting, nor stolen";
  EXPECT_DOUBLE_EQ(counted.stolen_s, 8 * tick_s);
  EXPECT_EQ(counted.stopped, 5);
  EXPECT_EQ(counted.hot, 2);
  EXPECT_EQ(counted.clock_khz, 2.5e6);
  const CoresCounted nothing = count_cores(FakeRoot().tree(), {0, 2});
  EXPECT_EQ(nothing.all_s, 0);
  EXPECT_EQ(nothing.clock_khz, std::nullopt);
}

TEST(Disturbance, AQuotaIsThatOfTheOwnGroupAndOfThoseAroundIt) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/user.slice/job");
  root.write("sys/fs/cgroup/user.slice/job/cpu.stat", "nr_periods 7\nnr_throttled 5\nthrottled_usec 9");
  root.write("sys/fs/cgroup/user.slice/cpu.stat", "nr_throttled 2");
  root.write("sys/fs/cgroup/user.slice/other/cpu.stat", "nr_throttled 100");
  root.write("sys/fs/cgroup/cpu.stat", "usage_usec 9");
  EXPECT_EQ(count_cores(root.tree(), {0}).stopped, 7);
  root.write("proc/self/cgroup", "3:cpu,cpuacct:/job\n0::/");
  root.write("sys/fs/cgroup/cpu/job/cpu.stat", "nr_throttled 3");
  EXPECT_EQ(count_cores(root.tree(), {0}).stopped, 3) << "version 1";
}

TEST(Disturbance, AThreadCountsWhatItUses) {
  const ThreadCounted before = count_this_thread();
  volatile double sum = 0;
  while (count_this_thread().used_s < before.used_s + 0.02) sum = sum + 1;
  EXPECT_GE(count_this_thread().switches, before.switches);
}

}  // namespace
}  // namespace tutti::harness::machine

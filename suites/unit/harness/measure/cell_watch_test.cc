// SPDX-License-Identifier: Apache-2.0
// What disturbs a cell is counted between beginning and end, by runner 0 alone.
#include "harness/measure/cell_watch.h"

#include <array>

#include <gtest/gtest.h>

#include "suites/unit/harness/machine/machines.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

TEST(CellWatch, TellsOnHostZeroWhatHappenedMeanwhile) {
  constexpr int kRunners = 2;
  const FakeRoot root;
  const auto count = [&](int stopped, int stolen) {
    root.write("sys/fs/cgroup/cpu.stat", fmt::format("nr_throttled {}", stopped));
    root.write("proc/stat", fmt::format("cpu1 9 9 9 9 9 9 9 {} 0 0\ncpu3 9 9 9 9 9 9 9 9 0 0", stolen));
  };
  count(5, 9);
  const std::vector<int> cores{1, 3};
  const BoardMemory memory(kRunners);
  std::array<std::vector<std::string>, kRunners> seen;
  on_runners(memory.board(), kRunners, [&](Runner& runner) {
    const auto watched = [&](int stopped, int stolen) {
      CellWatch watch(runner, cores, root.tree());
      ASSERT_TRUE(runner.exchange(char{}).is_ok());
      if (runner.index() == 0) count(stopped, stolen);
      const auto disturbed = watch.end();
      ASSERT_TRUE(disturbed.is_ok()) << disturbed.status().message();
      seen[static_cast<std::size_t>(runner.index())].push_back(disturbed.value());
    };
    watched(6, 9);
    watched(6, 9);
    watched(6, 99);
    watched(7, 200);
  });
  EXPECT_EQ(seen[0], (std::vector<std::string>{"quota", "", "steal", "steal; quota"}));
  EXPECT_EQ(seen[1], (std::vector<std::string>(4, "")));
}

}  // namespace
}  // namespace tutti::harness::measure

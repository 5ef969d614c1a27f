// SPDX-License-Identifier: Apache-2.0
// A crowd is there, on its cores, until it ends; and a watch tells what others take, not what the crowd does.
#include "harness/measure/crowd.h"

#include <filesystem>
#include <fstream>
#include <sched.h>

#include <gtest/gtest.h>

#include "harness/machine/allowed_cores.h"
#include "harness/measure/cell_watch.h"
#include "harness/process/waits.h"
#include "suites/unit/harness/machine/machines.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

constexpr std::chrono::minutes kPatience(1);

/// The cores of each thread of this process that is of a crowd.
std::vector<std::vector<int>> crowd_here() {
  std::vector<std::vector<int>> cores_of_all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    cpu_set_t set;
    if (name != "tutti_crowd" || sched_getaffinity(std::stoi(task.path().filename()), sizeof set, &set) != 0) continue;
    std::vector<int>& cores = cores_of_all.emplace_back();
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    }
  }
  return cores_of_all;
}

TEST(Crowd, IsThereOnItsCoresUntilItEnds) {
  const std::vector<int> cores{allowed_cores().back()};
  auto crowd = Crowd::start(3, cores);
  ASSERT_TRUE(crowd.is_ok()) << crowd.status().message();
  EXPECT_EQ(crowd_here(), std::vector(3, cores));
  EXPECT_TRUE(nap_until(kPatience, [&] { return crowd.value()->used_s() > 0.02; })) << "they compute";
  crowd.value().reset();
  EXPECT_TRUE(crowd_here().empty());
}

/// What a watch tells when the crowd beside it has had half a second of two cores, and others have had `others_s`.
std::string told_beside_crowd(double others_s) {
  const FakeRoot root;
  const auto count = [&](double busy_s) {
    root.write("proc/stat", fmt::format("cpu1 {} 0 0 9 0 0 0 0 0 0\ncpu3 0 0 0 {} 0 0 0 0 0 0", 100 + busy_s * 100,
                                        100 + busy_s * 100));
  };
  count(0);
  const auto crowd = Crowd::start(2, allowed_cores());
  const BoardMemory memory(1);
  const WatchedPlace place{.cores = {1, 3}, .crowd = crowd.value().get()};
  std::string told;
  on_runners(memory.board(), 1, [&](Runner& runner) {
    CellWatch watch(runner, place, root.tree());
    const double before_s = place.crowd->used_s();
    EXPECT_TRUE(nap_until(kPatience, [&] { return place.crowd->used_s() - before_s >= 0.5; }));
    count(place.crowd->used_s() - before_s + others_s);
    told = watch.end().value();
  });
  return told;
}

TEST(Crowd, IsNoLoadThatDisturbs) {
  EXPECT_EQ(told_beside_crowd(0), "");
  EXPECT_EQ(told_beside_crowd(4), "load");
}

}  // namespace
}  // namespace tutti::harness::measure

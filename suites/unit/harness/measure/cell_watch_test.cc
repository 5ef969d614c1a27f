// SPDX-License-Identifier: Apache-2.0
// What disturbs a cell is counted between beginning and end, on each machine by its first runner; runner 0 tells it.
#include "harness/measure/cell_watch.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "suites/unit/harness/machine/machines.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

using Texts = std::vector<std::string>;

/// A machine of two cores.
class CountedRoot {
 public:
  CountedRoot() { count(5, 9); }
  void count(int throttled, int stolen) const {
    root_.write("sys/fs/cgroup/cpu.stat", fmt::format("nr_throttled {}", throttled));
    root_.write("proc/stat", fmt::format("cpu1 9 9 9 9 9 9 9 {} 0 0\ncpu3 9 9 9 9 9 9 9 9 0 0", stolen));
  }
  [[nodiscard]] Tree tree() const { return root_.tree(); }

 private:
  FakeRoot root_;
};

TEST(CellWatch, TellsOnRunnerZeroWhatHappenedMeanwhile) {
  constexpr int kRunners = 2;
  const CountedRoot root;
  const WatchedPlace place{.cores = {1, 3}};
  const BoardMemory memory(kRunners);
  std::array<Texts, kRunners> seen;
  on_runners(memory.board(), kRunners, [&](Runner& runner) {
    const auto watched = [&](int throttled, int stolen) {
      CellWatch watch(runner, place, root.tree());
      ASSERT_TRUE(runner.exchange(char{}).is_ok());
      if (runner.index() == 0) root.count(throttled, stolen);
      const auto disturbed = watch.end();
      ASSERT_TRUE(disturbed.is_ok()) << disturbed.status().message();
      seen[static_cast<std::size_t>(runner.index())].push_back(disturbed.value());
    };
    watched(6, 9);
    watched(6, 9);
    watched(6, 99);
    watched(7, 200);
  });
  EXPECT_EQ(seen[0], (Texts{"quota", "", "steal", "steal; quota"}));
  EXPECT_EQ(seen[1], Texts(4));
}

/// An exchange over one board, whose runners say that they are on these machines.
class Machines final : public Exchange {
 public:
  explicit Machines(std::vector<int> machines) : machines_(std::move(machines)) {}
  void tell(const Board& board, int runner, Part part) override { shared_board().tell(board, runner, part); }
  void look(const Board& board) override { shared_board().look(board); }
  [[nodiscard]] bool needs_look() const override { return false; }
  [[nodiscard]] bool is_aborted(const Board& board) const override { return shared_board().is_aborted(board); }
  [[nodiscard]] const std::vector<int>& machines() const override { return machines_; }

 private:
  std::vector<int> machines_;
};

/// What runner 0 tells, if `happen(machine)` happens on each machine meanwhile. Runners 1 and 2 are on the second one.
std::string told_of_two(const WatchedPlace& place, const std::array<CountedRoot, 2>& roots,
                        const std::function<void(std::size_t machine)>& happen) {
  constexpr int kRunners = 3;
  Machines exchange({0, 1, 1});
  const BoardMemory memory(kRunners);
  std::string told;
  std::vector<std::thread> threads;
  for (int index = 0; index < kRunners; ++index) {
    threads.emplace_back([&, index] {
      RunnerOptions options = runner_options(index, kRunners);
      options.exchange = &exchange;
      Runner runner(memory.board(), std::move(options));
      const std::size_t machine = index == 0 ? 0 : 1;
      CellWatch watch(runner, place, roots[machine].tree());
      ASSERT_TRUE(runner.exchange(char{}).is_ok());
      if (index < 2) happen(machine);
      const auto disturbed = watch.end();
      ASSERT_TRUE(disturbed.is_ok()) << disturbed.status().message();
      if (index == 0) told = disturbed.value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(CellWatch, EachMachineLooksAtItselfAndIsNamed) {
  const std::array<CountedRoot, 2> roots;
  const WatchedPlace place{.cores = {1, 3}, .kernels = {0, 1, 1}, .host_names = {"a", "b"}};
  EXPECT_EQ(told_of_two(place, roots, [](std::size_t) {}), "");
  EXPECT_EQ(told_of_two(place, roots,
                        [&](std::size_t machine) {
                          if (machine == 1) roots[1].count(7, 9);
                        }),
            "quota on b");
  EXPECT_EQ(told_of_two(place, roots, [&](std::size_t machine) { roots[machine].count(9, machine == 0 ? 99 : 9); }),
            "steal on a; quota on a; quota on b");
}

TEST(CellWatch, TellsThatTheJobStoodStill) {
  const std::array<CountedRoot, 2> roots;
  const WatchedPlace place{.cores = {1, 3}};
  const BoardMemory memory(1);
  memory.board().stood_ns() = 4;
  std::vector<std::string> seen;
  on_runners(memory.board(), 1, [&](Runner& runner) {
    for (const int ns : {0, 3, 0}) {
      CellWatch watch(runner, place, roots[0].tree());
      memory.board().stood_ns() += ns;
      seen.push_back(watch.end().value());
    }
  });
  EXPECT_EQ(seen, (Texts{"", "stopped", ""}));
}

TEST(CellWatch, MachinesWithoutNamesAreToldTogether) {
  const std::array<CountedRoot, 2> roots;
  EXPECT_EQ(told_of_two({.cores = {1, 3}, .kernels = {0, 1, 1}}, roots,
                        [&](std::size_t machine) { roots[machine].count(9, machine == 0 ? 99 : 9); }),
            "steal; quota");
}

TEST(CellWatch, WordsNameAFewHostsAndCountTheOthers) {
  EXPECT_EQ(words_on_hosts({"", ""}, {"a", "b"}), "");
  EXPECT_EQ(words_on_hosts({"load; heat", "heat"}, {"a", "b"}), "load on a; heat on a; heat on b");
  EXPECT_EQ(words_on_hosts(Texts(4, "load"), {"a", "b", "c", "d"}), "load on a; load on b; load on c; load on d");
  EXPECT_EQ(words_on_hosts(Texts(6, "load"), {"a", "b", "c", "d", "e", "f"}),
            "load on a; load on b; load on c; load on 3 more hosts");
  EXPECT_EQ(words_on_hosts({"load", "load"}, {"n1", "n10"}), "load on n1; load on n10");
  EXPECT_EQ(words_on_hosts({"load", "load"}, {"n10", "n1"}), "load on n10; load on n1");
}

}  // namespace
}  // namespace tutti::harness::measure

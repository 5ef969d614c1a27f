// SPDX-License-Identifier: Apache-2.0
#include "harness/process/stacks.h"

#include <chrono>
#include <csignal>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/process/waits.h"
#include "suites/unit/harness/process/reader_double.h"

namespace tutti::harness::process {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Stacks, HaveNoAddressesAndNoNumbersOfProcesses) {
  EXPECT_EQ(
      without_addresses("PID 17 - process\nTID 17:\n#0  0x00007f3ecd0eb6f5 clock_nanosleep\n#1  0x000055d6d4bd13c7\n"
                        "TID 18:\n#0  0x00007f3ecd0eb6f6 - 1 poll(int, int)\n"),
      "thread 1\n  #0 clock_nanosleep\n  #1 ?\nthread 2\n  #0 - 1 poll(int, int)\n");
  EXPECT_EQ(without_addresses(""), "");
}

TEST(Stacks, ThatAreAlikeStandOnceAndMostRanksComeFirst) {
  const std::vector<RankStack> stacks = {{0, "a\n"}, {1, "b\n"}, {2, "b\n"}, {3, "c\n"}};
  EXPECT_EQ(grouped(stacks), "ranks 1, 2\nb\n\nrank 0\na\n\nrank 3\nc\n");
  EXPECT_EQ(grouped({}), "");
}

TEST(Stacks, OfAnotherHostHaveNoLinesButTheirOwn) {
  EXPECT_EQ(stack_lines("thread 1\n  #0 poll\n\nrank 7\nthread 1\n #1 f\nnot read: why"),
            "thread 1\n  #0 poll\nthread 1\nnot read: why\n");
  EXPECT_EQ(stack_lines("\nranks 1, 2\n"), "");
}

/// Those of ranks whose processes are these.
std::vector<RankStack> read(const std::vector<pid_t>& pids, std::chrono::milliseconds most) {
  const Interrupts interrupts;
  return stacks_of(
      static_cast<int>(pids.size()), most, [&](int rank) { return pids[static_cast<std::size_t>(rank)]; }, interrupts);
}

TEST(Stacks, AreReadByEuStack) {
  const std::vector<RankStack> stacks = read({::getpid()}, 10s);
  if (stacks.empty()) GTEST_SKIP() << "there is no eu-stack";
  EXPECT_THAT(stacks[0].text, HasSubstr("thread 1\n  #0 "));
  EXPECT_TRUE(is_read(stacks[0]));
}

/// Of ranks 0 to 3, of which two have a process.
std::vector<std::string> texts_by(const std::string& script, std::chrono::milliseconds most) {
  const ReaderDouble reader(script);
  std::vector<std::string> texts;
  for (const RankStack& one : read({::getpid(), 0, kEnded, ::getpid()}, most)) {
    EXPECT_EQ(one.rank, static_cast<int>(texts.size()));
    EXPECT_EQ(is_read(one), one.text.starts_with("thread"));
    texts.push_back(one.text);
  }
  return texts;
}

TEST(Stacks, AreReadInTimeOrSayWhyNot) {
  const std::string unknown = "not read: its process is not known\n", ended = "not read: its process has ended\n";
  const std::string stack = "thread 1\n  #0 poll\n";
  EXPECT_THAT(texts_by(kPrintsAStack, 10s), ElementsAre(stack, unknown, ended, stack));
  const std::string refused = "not read: eu-stack: no\n";
  EXPECT_THAT(texts_by("echo 'eu-stack: no' >&2; exit 1", 10s), ElementsAre(refused, unknown, ended, refused));
  EXPECT_THAT(texts_by(kNeverEnds, 300ms), ElementsAre("not read: 'eu-stack' did not end in time\n", unknown, ended,
                                                       "not read: there was no more time\n"));
  EXPECT_THAT(texts_by("", 10s), IsEmpty());
}

TEST(Stacks, OfAReaderThatIsGoneLeaveNoProcess) {
  const ReaderDouble reader(kNeverEnds);
  {
    StackReader stacks(3, 1, 10s, [](int /*rank*/) { return ::getpid(); });
    EXPECT_FALSE(stacks.next().has_value());
    EXPECT_TRUE(nap_until(10s, [&] { return reader.pid() > 0; }));
    EXPECT_FALSE(stacks.next().has_value());
    EXPECT_FALSE(stacks.is_done());
  }
  EXPECT_EQ(::kill(reader.pid(), 0), -1) << "it has been killed and waited for";
}

}  // namespace
}  // namespace tutti::harness::process

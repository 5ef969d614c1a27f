// SPDX-License-Identifier: Apache-2.0
// What is left behind is found, each kind by itself.
#include "harness/soak/traces.h"

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::soak {
namespace {

using testing::HasSubstr;

/// Without files: those in /dev/shm are the machine's, and another test may make one just now.
Traces of_this_process() {
  Traces traces = Traces::now();
  traces.files.clear();
  return traces;
}

TEST(Traces, AreTheSameWhereNothingHappens) {
  const Traces before = of_this_process();
  EXPECT_EQ(left_behind(before, of_this_process()), "");
}

TEST(Traces, HaveADescriptorThatStaysOpen) {
  const Traces before = of_this_process();
  const int descriptor = open("/dev/null", O_RDONLY);
  EXPECT_THAT(left_behind(before, of_this_process()), HasSubstr("descriptors: "));
  close(descriptor);
  EXPECT_EQ(left_behind(before, of_this_process()), "");
}

TEST(Traces, HaveAChildThatLivesOrWasNotWaitedFor) {
  const Traces before = of_this_process();
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const std::string expected = fmt::format("child processes: {}, before {}", before.children + 1, before.children);
  EXPECT_EQ(left_behind(before, of_this_process()), expected);
  kill(child, SIGKILL);
  siginfo_t about{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(left_behind(before, of_this_process()), expected) << "it has ended, and nobody has waited";
  waitpid(child, nullptr, 0);
  EXPECT_EQ(left_behind(before, of_this_process()), "");
}

TEST(Traces, HaveSharedMemoryThatStaysMapped) {
  const Traces before = of_this_process();
  const int memory = memfd_create("tutti-of-a-test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, 4096), 0);
  void* const at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory, 0);
  close(memory);
  EXPECT_EQ(left_behind(before, of_this_process()),
            fmt::format("mappings of shared memory: {}, before {}", before.mappings + 1, before.mappings));
  munmap(at, 4096);
  EXPECT_EQ(left_behind(before, of_this_process()), "");
}

TEST(Traces, HaveAFileInSharedMemoryOnceNobodyHasItOpen) {
  const Traces before = Traces::now();
  const std::string path = fmt::format("/dev/shm/tutti-traces-test-{}", getpid());
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  EXPECT_THAT(left_behind(before, Traces::now()), testing::Not(HasSubstr(path))) << "it is in use";
  close(file);
  EXPECT_THAT(left_behind(before, Traces::now()), HasSubstr(path + ", which no process has open"));
  unlink(path.c_str());
  EXPECT_THAT(left_behind(before, Traces::now()), testing::Not(HasSubstr(path)));
}

}  // namespace
}  // namespace tutti::harness::soak

// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/footprint.h"

#include <csignal>
#include <memory>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::HasSubstr;

Status nothing() { return {}; }

/// Or skips the test where this process may not trace.
#define COUNT(footprint, ...)                                                                   \
  const auto counted = footprint_of(__VA_ARGS__);                                               \
  if (counted.status().code() == Code::unavailable) GTEST_SKIP() << counted.status().message(); \
  ASSERT_TRUE(counted.is_ok()) << counted.status().message();                                   \
  const Footprint footprint = counted.value()

TEST(Footprint, CountsEachAllocationAndSystemCall) {
  const auto warm_up = [] {  // so that the allocator has what it needs
    for (int i = 0; i < 5; ++i) {
      const std::unique_ptr<volatile int> kept(new volatile int(i));
    }
    return Status();
  };
  const auto five_and_two = [] {
    for (int i = 0; i < 5; ++i) {
      const std::unique_ptr<volatile int> kept(new volatile int(i));
    }
    for (int i = 0; i < 2; ++i) ::syscall(SYS_getppid);
    return Status();
  };
  COUNT(footprint, warm_up, five_and_two);
  EXPECT_EQ(footprint.allocations, 5);
  EXPECT_EQ(footprint.system_calls, 2);
}

TEST(Footprint, WhatIsPreparedDoesNotCount) {
  const auto prepare = [] {
    ::syscall(SYS_getppid);
    const std::unique_ptr<volatile int> kept(new volatile int(1));
    return Status();
  };
  COUNT(footprint, prepare, nothing);
  EXPECT_EQ(footprint, Footprint());
}

TEST(Footprint, AStrayStopIsNoMark) {
  const auto stop = [] {
    ::kill(::getpid(), SIGSTOP);
    return Status();
  };
  {
    COUNT(footprint, stop, nothing);
    EXPECT_EQ(footprint, Footprint());
  }
  {
    COUNT(footprint, nothing, stop);
    EXPECT_EQ(footprint.system_calls, 1 + 1) << "getpid and kill";
  }
}

TEST(Footprint, AnErrorOfTheChildIsOursAndItsSignalsReachIt) {
  const auto fails = [] { return error(Code::refuted, "for this reason"); };
  for (const bool in_prepare : {true, false}) {
    const auto found = in_prepare ? footprint_of(fails, nothing) : footprint_of(nothing, fails);
    if (found.status().code() == Code::unavailable) GTEST_SKIP() << found.status().message();
    EXPECT_EQ(found.status().code(), Code::refuted);
    EXPECT_THAT(found.status().message(), HasSubstr("for this reason"));
  }
  const auto dies = [] {
    ::raise(SIGKILL);
    return Status();
  };
  EXPECT_THAT(footprint_of(nothing, dies).status().message(), HasSubstr("signal 9"));
  const auto late = [] {
    ::raise(SIGALRM);
    return Status();
  };
  EXPECT_EQ(footprint_of(nothing, late).status().code(), Code::timeout);
}

// Once it is warm an operation neither allocates nor calls the kernel, whatever the algorithm.
TEST(Footprint, OperationsOfEveryAlgorithmCostNothingBesides) {
  for (const Algorithm* algorithm : all_algorithms()) {
    Case one = all_reduce_of(4096, algorithm->name.data());
    one.collective = algorithm->collective;
    one.op = is_reducing(one.collective) ? Op::sum : Op::none;
    one.ranks = 4;
    one.count = 4096 / 4 / 4;
    SCOPED_TRACE(fmt::format("{} {}", to_string(algorithm->collective), algorithm->name));
    COUNT(footprint, one);
    EXPECT_EQ(footprint.allocations, 0);
    EXPECT_EQ(footprint.system_calls, 0);
  }
}

}  // namespace
}  // namespace tutti::harness::gate

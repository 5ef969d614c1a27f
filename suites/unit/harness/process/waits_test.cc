// SPDX-License-Identifier: Apache-2.0
#include "harness/process/waits.h"

#include <array>
#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

#include "impl/types/descriptor.h"

namespace tutti::harness::process {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  Descriptor reader, writer;
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }
};

TEST(Waits, ANapEndsWithTheFirstLookAtWhichItIsOver) {
  int looks = 0;
  EXPECT_TRUE(nap_until(
      1min, [&] { return ++looks == 3; }, 1ns));
  EXPECT_EQ(looks, 3);
}

TEST(Waits, TheLastLookIsAfterTheEnd) {
  int looks = 0;
  EXPECT_TRUE(nap_until(
      0ns, [&] { return ++looks == 1; }, 1h));
  EXPECT_FALSE(nap_until(
      0ns, [&] { return ++looks == 0; }, 1h));
  EXPECT_EQ(looks, 2);
  looks = 0;
  EXPECT_TRUE(nap_until(
      1ms, [&] { return ++looks == 2; }, 2ms));
}

TEST(Waits, ADescriptorIsReadableOnceThereIsSomethingOrNobodyToWrite) {
  Pipe pipe;
  EXPECT_FALSE(wait_readable(pipe.reader.get(), 0ms));
  ASSERT_EQ(::write(pipe.writer.get(), "x", 1), 1);
  EXPECT_TRUE(wait_readable(pipe.reader.get(), kForever));
  Pipe closed;
  closed.writer.close();
  EXPECT_TRUE(wait_readable(closed.reader.get(), kForever));
}

TEST(Waits, ASignalEndsNoWait) {
  static int writer = -1;
  static int signals = 0;
  Pipe pipe;
  writer = pipe.writer.get();
  struct sigaction action {};
  // The second signal brings what is waited for.
  action.sa_handler = [](int) {
    if (++signals == 1) ::ualarm(10'000, 0);
    if (signals == 2) {
      [[maybe_unused]] const ssize_t written = ::write(writer, "x", 1);
    }
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  ::ualarm(10'000, 0);
  EXPECT_TRUE(wait_readable(pipe.reader.get(), 1min));
  EXPECT_EQ(signals, 2);
  ::sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace tutti::harness::process

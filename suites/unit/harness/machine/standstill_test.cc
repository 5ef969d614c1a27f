// SPDX-License-Identifier: Apache-2.0
// The time for which a process itself stood still, from literal readings of a clock.
#include "harness/machine/standstill.h"

#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Standstill, IsNoneOfAProcessThatIsALittleLate) {
  Standstill stood;
  EXPECT_EQ(stood.look(5 * kSecond, 5 * kSecond - 1), 0ns);
  EXPECT_EQ(stood.look(5 * kSecond, 6 * kSecond - 1), 0ns);
  EXPECT_EQ(stood.after(0), 0ns);
}

TEST(Standstill, CountsFromAnInstantOn) {
  Standstill stood;
  EXPECT_EQ(stood.look(5 * kSecond, 11 * kSecond), 6s);
  EXPECT_EQ(stood.look(20 * kSecond, 22 * kSecond), 2s);
  EXPECT_EQ(stood.after(0), 8s);
  EXPECT_EQ(stood.after(8 * kSecond), 5s) << "the rest of the first one, and the second one";
  EXPECT_EQ(stood.after(11 * kSecond), 2s);
  EXPECT_EQ(stood.after(30 * kSecond), 0s);
}

TEST(Standstill, KeepsTheLastOnes) {
  Standstill stood;
  for (std::int64_t i = 0; i < 100; ++i) stood.look(10 * i * kSecond, (10 * i + 2) * kSecond);
  EXPECT_EQ(stood.after(0), 128s);
  EXPECT_EQ(stood.after(990 * kSecond), 2s);
}

}  // namespace
}  // namespace tutti::harness::machine

// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/process_age.h"

#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

TEST(ProcessAge, IsReadBehindTheNameWhateverIsInIt) {
  EXPECT_EQ(start_ticks_in("7 (a) S 1) x) R 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 987654 1000 50 18446744"),
            987654);
  EXPECT_EQ(start_ticks_in("7 (tutti) R 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 12"), 12);
}

TEST(ProcessAge, OfATextWithoutItThereIsNone) {
  EXPECT_FALSE(start_ticks_in(""));
  EXPECT_FALSE(start_ticks_in("7 tutti R 1 7"));
  EXPECT_FALSE(start_ticks_in("7 (tutti) R 1 7 7 0"));
  EXPECT_FALSE(start_ticks_in("7 (tutti) R 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 x 1"));
}

TEST(ProcessAge, OfThisProcessIsKnownAndGrows) {
  const auto first = process_age_s();
  ASSERT_TRUE(first);
  EXPECT_GE(process_age_s(), first);
}

}  // namespace
}  // namespace tutti::harness::machine

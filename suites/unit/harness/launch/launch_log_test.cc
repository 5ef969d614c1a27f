// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/launch_log.h"

#include <gtest/gtest.h>

namespace tutti::harness::launch {
namespace {

TEST(TellingLine, TheFirstThatSpeaksOfAFailure) {
  EXPECT_EQ(telling_line("reading the licence\nlicence server: connection refused\nError: bye\n"),
            "licence server: connection refused");
}

TEST(TellingLine, OrElseTheLast) {
  EXPECT_EQ(telling_line("one\ntwo"), "two");
  EXPECT_EQ(telling_line("two\n------\n\n"), "two");
  EXPECT_EQ(telling_line(""), "");
  EXPECT_EQ(telling_line("----\n  \n"), "");
}

TEST(TellingLine, PassesOverABacktrace) {
  EXPECT_EQ(telling_line("[vm:12] [ 0] /lib/liberror.so(+0x3c050)[0x7fdcc1f9e050]\n"
                         "[vm:12] *** End of error message ***\nMPI_ABORT was invoked\n"),
            "MPI_ABORT was invoked");
}

}  // namespace
}  // namespace tutti::harness::launch

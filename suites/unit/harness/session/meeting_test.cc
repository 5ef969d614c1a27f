// SPDX-License-Identifier: Apache-2.0
// With what a rank joins the world of a reference.
#include "harness/session/meeting.h"

#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::session {
namespace {

TEST(Meeting, ARankJoinsWithItsMachineAndItsPlaceThere) {
  const measure::BoardMemory memory(4);
  const std::string one_host;
  Runner runner(memory.board(),
                {.runner = 3, .runners = 4, .job_ranks = 4, .ranks = {3}, .at = {.host = 1, .local = 1}});
  Meeting meeting(runner, one_host);
  EXPECT_EQ(meeting.join().host, 1);
  EXPECT_EQ(meeting.join().rank_on_host, 1);
  EXPECT_EQ(meeting.join().address, nullptr);
}

}  // namespace
}  // namespace tutti::harness::session

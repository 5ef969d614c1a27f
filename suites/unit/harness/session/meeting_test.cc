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
  Host host(memory.board(), {.host = 3, .hosts = 4, .job_ranks = 4, .ranks = {3}, .at = {.host = 1, .local = 1}});
  Meeting meeting(host, one_host);
  EXPECT_EQ(meeting.join().host, 1);
  EXPECT_EQ(meeting.join().rank_on_host, 1);
  EXPECT_EQ(meeting.join().address, nullptr);
}

}  // namespace
}  // namespace tutti::harness::session

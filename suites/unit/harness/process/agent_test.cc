// SPDX-License-Identifier: Apache-2.0
#include "harness/process/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::process {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Agent, GetsItsOwnWordsAndTheHostWithoutBrackets) {
  EXPECT_THAT(agent_words("ssh -p 2222", "node1").value(), ElementsAre("ssh", "-p", "2222", "node1"));
  EXPECT_THAT(agent_words("ssh", "me@[2001:db8::7]").value(), ElementsAre("ssh", "me@2001:db8::7"));
  EXPECT_THAT(agent_words("ssh", "[fe80::1%eth0]").value(), ElementsAre("ssh", "fe80::1%eth0"));
  EXPECT_EQ(agent_text("ssh", "[::1]"), "`ssh ::1`");
  EXPECT_EQ(agent_text("sshpass -p hunter2 ssh", "[::1]"), "`sshpass (redacted) ::1`");
}

TEST(Agent, GetsNoOptionInPlaceOfAHost) {
  for (const char* const host : {"-v", "[-Fevil.cfg]", "me@-v", "-F@a", "a b", "", "$(id)"}) {
    EXPECT_FALSE(agent_words("ssh", host).is_ok()) << host;
  }
  EXPECT_THAT(agent_words("ssh", "[-Fevil.cfg]").status().message(), HasSubstr("'[-Fevil.cfg]' is no address"));
}

}  // namespace
}  // namespace tutti::harness::process

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

TEST(Agent, APathWithBlanksIsQuotedForSshAlone) {
  EXPECT_EQ(word_for_agent("/x/agent", "/opt/tutti-0.2/bin/tutti").value(), "/opt/tutti-0.2/bin/tutti");
  EXPECT_EQ(word_for_agent("/usr/bin/ssh -p 22", "/opt/my tools (2)/tutti").value(), "'/opt/my tools (2)/tutti'");
  for (const char* program : {"/opt/a'b/tutti", "/opt/$HOME/tutti", "/opt/a!b/tutti", "/opt/a\\b/tutti", "/opt/a\nb"}) {
    EXPECT_EQ(word_for_agent("ssh", program).status().code(), Code::unavailable) << program;
  }
  const Status other = word_for_agent("/x/agent", "/opt/my tools/tutti").status();
  EXPECT_EQ(other.code(), Code::unavailable);
  EXPECT_THAT(other.message(), testing::HasSubstr("with ssh as agent, blanks and brackets are allowed"));
}

}  // namespace
}  // namespace tutti::harness::process

// SPDX-License-Identifier: Apache-2.0
#include "harness/text/redaction.h"

#include <gtest/gtest.h>

namespace tutti::harness::text {
namespace {

TEST(Redaction, LeavesTheProgramOfACommand) {
  EXPECT_EQ(without_arguments("ssh"), "ssh");
  EXPECT_EQ(without_arguments("/opt/my agent"), "/opt/my (redacted)");
  EXPECT_EQ(without_arguments("sshpass -p hunter2 ssh"), "sshpass (redacted)");
  EXPECT_EQ(without_arguments("  ssh  "), "ssh");
  EXPECT_EQ(without_arguments("sshpass\t-phunter2"), "sshpass (redacted)");
  EXPECT_EQ(without_arguments("SSHPASS=hunter2 ssh"), "(redacted)");
  EXPECT_EQ(without_arguments(""), "");
}

TEST(Redaction, LeavesAnAddressWithoutItsLogin) {
  EXPECT_EQ(without_logins("tcp://user:hunter2@host:1234/a@b"), "tcp://(redacted)@host:1234/a@b");
  EXPECT_EQ(without_logins("--init=tcp://u:p@w@host"), "--init=tcp://(redacted)@host");
  EXPECT_EQ(without_logins("tcp://host:1 //x:y@z"), "tcp://host:1 //(redacted)@z");
  EXPECT_EQ(without_logins("a@b/c"), "a@b/c");
}

}  // namespace
}  // namespace tutti::harness::text

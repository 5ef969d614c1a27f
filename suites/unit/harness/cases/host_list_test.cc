// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

std::string hosts_in(std::string_view text) {
  const auto hosts = parse_hosts(text);
  return hosts.is_ok() ? to_text(hosts.value()) : hosts.status().message();
}

std::vector<int> ranks_dealt(std::string_view text, int ranks) {
  const Hosts hosts = dealt_to(parse_hosts(text).value(), ranks);
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(hosts.host_of(rank));
  return host_of;
}

TEST(HostList, NamesAndSlots) {
  EXPECT_EQ(hosts_in("a"), "a:1");
  EXPECT_EQ(hosts_in("a:2,b:3,a"), "a:3,b:3");
  EXPECT_EQ(hosts_in("me@node-1.example:16"), "me@node-1.example:16");
  EXPECT_EQ(hosts_in("[2001:db8::7]:2,[::1]"), "[2001:db8::7]:2,[::1]:1");
}

TEST(HostList, WhatIsNone) {
  EXPECT_THAT(hosts_in(""), testing::HasSubstr("'' is no name of a host"));
  EXPECT_THAT(hosts_in("a,,b"), testing::HasSubstr("'' is no name of a host"));
  EXPECT_THAT(hosts_in("-v"), testing::HasSubstr("'-v' is no name of a host"));
  EXPECT_THAT(hosts_in("a;reboot"), testing::HasSubstr("is no name of a host"));
  EXPECT_THAT(hosts_in("a:"), testing::HasSubstr("a number of slots comes after the colon"));
  EXPECT_THAT(hosts_in("a:0"), testing::HasSubstr("did you mean '1'?"));
  EXPECT_THAT(hosts_in("a:9999"), testing::HasSubstr("did you mean '1024'?"));
}

TEST(HostList, AFileHasALineForEach) {
  EXPECT_EQ(to_text(parse_hostfile("# head\n\na slots=2 # comment\n\tb 3\r\nc").value()), "a:2,b:3,c:1");
  EXPECT_THAT(parse_hostfile("a 1 2\n").status().message(), testing::HasSubstr("line 1: 'a 1 2' has 3 words"));
  EXPECT_THAT(parse_hostfile("a\nb two\n").status().message(), testing::HasSubstr("line 2: 'two' is not a number"));
  EXPECT_THAT(parse_hostfile("# none\n").status().message(), testing::HasSubstr("no line names a host"));
}

TEST(HostList, EachInItsTurnGetsOneMoreWhileItHasRoom) {
  EXPECT_EQ(ranks_dealt("a:2,b:2", 2), (std::vector{0, 1}));
  EXPECT_EQ(ranks_dealt("a:2,b:2", 3), (std::vector{0, 0, 1}));
  EXPECT_EQ(ranks_dealt("a:1,b:3", 4), (std::vector{0, 1, 1, 1}));
  EXPECT_EQ(ranks_dealt("a:3,b:1", 3), (std::vector{0, 0, 1}));
  EXPECT_EQ(ranks_dealt("a:3,b:1", 1), (std::vector{0}));
}

}  // namespace
}  // namespace tutti::harness::cases

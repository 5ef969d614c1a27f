// SPDX-License-Identifier: Apache-2.0
#include "impl/types/host_list.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;

template <class Parse>
std::string outcome(Parse parse, std::string_view text) {
  const auto hosts = parse(text);
  return hosts.is_ok() ? to_text(hosts.value()) : hosts.status().message();
}
std::string hosts_in(std::string_view text) { return outcome(parse_hosts, text); }
std::string file_with(std::string_view text) { return outcome(parse_hostfile, text); }
std::string nodes_in(std::string_view text) {
  const auto nodes = parse_nodelist(text);
  return nodes.is_ok() ? fmt::format("{}", fmt::join(nodes.value(), " ")) : nodes.status().message();
}
std::string tasks_in(std::string_view text) {
  const auto tasks = parse_tasks_per_node(text);
  return tasks.is_ok() ? fmt::format("{}", fmt::join(tasks.value(), " ")) : tasks.status().message();
}

TEST(HostList, NamesAndSlots) {
  EXPECT_EQ(hosts_in("a"), "a:1");
  EXPECT_EQ(hosts_in("a:2,b:3,a"), "a:3,b:3") << "the same name twice is one host";
  EXPECT_EQ(hosts_in("me@node-1.example:16"), "me@node-1.example:16");
  EXPECT_EQ(hosts_in("[2001:db8::7]:2,[::1]"), "[2001:db8::7]:2,[::1]:1");
  EXPECT_EQ(hosts_in("[fe80::1%eth0]:2,me@[::1]:4096"), "[fe80::1%eth0]:2,me@[::1]:4096");
  EXPECT_EQ(hosts_in("[2001:DB8:0::7]:2,[2001:db8::7]"), "[2001:db8::7]:3") << "so is the same address";
}

TEST(HostList, WhatIsNoName) {
  for (const char* const text : {"", "a,", ",a", "a,,b"})
    EXPECT_THAT(hosts_in(text), HasSubstr("'' is no name of a host"));
  EXPECT_THAT(hosts_in("a,-v:2"), HasSubstr("'-v' is no name of a host"));
  EXPECT_THAT(hosts_in("a;reboot"), HasSubstr("'a;reboot' is no name of a host"));
  EXPECT_THAT(hosts_in("a, b"), HasSubstr("' b' is no name of a host"));
  EXPECT_THAT(hosts_in("localhost,[-Fevil.cfg]"), HasSubstr("'[-Fevil.cfg]' is no address"));
  EXPECT_THAT(hosts_in("[-Fevil.cfg]:2"), HasSubstr("'[-Fevil.cfg]' is no address"));
  EXPECT_THAT(hosts_in("[1-2]node"), HasSubstr("'[1-2]node' is no address"));
}

TEST(HostList, SlotsAreANumberInTheirRange) {
  EXPECT_THAT(hosts_in("a:"), HasSubstr("a number of slots comes after the colon"));
  EXPECT_THAT(hosts_in("a:0"),
              HasSubstr("'0' is not a number of slots of host 'a': a whole number from 1 to 4096: did you mean '1'?"));
  EXPECT_THAT(hosts_in("a:9999"), HasSubstr("did you mean '4096'?"));
  EXPECT_THAT(hosts_in("a:2x"), HasSubstr("'2x' is not a number of slots"));
  EXPECT_THAT(
      hosts_in("a:4096,b,a:1"),
      HasSubstr("host 'a' is named several times and has 4097 slots in all: 1 to 4096, did you mean 'a:4096'?"));
}

TEST(HostList, AnAddressWithoutBracketsIsRefused) {
  EXPECT_THAT(hosts_in("2001:db8::7"),
              HasSubstr("'2001:db8::7' has several colons: an IPv6 address stands in brackets: write "
                        "[2001:db8::7], or with a number of slots [2001:db8::7]:2"));
  EXPECT_THAT(hosts_in("fd00:1::1,fd00:1::2"), HasSubstr("'fd00:1::1' has several colons"));
  EXPECT_THAT(hosts_in("fd00:1::1:2"), HasSubstr("write [fd00:1::1]:2, or [fd00:1::1:2] for all of it"));
  EXPECT_THAT(hosts_in("fe80::1%eth0"), HasSubstr("write [fe80::1%eth0], or"));
  EXPECT_THAT(hosts_in("a:2:2"), HasSubstr("'a:2:2' has 2 colons: a number of slots comes after one, as in a:2"));
  EXPECT_THAT(hosts_in("[::1]:2:2"), HasSubstr("has 4 colons"));
  EXPECT_THAT(hosts_in("::1"), HasSubstr("has several colons"));
}

TEST(HostList, BracketsBehindLettersAreRanges) {
  EXPECT_EQ(hosts_in("n[1-3,7]:2,m"), "n1:2,n2:2,n3:2,n7:2,m:1");
  EXPECT_EQ(hosts_in("n[08-11]"), "n08:1,n09:1,n10:1,n11:1");
  EXPECT_EQ(hosts_in("n[099-100]"), "n099:1,n100:1");
  EXPECT_EQ(hosts_in("n[001-3]"), "n001:1,n002:1,n003:1") << "as wide as the first number";
  EXPECT_EQ(hosts_in("n[9-11]"), "n9:1,n10:1,n11:1");
  EXPECT_EQ(hosts_in("rack[0-1]node[01-02]:8"), "rack0node01:8,rack0node02:8,rack1node01:8,rack1node02:8");
  EXPECT_EQ(hosts_in("me@n[1-2]-ib.example"), "me@n1-ib.example:1,me@n2-ib.example:1");
  EXPECT_EQ(hosts_in("n[1,1]"), "n1:2");
}

TEST(HostList, WhatIsNoRange) {
  EXPECT_THAT(hosts_in("n[1-2"), HasSubstr("'n[1-2' has a '[' without a ']'"));
  EXPECT_THAT(hosts_in("n[1-2,m"), HasSubstr("'n[1-2,m' has a '[' without a ']'"));
  for (const char* const text : {"n[]", "n[a]", "n[1-]", "n[-1]", "n[1--2]", "n[1,]", "n[1-2-3]", "n[::1]",
                                 "n[-Fevil.cfg]", "n[[1]]", "n[0x1]", "n[1234567890123456789]"}) {
    EXPECT_THAT(hosts_in(text), HasSubstr("is no range of numbers; brackets behind letters hold such ranges")) << text;
  }
  EXPECT_THAT(hosts_in("n[5-2]"), HasSubstr("'n[5-2]': the range '5-2' descends: did you mean '2-5'?"));
  EXPECT_THAT(hosts_in("-n[1-2]"), HasSubstr("'-n1' is no name of a host"));
  EXPECT_THAT(hosts_in("n[1-2]-"), HasSubstr("'n1-' is no name of a host"));
  EXPECT_THAT(hosts_in("n]1[,m"), HasSubstr("'n]1[,m' has a '[' without a ']'"));
  EXPECT_THAT(hosts_in("n1]"), HasSubstr("'n1]' is no name of a host"));
  EXPECT_THAT(hosts_in("a[1]@"), HasSubstr("'a[1]' is no name of a user"));
}

TEST(HostList, ThereIsAMostOfHosts) {
  EXPECT_EQ(parse_hosts("n[1-65536]").value().size(), kMostHosts);
  for (const char* const text :
       {"n[1-65537]", "n[1-999999999999]", "n[0-999]m[0-999]", "n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]",
        "n[1-40000],m[1-40000]", "n[1-40000,1-40000]"}) {
    EXPECT_THAT(hosts_in(text), HasSubstr("names too many hosts: a list has 1 to 65536")) << text;
  }
  std::string again = "n[1-65536]";
  for (int i = 0; i < 4; ++i) again += ",n[1-65536]";
  EXPECT_THAT(hosts_in(again), HasSubstr("has more than 262144 entries"));
}

TEST(HostList, AFileHasALineForEach) {
  EXPECT_EQ(file_with("# head\n\na slots=2 # comment\n\tb 3\r\nc"), "a:2,b:3,c:1");
  EXPECT_EQ(file_with("\xef\xbb\xbfn1:2\r\nn2 2\r\n[fe80::1%eth0]:2\r\n"), "n1:2,n2:2,[fe80::1%eth0]:2");
  EXPECT_EQ(file_with("n1 slots=2 max_slots=4\nn2 slots = 3\nn3 max-slots=4\nn4 slots=2 slots-max=2#x"),
            "n1:2,n2:3,n3:1,n4:2");
  EXPECT_EQ(file_with("n1\nn1\nn2\nn1\n"), "n1:3,n2:1") << "as a batch system writes it: a line for each slot";
  EXPECT_EQ(file_with("n[1-2,4] slots=8\na,b:2\nc,d 2"), "n1:8,n2:8,n4:8,a:1,b:2,c:2,d:2");
}

TEST(HostList, AnErrorOfAFileNamesTheLine) {
  EXPECT_THAT(file_with("a\nb two\n"),
              HasSubstr("line 2: 'two' is not a number of slots of host 'b': a whole number from 1 to "));
  EXPECT_THAT(file_with("# none\n\n"), HasSubstr("no line names a host"));
  EXPECT_THAT(file_with(""), HasSubstr("no line names a host"));
  EXPECT_THAT(file_with("localhost 1\n[-Fevil.cfg] 1\n"), HasSubstr("line 2: '[-Fevil.cfg]' is no address"));
  EXPECT_THAT(file_with("a 1 2\n"), HasSubstr("line 1: host 'a' has two numbers of slots, 1 and '2'"));
  EXPECT_THAT(file_with("a:1 2\n"), HasSubstr("line 1: 'a:1' has two numbers of slots, 1 and 2"));
  EXPECT_THAT(file_with("a slots=0\n"), HasSubstr("'0' is not a number of slots of host 'a'"));
  EXPECT_THAT(file_with("a slots=\n"), HasSubstr("'' is not a number of slots of host 'a'"));
  EXPECT_THAT(file_with("a slots=4 max_slots=2\n"),
              HasSubstr("host 'a' has 4 slots and at most 2: did you mean 'a slots=2'?"));
  EXPECT_THAT(file_with("n1:2 binding=user:0,1\n"),
              HasSubstr("line 1: 'binding=' after 'n1:2' is not known: a name may be "
                        "followed by a number, slots= and max_slots=; leave it out"));
  EXPECT_THAT(file_with("n1 ifname=ib0\n"), HasSubstr("'ifname=' after 'n1' is not known"));
  EXPECT_THAT(file_with("slots=2\n"), HasSubstr("'slots=2' is no name of a host"));
  EXPECT_THAT(file_with("^n1\n"), HasSubstr("'^n1' is no name of a host"));
}

TEST(HostList, ItsTextIsReadBackAsTheSame) {
  for (const char* const text : {"a", "a:2,b", "me@[FE80:0::1%eth0]:3,n[01-03]:2,n02"}) {
    const auto hosts = parse_hosts(text).value();
    EXPECT_EQ(parse_hosts(to_text(hosts)).value(), hosts);
    EXPECT_EQ(to_text(parse_hosts(to_text(hosts)).value()), to_text(hosts));
  }
  EXPECT_EQ(slots_of(parse_hosts("a:2,n[1-3]:4").value()), 14);
}

TEST(HostList, NodesOfSlurm) {
  EXPECT_EQ(nodes_in("a"), "a");
  EXPECT_EQ(nodes_in("a,b"), "a b");
  EXPECT_EQ(nodes_in("n[3,5-7]"), "n3 n5 n6 n7");
  EXPECT_EQ(nodes_in("n[003-004]-ib,m"), "n003-ib n004-ib m");
  EXPECT_EQ(nodes_in("rack[0-1]node[0-1]"), "rack0node0 rack0node1 rack1node0 rack1node1");
  EXPECT_THAT(nodes_in("n["), HasSubstr("has a '[' without a ']'"));
  EXPECT_THAT(nodes_in(""), HasSubstr("'' is no name of a host"));
  EXPECT_THAT(nodes_in("[-Fevil.cfg]"), HasSubstr("is no address"));
  EXPECT_THAT(nodes_in("-v"), HasSubstr("'-v' is no name of a host"));
  EXPECT_THAT(nodes_in("a:2"), HasSubstr("'a:2' is no list of nodes, as in node[01-04,7],other: it has a ':'"));
  EXPECT_THAT(nodes_in("me@a"), HasSubstr("it has a '@'"));
}

TEST(HostList, TasksOfEachNodeOfSlurm) {
  EXPECT_EQ(tasks_in("2"), "2");
  EXPECT_EQ(tasks_in("2(x3),1"), "2 2 2 1");
  for (const char* const text : {"", "0", "2(x0)", "2(x3", "2(3)", "2,", ",2", "x", "-1", "2;3", "1(x65537)",
                                 "1(x40000),1(x40000)", "99999999999"}) {
    EXPECT_THAT(tasks_in(text), HasSubstr("is no list of the tasks of each node, as in 2(x3),1")) << text;
  }
}

}  // namespace
}  // namespace tutti

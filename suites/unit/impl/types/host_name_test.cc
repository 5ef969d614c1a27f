// SPDX-License-Identifier: Apache-2.0
#include "impl/types/host_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;

/// What is parsed, or the error's message.
std::string name_in(std::string_view text) {
  const auto name = parse_host_name(text);
  return name.is_ok() ? name.value() : name.status().message();
}
std::string lone(std::string_view text) {
  const auto host = parse_lone_host(text);
  return host.is_ok() ? host.value() : host.status().message();
}
std::string place_in(std::string_view text) {
  const auto place = parse_host_and_port(text);
  return place.is_ok() ? fmt::format("{} {}", place.value().host, place.value().port) : place.status().message();
}

TEST(HostName, PlainNamesAndAddressesAreTaken) {
  for (const char* const text : {"a", "node-1.example", "rack_7", "192.0.2.7", "me@node1", "[::1]", "me@[2001:db8::7]",
                                 "[fe80::1%eth0]", "[fe80::1%br-0.7_x]", ".", "_x_"}) {
    EXPECT_EQ(name_in(text), text);
  }
  EXPECT_EQ(name_in("[2001:DB8:0:0:0:0:0:7]"), "[2001:db8::7]") << "one address has one text";
}

TEST(HostName, NothingIsTakenThatAnAgentOrAShellReadsOtherwise) {
  for (const char* const text :
       {"-v", "v-",  "-",    "me@-v", "-F@a", "a;b", "a b",  "$(id)", "a`b",      "a'b", "a\"b",
        "a*", "a/b", "a\\b", "a%b",   "a=b",  "a,b", "a\nb", "a\x80", "\xc3\xa4", "@a@"}) {
    EXPECT_THAT(name_in(text), HasSubstr("is no name of a ")) << text;
    EXPECT_FALSE(parse_lone_host(text).is_ok()) << text;
  }
  EXPECT_THAT(name_in(""), HasSubstr("'' is no name of a host: letters, digits, '.', '-' and '_' make one"));
  EXPECT_THAT(name_in("@a"), HasSubstr("'' is no name of a user"));
  EXPECT_THAT(name_in(std::string_view("a\0", 2)), HasSubstr("is no name of a host"));
  EXPECT_THAT(name_in(std::string(256, 'a')), HasSubstr("it has 256 letters, 1 to 255 are allowed"));
  EXPECT_EQ(name_in(std::string(255, 'a')).size(), 255U);
}

TEST(HostName, BracketsHoldAnIpv6AddressAlone) {
  for (const char* const text :
       {"[-Fevil.cfg]", "me@[-Fevil.cfg]", "[-v]", "[]", "[", "[a]", "[::1", "[::1]x", "[::1%]", "[::1%-x y]",
        "[::1%a/b]", "[1-2]", "[1]n[2]", "[::g]", "[1:2]", "[2001:db8::7%eth0%eth1]", "[[::1]]", "[%eth0]"}) {
    EXPECT_THAT(name_in(text),
                HasSubstr("is no address: an entry that begins with a bracket is an IPv6 address, as in "))
        << text;
  }
  EXPECT_THAT(name_in(std::string_view("[::1\0]", 6)), HasSubstr("is no address"));
  EXPECT_THAT(name_in("[192.0.2.7]"), HasSubstr("did you mean '192.0.2.7'?"));
}

TEST(HostName, AProgramThatKnowsNoBracketsGetsNone) {
  EXPECT_EQ(without_brackets("a"), "a");
  EXPECT_EQ(without_brackets("me@a"), "me@a");
  EXPECT_EQ(without_brackets("[fe80::1%eth0]"), "fe80::1%eth0");
  EXPECT_EQ(without_brackets("me@[::1]"), "me@::1");
  EXPECT_EQ(lookup_name("me@[::1]"), "::1");
  EXPECT_EQ(lookup_name("me@a"), "a");
}

TEST(HostName, ALoneHostNeedsNoBrackets) {
  EXPECT_EQ(lone("node7"), "node7");
  EXPECT_EQ(lone("[2001:db8::7]"), "2001:db8::7");
  EXPECT_EQ(lone("2001:db8:0::7"), "2001:db8::7");
  EXPECT_EQ(lone("fe80::1%eth0"), "fe80::1%eth0");
  EXPECT_THAT(lone("[-Fevil.cfg]"), HasSubstr("is no address"));
  EXPECT_THAT(lone("-v"), HasSubstr("is no name of a host"));
  EXPECT_THAT(lone("me@a"), HasSubstr("is no name of a host"));
  EXPECT_THAT(lone("a:1"), HasSubstr("is no name of a host"));
}

TEST(HostName, AHostAndAPort) {
  EXPECT_EQ(place_in("192.0.2.7:29400"), "192.0.2.7 29400");
  EXPECT_EQ(place_in("[2001:db8::7]:1"), "2001:db8::7 1");
  EXPECT_EQ(place_in("[fe80::1%eth0]:65535"), "fe80::1%eth0 65535");
  for (const char* const text : {"a", "a:", "", "[::1]", "[::1", "[::1]:"}) {
    EXPECT_THAT(place_in(text), HasSubstr("has no port: it takes a host and a port of 1 to 65535")) << text;
  }
  EXPECT_THAT(place_in("a:0"), HasSubstr("'0' is not a port: a whole number from 1 to 65535: did you mean '1'?"));
  EXPECT_THAT(place_in("a:65536"), HasSubstr("did you mean '65535'?"));
  EXPECT_THAT(place_in(":5"), HasSubstr("'' is no name of a host"));
  EXPECT_THAT(place_in("-v:5"), HasSubstr("'-v' is no name of a host"));
  EXPECT_THAT(place_in("me@a:5"), HasSubstr("is no name of a host"));
  EXPECT_THAT(place_in("[-Fevil.cfg]:5"), HasSubstr("'[-Fevil.cfg]' is no address"));
  EXPECT_THAT(place_in("fd00:1::1:5"), HasSubstr("write [fd00:1::1]:5, or [fd00:1::1:5] for all of it"));
  EXPECT_THAT(place_in("2001:db8::7"), HasSubstr("write [2001:db8::7], or with a port [2001:db8::7]:2"));
  EXPECT_THAT(place_in("fd00:1::1:\x1f"), HasSubstr("'fd00:1::1:\\x1f' has 4 colons: a port comes after one"));
  EXPECT_THAT(place_in("a:5:5"), HasSubstr("'a:5:5' has 2 colons: a port comes after one"));
}

TEST(HostName, WhateverAMachineCallsItselfBecomesAName) {
  EXPECT_EQ(plain_host_name("node-1.example"), "node-1.example");
  EXPECT_EQ(plain_host_name("-v"), "_v");
  EXPECT_EQ(plain_host_name("v-"), "v_");
  EXPECT_EQ(plain_host_name("-"), "_");
  EXPECT_EQ(plain_host_name(""), "_");
  EXPECT_EQ(plain_host_name("a\xff b\x1b"), "a__b_");
  EXPECT_EQ(plain_host_name("[-Fx]"), "_-Fx_");
  EXPECT_TRUE(parse_host_name(plain_host_name(std::string(1000, '-')) + "-1").is_ok());
}

TEST(HostName, AnInterfaceIsANameOrAnAddress) {
  for (const char* const text : {"eth0", "eth0:1", "br-lan", "veth1@if2", "192.0.2.7", "2001:db8::7", "fe80::1%eth0"}) {
    EXPECT_TRUE(check_interface(text).is_ok()) << text;
  }
  for (const char* const text : {"", "-i", "--help", "a b", "eth0;", "a\n", "[::1]"}) {
    EXPECT_THAT(check_interface(text).message(), HasSubstr("is neither a name of an interface nor an address")) << text;
  }
}

}  // namespace
}  // namespace tutti

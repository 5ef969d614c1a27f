// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/interface.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::tcp {
namespace {

TEST(Interface, LoopbackIsAnAddressNotAName) {
  for (const char* const one : {"127.0.0.1", "127.0.1.1", "::1"}) EXPECT_TRUE(is_loopback(one)) << one;
  for (const char* const one : {"128.0.0.1", "192.0.2.7", "2001:db8::1", "127.node", "localhost", ""}) {
    EXPECT_FALSE(is_loopback(one)) << one;
  }
}

TEST(Interface, OthersComeAtOneAddressOfEach) {
  std::set<std::string> names;
  for (const OwnAddress& one : addresses_for_others()) {
    EXPECT_FALSE(is_loopback(one.address)) << one.address;
    EXPECT_FALSE(one.address.starts_with("fe80:")) << one.address;
    EXPECT_TRUE(names.insert(one.interface).second) << one.interface;
    EXPECT_EQ(interface_with(one.address), one.interface);
    EXPECT_TRUE(address_of_interface(one.interface).is_ok());
    const auto of_network = address_of_interface(subnet_of(one.address));
    ASSERT_TRUE(of_network.is_ok()) << of_network.status().message();
    EXPECT_EQ(subnet_of(of_network.value()), subnet_of(one.address));
  }
}

TEST(Interface, ALoopbackNameKeepsItsAddress) { EXPECT_TRUE(is_loopback(address_of_host("localhost").value())); }

}  // namespace
}  // namespace tutti::tcp

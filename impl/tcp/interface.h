// SPDX-License-Identifier: Apache-2.0
// The addresses of this machine: which one others reach it at.
#pragma once

#include <string>
#include <vector>

#include "impl/types/status.h"

namespace tutti::tcp {

/// Of an interface by its name or its network, or an address of this machine as it is: "eth0", "192.0.2.0/24",
/// "192.0.2.7", "2001:db8::7". IPv4 before IPv6. Errors: invalid_argument naming the interfaces that there are.
[[nodiscard]] Result<std::string> address_of_interface(const std::string& text);
/// That of the route to a machine, by its name or address. Nothing is sent, but to look its name up.
/// Errors: unavailable where the name is not known, or there is no route.
[[nodiscard]] Result<std::string> address_towards(const std::string& host);
/// The first of a machine's addresses, by its name; a loopback address only where it has no other. Errors: unavailable
/// where the name is not known.
[[nodiscard]] Result<std::string> address_of_host(const std::string& host);
/// Whether only this machine can be reached at an address: 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(const std::string& address);

struct OwnAddress {
  std::string interface;
  std::string address;
};
/// At which other machines may reach this one: the first address of each interface that runs, IPv6 only where none has
/// IPv4. Neither loopback nor link-local.
[[nodiscard]] std::vector<OwnAddress> addresses_for_others();
/// The name of the interface that has an address of this machine. Empty where none has it.
[[nodiscard]] std::string interface_with(const std::string& address);
/// At which the other end of a connection sees this machine. Errors: io.
[[nodiscard]] Result<std::string> own_address(int socket);
/// The longest packet that the route of a connection takes, in bytes, as far as the kernel knows; 0: it does not tell.
[[nodiscard]] int mtu_of_route(int socket);
/// The network that an address of this machine is in: "192.0.2.0/24". Of the address alone where no interface has it.
[[nodiscard]] std::string subnet_of(const std::string& address);
/// What this machine calls itself.
[[nodiscard]] std::string hostname();
/// Whether a name is one of this machine: localhost, its own, or one whose address it has.
[[nodiscard]] bool is_this_machine(const std::string& name);

}  // namespace tutti::tcp

// SPDX-License-Identifier: Apache-2.0
// How hosts are named wherever a user, a starter or a file names them. A name is made of ASCII letters, digits, '.',
// '-' and '_', and neither begins nor ends with '-': an agent such as ssh takes what begins with a dash for an option
// of its own, and a shell gives other characters a meaning. An IPv6 address stands in brackets, because it has colons:
// [2001:db8::7], [fe80::1%eth0]. Both may follow a user: me@node1.
//
// Every function below is pure. Errors: invalid_argument naming the text and what is allowed.
#pragma once

#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

inline constexpr int kMostPort = 65535;

/// `[USER@]NAME` or `[USER@][ADDRESS]`. The result is canonical: an address is in its shortest form, in its brackets.
[[nodiscard]] Result<std::string> parse_host_name(std::string_view text);

/// A canonical name as a program takes it that knows no brackets: me@[::1] becomes me@::1.
[[nodiscard]] std::string without_brackets(std::string_view name);
/// The same without the user: a text that can be looked up.
[[nodiscard]] std::string lookup_name(std::string_view name);

/// A host that is no entry of a list, such as MASTER_ADDR: a name, or an address with or without brackets. It has no
/// user. The result has no brackets.
[[nodiscard]] Result<std::string> parse_lone_host(std::string_view text);

struct HostAndPort {
  std::string host;  ///< without brackets
  int port = 0;      ///< 1 to kMostPort

  bool operator==(const HostAndPort&) const = default;
};
/// `HOST:PORT`, with an IPv6 address in brackets.
[[nodiscard]] Result<HostAndPort> parse_host_and_port(std::string_view text);

/// Returns a name that parse_host_name accepts for what a machine calls itself, which may hold any bytes: '_' takes the
/// place of each byte that no name has.
[[nodiscard]] std::string plain_host_name(std::string_view hostname);

/// Checks the name of an interface, or the address of one: eth0, eth0:1, 192.0.2.7, fe80::1%eth0.
[[nodiscard]] Status check_interface(std::string_view text);

/// The error of a text with several colons and no brackets. `number`: what follows a colon, as in "a port".
[[nodiscard]] Status too_many_colons(std::string_view text, std::string_view number);

}  // namespace tutti

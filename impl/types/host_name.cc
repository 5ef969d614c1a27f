// SPDX-License-Identifier: Apache-2.0
#include "impl/types/host_name.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <optional>

#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti {
namespace {

constexpr std::size_t kMostNameBytes = 255;
constexpr std::size_t kMostInterfaceBytes = 32;
constexpr std::string_view kRule =
    "letters, digits, '.', '-' and '_' make one, which neither begins nor ends with '-', as in a:2,b:2";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_plain(char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_'; }

Status check_plain(std::string_view text, std::string_view kind) {
  const bool has_dash = text.starts_with('-') || text.ends_with('-');
  if (!text.empty() && !has_dash && text.size() <= kMostNameBytes && std::ranges::all_of(text, is_plain)) return {};
  if (text.size() > kMostNameBytes && std::ranges::all_of(text, is_plain)) {
    return error(Code::invalid_argument, "'{}' is no name of a {}: it has {} letters, 1 to {} are allowed", shown(text),
                 kind, text.size(), kMostNameBytes);
  }
  return error(Code::invalid_argument, "'{}' is no name of a {}: {}", shown(text), kind, kRule);
}

/// The address in its shortest form; nothing if it is no address of the family. It may hold any bytes.
std::optional<std::string> address_of(int family, std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> result{};
  const std::string terminated(text);
  if (text.size() >= result.size() || text.find('\0') != std::string_view::npos) return std::nullopt;
  if (inet_pton(family, terminated.c_str(), bytes.data()) != 1) return std::nullopt;
  inet_ntop(family, bytes.data(), result.data(), result.size());
  return result.data();
}

/// The same of an IPv6 address that may have a zone: fe80::1%eth0.
std::optional<std::string> ipv6_of(std::string_view text) {
  const std::size_t percent = std::min(text.find('%'), text.size());
  const std::string_view zone = text.substr(std::min(percent + 1, text.size()));
  auto address = address_of(AF_INET6, text.substr(0, percent));
  if (!address || percent == text.size()) return address;
  if (zone.empty() || zone.size() > kMostInterfaceBytes || !std::ranges::all_of(zone, is_plain)) return std::nullopt;
  return fmt::format("{}%{}", *address, zone);
}

/// `text` begins with a bracket.
Result<std::string> bracketed(std::string_view text) {
  const std::string_view inner = text.ends_with(']') ? text.substr(1, text.size() - 2) : "";
  if (const auto address = ipv6_of(inner)) return fmt::format("[{}]", *address);
  if (const auto ipv4 = address_of(AF_INET, inner)) {
    return error(Code::invalid_argument, "'{}' is no IPv6 address, which brackets are for: did you mean '{}'?",
                 shown(text), *ipv4);
  }
  return error(Code::invalid_argument,
               "'{}' is no address: an entry that begins with a bracket is an IPv6 address, as in [2001:db8::7]:2 or "
               "[fe80::1%eth0]:2",
               shown(text));
}

/// A name, or an address in brackets.
Result<std::string> without_user(std::string_view text) {
  if (text.starts_with('[')) return bracketed(text);
  if (std::ranges::count(text, ':') > 1 && ipv6_of(text)) return too_many_colons(text, "a number");
  TUTTI_RETURN_IF_ERROR(check_plain(text, "host"));
  return std::string(text);
}

/// Where the name begins behind a user.
std::size_t begin_of_name(std::string_view text) { return text.rfind('@') + 1; }

}  // namespace

Result<std::string> parse_host_name(std::string_view text) {
  const std::size_t name = begin_of_name(text);
  if (name > 0) TUTTI_RETURN_IF_ERROR(check_plain(text.substr(0, name - 1), "user"));
  TUTTI_ASSIGN_OR_RETURN(const std::string host, without_user(text.substr(name)));
  return fmt::format("{}{}", text.substr(0, name), host);
}

std::string lookup_name(std::string_view name) {
  name.remove_prefix(begin_of_name(name));
  if (name.size() > 1 && name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  return std::string(name);
}

std::string without_brackets(std::string_view name) {
  return fmt::format("{}{}", name.substr(0, begin_of_name(name)), lookup_name(name));
}

Result<std::string> parse_lone_host(std::string_view text) {
  if (const auto address = ipv6_of(text)) return *address;
  TUTTI_ASSIGN_OR_RETURN(const std::string host, without_user(text));
  return lookup_name(host);
}

Result<HostAndPort> parse_host_and_port(std::string_view text) {
  constexpr std::string_view kPort = "a port";
  const bool is_address = text.starts_with('[');
  const std::size_t close = is_address ? text.find(']') : 0;
  const std::size_t colon = close == std::string_view::npos ? close : text.find(':', close);
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return error(Code::invalid_argument,
                 "'{}' has no port: it takes a host and a port of 1 to {}, as in 192.0.2.7:29400", shown(text),
                 kMostPort);
  }
  const std::string_view port = text.substr(colon + 1);
  if (port.find(':') != std::string_view::npos) return too_many_colons(text, kPort);
  HostAndPort result;
  TUTTI_ASSIGN_OR_RETURN(const std::string host, without_user(text.substr(0, colon)));
  result.host = lookup_name(host);
  TUTTI_ASSIGN_OR_RETURN(result.port, parse_number(port, kPort, 1, kMostPort));
  return result;
}

std::string plain_host_name(std::string_view hostname) {
  constexpr std::size_t kMostOwn = kMostNameBytes - 15;  // room for what tells two hosts of one name apart
  std::string name(hostname.substr(0, kMostOwn));
  std::ranges::replace_if(
      name, [](char c) { return !is_plain(c); }, '_');
  if (name.empty()) return "_";
  if (name.front() == '-') name.front() = '_';
  if (name.back() == '-') name.back() = '_';
  return name;
}

Status check_interface(std::string_view text) {
  const auto is_part = [](char c) { return is_plain(c) || c == ':' || c == '@'; };
  const bool is_name = !text.empty() && text.size() < kMostInterfaceBytes && !text.starts_with('-') &&
                       std::ranges::all_of(text, is_part);
  if (is_name || ipv6_of(text)) return {};
  return error(Code::invalid_argument, "'{}' is neither a name of an interface nor an address, as in eth0 or 192.0.2.7",
               shown(text));
}

Status too_many_colons(std::string_view text, std::string_view number) {
  const std::size_t last = text.rfind(':');
  const std::string_view head = text.substr(0, last), tail = text.substr(last + 1);
  const auto say = [&](const std::string& write) {
    return error(Code::invalid_argument, "'{}' has several colons: an IPv6 address stands in brackets: write {}",
                 shown(text), write);
  };
  const bool is_all = ipv6_of(text).has_value();
  const bool has_number = !tail.empty() && std::ranges::all_of(tail, is_digit);
  if (ipv6_of(head) && has_number) {
    return say(fmt::format("[{}]:{}{}", head, shown(tail), is_all ? fmt::format(", or [{}] for all of it", text) : ""));
  }
  if (is_all) return say(fmt::format("[{0}], or with {1} [{0}]:2", text, number));
  return error(Code::invalid_argument,
               "'{}' has {} colons: {} comes after one, as in a:2, and an IPv6 address stands in brackets, as in "
               "[2001:db8::7]:2",
               shown(text), std::ranges::count(text, ':'), number);
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/interface.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "impl/types/descriptor.h"
#include "impl/types/host_name.h"

namespace tutti::tcp {
namespace {

struct Interface {
  std::string name;
  std::string address;
  int family = AF_INET;
  std::string subnet;
  bool is_running = false;
};

std::string text_of(const sockaddr* address) {
  const bool is_ipv6 = address->sa_family == AF_INET6;
  std::array<char, NI_MAXHOST> host{};
  const auto bytes = static_cast<socklen_t>(is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  if (getnameinfo(address, bytes, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host.data();
}

/// The bytes of an address; empty where it is of neither family.
std::span<const std::uint8_t> bytes_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return {reinterpret_cast<const std::uint8_t*>(&ipv4), sizeof(ipv4)};
  }
  if (address->sa_family != AF_INET6) return {};
  return reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr.s6_addr;
}

std::string subnet_of(const sockaddr* address, const sockaddr* mask) {
  const auto own = bytes_of(address);
  const auto kept = bytes_of(mask);
  if (own.empty() || own.size() != kept.size()) return "";
  std::array<std::uint8_t, 16> network{};
  int bits = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    network[i] = own[i] & kept[i];
    bits += std::popcount(kept[i]);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address->sa_family, network.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), bits);
}

/// With an address each, IPv4 first.
std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, &freeifaddrs);
  std::vector<Interface> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0) continue;
      found.push_back({.name = one->ifa_name,
                       .address = text_of(one->ifa_addr),
                       .family = family,
                       .subnet = one->ifa_netmask == nullptr ? "" : subnet_of(one->ifa_addr, one->ifa_netmask),
                       .is_running = (one->ifa_flags & IFF_RUNNING) != 0});
    }
  }
  return found;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> look_up(const std::string& host) {
  const std::string name = lookup_name(host);
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(name.c_str(), "9", &wanted, &found);
  if (failure != 0) return error(Code::unavailable, "'{}' has no address here: {}", name, gai_strerror(failure));
  return Addresses(found, &freeaddrinfo);
}

}  // namespace

Result<std::string> address_of_interface(const std::string& text) {
  const std::vector<Interface> all = interfaces();
  std::vector<std::string> names;
  for (const Interface& one : all) {
    if (one.name == text || one.address == text || one.subnet == text) return one.address;
    names.push_back(fmt::format("{} ({})", one.name, one.address));
  }
  // Every address of 127.0.0.0/8 is of this machine.
  if (is_loopback(text)) return text;
  return error(Code::invalid_argument, "'{}' is neither an interface of this machine nor its address; there are: {}",
               text, fmt::join(names, ", "));
}

Result<std::string> address_towards(const std::string& host) {
  TUTTI_ASSIGN_OR_RETURN(const Addresses found, look_up(host));
  const Descriptor socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0) {
    return error(Code::unavailable, "there is no route to '{}': {}", host, std::strerror(errno));
  }
  return own_address(socket.get());
}

Result<std::string> address_of_host(const std::string& host) {
  TUTTI_ASSIGN_OR_RETURN(const Addresses found, look_up(host));
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (std::string address = text_of(one->ai_addr); !is_loopback(address)) return address;
  }
  return text_of(found->ai_addr);
}

bool is_loopback(const std::string& address) {
  return address == "::1" || (address.starts_with("127.") && std::ranges::count(address, '.') == 3);
}

std::vector<OwnAddress> addresses_for_others() {
  constexpr const char* kLinkLocal = "fe80:";
  const std::vector<Interface> all = interfaces();
  std::vector<OwnAddress> found;
  for (const int family : {AF_INET, AF_INET6}) {
    if (!found.empty()) break;
    for (const Interface& one : all) {
      if (one.family != family || !one.is_running || is_loopback(one.address)) continue;
      const bool has_one = std::ranges::find(found, one.name, &OwnAddress::interface) != found.end();
      if (!has_one && !one.address.starts_with(kLinkLocal)) found.push_back({one.name, one.address});
    }
  }
  return found;
}

Result<std::string> own_address(int socket) {
  sockaddr_storage name = {};
  socklen_t bytes = sizeof name;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0)
    return error(Code::io, "a socket has no address: {}", std::strerror(errno));
  return text_of(reinterpret_cast<const sockaddr*>(&name));
}

int mtu_of_route(int socket) {
  for (const auto& [level, option] : {std::pair(IPPROTO_IP, IP_MTU), {IPPROTO_IPV6, IPV6_MTU}}) {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    if (getsockopt(socket, level, option, &bytes, &length) == 0) return bytes;
  }
  return 0;
}

std::string interface_with(const std::string& address) {
  const std::vector<Interface> all = interfaces();
  const auto own = std::ranges::find(all, address, &Interface::address);
  return own == all.end() ? "" : own->name;
}

std::string subnet_of(const std::string& address) {
  const std::vector<Interface> all = interfaces();
  const auto own = std::ranges::find(all, address, &Interface::address);
  if (own != all.end() && !own->subnet.empty()) return own->subnet;
  return address + (address.find(':') == std::string::npos ? "/32" : "/128");
}

std::string hostname() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

bool is_this_machine(const std::string& name) {
  if (name == "localhost" || name == hostname()) return true;
  const auto found = look_up(name);
  if (!found.is_ok()) return false;
  const std::string address = text_of(found.value()->ai_addr);
  return address_of_interface(address).is_ok();
}

}  // namespace tutti::tcp

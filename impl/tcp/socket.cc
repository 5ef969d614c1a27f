// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "impl/types/host_name.h"

namespace tutti::tcp {
namespace {

constexpr int kBacklog = 512;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> look_up(const std::string& host, const std::string& port) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (failure != 0) {
    return error(Code::invalid_argument,
                 "'{}' port '{}' is no address: {}; one is 192.0.2.7:4711 or [2001:db8::7]:4711", host, port,
                 gai_strerror(failure));
  }
  return Addresses(found, &freeaddrinfo);
}

/// `get`: getsockname or getpeername.
std::string address_by(decltype(getsockname)* get, int socket) {
  sockaddr_storage name = {};
  socklen_t bytes = sizeof name;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (get(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return "";
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return "";
  getnameinfo(reinterpret_cast<sockaddr*>(&name), bytes, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return with_port(host.data(), std::atoi(port.data()));
}

/// Small frames leave at once. A peer that is gone without a word is noticed though nothing is sent to it.
void set_options(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
}

Moved moved(ssize_t n, bool is_read) {
  if (n > 0) return {.bytes = static_cast<std::size_t>(n)};
  if (n == 0) return {.has_ended = is_read};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {.has_ended = true, .error = errno};
}

}  // namespace

std::string with_port(std::string_view interface, int port) {
  const bool is_ipv6 = interface.find(':') != std::string_view::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", interface, port) : fmt::format("{}:{}", interface, port);
}

Result<Listener> listen_on(std::string_view interface, int port) {
  TUTTI_ASSIGN_OR_RETURN(const Addresses found, look_up(std::string(interface), std::to_string(port)));
  Listener listener{.socket = Descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))};
  const int socket = listener.socket.get();
  const int yes = 1;  // connections of a job that has ended do not keep its port
  if (port != 0) (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket < 0 || bind(socket, found->ai_addr, found->ai_addrlen) != 0 || listen(socket, kBacklog) != 0) {
    const Code code = port != 0 && errno == EADDRINUSE ? Code::unavailable : Code::io;
    return error(code, "cannot listen at {}: {}", port == 0 ? std::string(interface) : with_port(interface, port),
                 std::strerror(errno));
  }
  listener.address = address_by(getsockname, socket);
  return listener;
}

Descriptor accept_from(int listener) {
  Descriptor accepted(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.is_open()) set_options(accepted.get());
  return accepted;
}

Result<Descriptor> connect_to(std::string_view address) {
  TUTTI_ASSIGN_OR_RETURN(const HostAndPort place, parse_host_and_port(address));
  TUTTI_ASSIGN_OR_RETURN(const Addresses found, look_up(place.host, std::to_string(place.port)));
  Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return error(Code::resource, "cannot make a socket: {}", std::strerror(errno));
  set_options(socket.get());
  if (connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return error(may_pass(errno) ? Code::io : Code::unavailable, "cannot connect to {}: {}", address,
                 std::strerror(errno));
  }
  return socket;
}

std::string peer_of(int socket) {
  const std::string address = address_by(getpeername, socket);
  return address.empty() ? "the other end" : address;
}

int error_of(int socket) {
  int failure = 0;
  socklen_t bytes = sizeof failure;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &bytes) == 0 ? failure : errno;
}

bool may_pass(int error_number) {
  constexpr std::array kPassing{ECONNREFUSED, ECONNRESET, ECONNABORTED, ETIMEDOUT, EAGAIN, EINTR, EPIPE};
  return std::ranges::find(kPassing, error_number) != kPassing.end();
}

Moved read_some(int socket, std::span<const iovec> parts) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return moved(recvmsg(socket, &message, MSG_DONTWAIT), true);
}

Moved write_some(int socket, std::span<const iovec> parts) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return moved(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL), false);
}

}  // namespace tutti::tcp

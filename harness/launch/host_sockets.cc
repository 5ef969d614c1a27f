// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/host_sockets.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <poll.h>

#include <fmt/ranges.h>

#include "impl/tcp/socket.h"

namespace tutti::harness::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostCallers = 64;
constexpr std::chrono::seconds kPatienceWithCallers(2);

}  // namespace

// Of two hosts the one with the lower number connects. All listen before anybody knows an address.
Result<std::vector<HostSocket>> connect_to_hosts(const HostSockets& request) {
  struct Half {
    int host = -1;  ///< -1: not known yet
    Descriptor socket;
    tcp::Greeting greeting;
    bool is_connected = false;
    Clock::time_point since;
  };
  std::list<Half> halves;
  std::vector<HostSocket> sockets;
  const std::size_t wanted = request.others.size();
  for (const int host : request.others) {
    if (host < request.host) continue;
    TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce nonce, tcp::draw_nonce());
    TUTTI_ASSIGN_OR_RETURN(Descriptor socket, tcp::connect_to(request.addresses[static_cast<std::size_t>(host)]));
    halves.push_back({.host = host,
                      .socket = std::move(socket),
                      .greeting = tcp::Greeting::of_client(request.secret, nonce,
                                                           {.role = request.role,
                                                            .from = static_cast<std::uint32_t>(request.host),
                                                            .to = static_cast<std::uint32_t>(host)}),
                      .since = Clock::now()});
  }
  const auto is_there = [&](int host) { return std::ranges::find(sockets, host, &HostSocket::host) != sockets.end(); };
  const auto is_other = [&](int host) { return std::ranges::find(request.others, host) != request.others.end(); };
  const auto end = Clock::now() + request.timeout;
  while (sockets.size() < wanted) {
    if (Clock::now() > end) {
      std::vector<int> missing;
      for (const int host : request.others) {
        if (!is_there(host)) missing.push_back(host);
      }
      return error(Code::timeout, "rank {} has no connection for {} to rank {} within {:.1f} s", request.host,
                   request.what, fmt::join(missing, ", "), std::chrono::duration<double>(request.timeout).count());
    }
    std::vector<pollfd> set{{.fd = request.listener, .events = POLLIN, .revents = 0}};
    for (const Half& half : halves) {
      const bool writes = (half.host >= 0 && !half.is_connected) || half.greeting.wants_to_write();
      set.push_back(
          {.fd = half.socket.get(), .events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), .revents = 0});
    }
    ::poll(set.data(), set.size(), 100);
    auto ready = std::next(set.begin());
    for (auto half = halves.begin(); half != halves.end(); ++ready) {
      const bool is_client = half->host >= 0;
      if (is_client && !half->is_connected && ready->revents == 0) {
        ++half;
        continue;
      }
      if (is_client && !half->is_connected) {
        if (const int failure = tcp::error_of(half->socket.get()); failure != 0) {
          return error(Code::io, "rank {} does not reach rank {} at {}: {}", request.host, half->host,
                       request.addresses[static_cast<std::size_t>(half->host)], std::strerror(failure));
        }
        half->is_connected = true;
      }
      auto state = half->greeting.step(half->socket.get());
      if (state == tcp::Greeting::State::claimed) {
        half->greeting.answer(tcp::Verdict::welcome);
        state = half->greeting.step(half->socket.get());
      }
      if (state == tcp::Greeting::State::done) {
        const tcp::Claim& claim = half->greeting.claim();
        const int host = is_client ? half->host : static_cast<int>(claim.from);
        const bool is_mine = claim.role == request.role && is_other(host) && !is_there(host);
        if (is_mine) sockets.push_back({.host = host, .socket = std::move(half->socket)});
        half = halves.erase(half);
      } else if (state == tcp::Greeting::State::failed && is_client) {
        return error(Code::mismatch, "who listens at {} did not show that it is of this job",
                     request.addresses[static_cast<std::size_t>(half->host)]);
      } else if (state == tcp::Greeting::State::failed ||
                 (!is_client && Clock::now() - half->since > kPatienceWithCallers)) {
        half = halves.erase(half);
      } else {
        ++half;
      }
    }
    while (halves.size() < kMostCallers + wanted) {
      Descriptor socket = tcp::accept_from(request.listener);
      if (!socket.is_open()) break;
      TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce nonce, tcp::draw_nonce());
      halves.push_back({.socket = std::move(socket),
                        .greeting = tcp::Greeting::of_server(request.secret, nonce),
                        .since = Clock::now()});
    }
  }
  return sockets;
}

}  // namespace tutti::harness::launch

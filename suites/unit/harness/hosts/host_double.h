// SPDX-License-Identifier: Apache-2.0
// One end of a sealed connection between a launcher and a host, which a test plays.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <poll.h>
#include <string>
#include <utility>

#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/process/waits.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/socket.h"

namespace tutti::harness::hosts {

constexpr std::chrono::seconds kPlayed(20);  ///< a test that waits for longer has failed

/// The other end as a host; not open if the launcher does not let it in. `go_on` is called while it waits.
inline FrameStream come_as_host(const std::string& address, const std::string& key, std::uint32_t host,
                                const std::function<void()>& go_on) {
  auto socket = tcp::connect_to(address);
  if (!socket.is_ok()) return {};
  tcp::Greeting greeting = tcp::Greeting::of_client(tcp::secret_from(key).value(), tcp::draw_nonce().value(),
                                                    {.role = tcp::Role::machine, .from = host});
  const auto is_over = [&] {
    go_on();
    const auto state = greeting.step(socket.value().get());
    return state == tcp::Greeting::State::done || state == tcp::Greeting::State::failed;
  };
  if (!nap_until(kPlayed, is_over) || greeting.state() == tcp::Greeting::State::failed) return {};
  return {std::move(socket).value(), greeting.session()};
}

/// The other end as a launcher; not open if who comes does not know the key.
inline FrameStream let_host_in(int listener, const std::string& key) {
  Descriptor socket;
  if (!nap_until(kPlayed, [&] { return (socket = tcp::accept_from(listener)).is_open(); })) return {};
  tcp::Greeting greeting =
      tcp::Greeting::of_server(tcp::secret_from(key).value(), tcp::draw_nonce().value(), tcp::Role::machine);
  const auto is_over = [&] {
    if (greeting.step(socket.get()) == tcp::Greeting::State::claimed) {
      greeting.answer(tcp::Verdict::welcome);
      greeting.step(socket.get());
    }
    return greeting.state() == tcp::Greeting::State::done || greeting.state() == tcp::Greeting::State::failed;
  };
  if (!nap_until(kPlayed, is_over) || greeting.state() == tcp::Greeting::State::failed) return {};
  return {std::move(socket), greeting.session()};
}

/// The text of the next frame of a type; others are skipped. Nothing if the stream ends or is silent.
inline std::optional<std::string> next_of(
    FrameStream& stream, std::string_view type, const std::function<void()>& go_on = [] {}) {
  std::optional<std::string> text;
  const auto has_come = [&] {
    go_on();
    stream.go_on();
    for (;;) {
      auto frame = stream.next();
      if (!frame.is_ok() || !frame.value()) return !stream.is_open();
      if (frame.value()->type == type) text = std::move(frame.value()->text);
      if (text) return true;
    }
  };
  nap_until(kPlayed, has_come);
  return text;
}

}  // namespace tutti::harness::hosts

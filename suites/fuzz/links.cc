// SPDX-License-Identifier: Apache-2.0
// What comes over a connection between two hosts: the greeting, and then frames.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <vector>

#include "impl/tcp/greeting.h"
#include "impl/transports/tcp/frames.h"
#include "impl/types/descriptor.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

constexpr DomainShape kShape{
    .ranks = 2, .generations = 4, .slots = 4, .slot_bytes = 256, .pair_slots = 2, .pair_slot_bytes = 128};
constexpr std::array kChannels{ChannelOf::collectives, ChannelOf::sends};
constexpr std::byte kUntouched{0xa5};

/// One rank's end of a link, and what it has of the rank at the other end.
class LinkEnd {
 public:
  LinkEnd() {
    for (const ChannelOf channel : kChannels) {
      std::ranges::fill(slots_to(channel), kUntouched);
      std::ranges::fill(slots_from(channel), kUntouched);
    }
  }

  /// Takes `bytes` in pieces of at most `at_once`, until the first error. What has a place already goes there directly.
  /// After each piece the rank releases all that has come, where `releases`.
  void take(std::string_view bytes, std::size_t at_once, bool releases) {
    while (!bytes.empty() && status_.is_ok()) {
      const auto piece = std::as_bytes(std::span(bytes.substr(0, at_once)));
      bytes.remove_prefix(piece.size());
      const std::span<std::byte> wanted = reader_.wanted();
      const std::size_t direct = std::min(piece.size(), wanted.size());
      if (direct > 0) {
        std::memcpy(wanted.data(), piece.data(), direct);
        reader_.put(direct);
      }
      status_ = reader_.take(piece.subspan(direct));
      if (!releases) continue;
      for (const ChannelOf channel : kChannels) {
        const std::uint64_t count = taken(channel);
        mirror_.from_peer(channel).consumed->store(count);
      }
    }
    if (!status_.is_ok()) check_message(status_);
  }

  /// Nothing is written but what can have been sent. Requires: nothing was released.
  void check_rest() {
    for (const ChannelOf channel : kChannels) {
      const auto is_untouched = [](std::span<const std::byte> bytes) {
        return std::ranges::all_of(bytes, [](std::byte one) { return one == kUntouched; });
      };
      TUTTI_ASSERT(is_untouched(slots_to(channel)), "a slot of this end was written");
      // The slice after the last one may have come in part.
      const std::size_t begun = std::min<std::size_t>(taken(channel) + 1, slots(channel)) * slot_bytes(channel);
      TUTTI_ASSERT(is_untouched(slots_from(channel).subspan(begun)), "a slot was written before its turn");
      TUTTI_ASSERT(released_here(channel) == 0, "{} slices were released by the peer", released_here(channel));
      TUTTI_ASSERT(released_there(channel) <= kPublished[static_cast<std::size_t>(channel)],
                   "{} slices were released that were not sent", released_there(channel));
    }
  }

  /// All that the rank can see of it.
  [[nodiscard]] std::vector<std::byte> seen() {
    std::vector<std::byte> all;
    const auto add = [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
    for (const ChannelOf channel : kChannels) {
      add(slots_from(channel));
      const std::uint64_t count = released_there(channel);
      add(std::as_bytes(std::span(&count, 1)));
    }
    for (int generation = 0; generation < kShape.generations; ++generation) {
      add({reinterpret_cast<const std::byte*>(&mirror_.theirs()[generation]), kLineOnTheWay});
    }
    const std::array words{static_cast<int>(status_.code()), static_cast<int>(reader_.has_left()),
                           static_cast<int>(reader_.is_within_frame()), reader_.aborted_rank()};
    add(std::as_bytes(std::span(words)));
    return all;
  }

 private:
  static constexpr std::array<std::uint64_t, kChannelsOfPair> kPublished{5, 2};

  [[nodiscard]] std::size_t slots(ChannelOf channel) const { return static_cast<std::size_t>(mirror_.slots(channel)); }
  [[nodiscard]] std::size_t slot_bytes(ChannelOf channel) const {
    return sizeof(SlotHeader) + mirror_.slot_bytes(channel);
  }
  [[nodiscard]] std::span<std::byte> slots_to(ChannelOf channel) {
    return {mirror_.to_peer(channel).slots, slots(channel) * slot_bytes(channel)};
  }
  [[nodiscard]] std::span<std::byte> slots_from(ChannelOf channel) {
    return {mirror_.from_peer(channel).slots, slots(channel) * slot_bytes(channel)};
  }
  [[nodiscard]] std::uint64_t released_here(ChannelOf channel) { return mirror_.from_peer(channel).consumed->load(); }
  [[nodiscard]] std::uint64_t released_there(ChannelOf channel) { return mirror_.to_peer(channel).consumed->load(); }
  /// Slices that have come, whole.
  [[nodiscard]] std::uint64_t taken(ChannelOf channel) {
    const std::uint64_t released = released_here(channel);
    for (std::uint64_t count = released; count < released + slots(channel); ++count) {
      if (mirror_.is_next(channel, count + 1)) return count;
    }
    return released + slots(channel);
  }

  std::vector<FlagLine> mine_ = std::vector<FlagLine>(static_cast<std::size_t>(kShape.generations));
  Mirror mirror_{kShape, mine_.data()};
  tcp::FrameReader reader_{mirror_, kPublished};
  Status status_;
};

struct Ends {
  Descriptor one, other;
};

Ends connected() {
  std::array<int, 2> ends{};
  const int failure = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data());
  TUTTI_ASSERT(failure == 0, "no pair of sockets: {}", std::strerror(errno));
  return {.one = Descriptor(ends[0]), .other = Descriptor(ends[1])};
}

void say(const Descriptor& socket, std::string_view bytes) {
  (void)!send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string heard_at(const Descriptor& socket) {
  std::array<char, 256> bytes{};
  const ssize_t n = recv(socket.get(), bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

tcp::Secret secret_of_job() {
  tcp::Secret secret;
  secret.bytes.fill(std::byte{7});
  return secret;
}

tcp::Nonce nonce_of(int end) {
  tcp::Nonce nonce;
  nonce.fill(static_cast<std::byte>(end));
  return nonce;
}

using State = tcp::Greeting::State;
constexpr tcp::Claim kClaim{.role = tcp::Role::link, .from = 3, .to = 1, .of = 5, .job = 9};

/// An end that knows the secret, and one that says `bytes` whatever it hears.
void greet_a_stranger(tcp::Greeting greeting, std::string_view bytes) {
  const Ends ends = connected();
  greeting.step(ends.one.get());
  for (; !bytes.empty() && greeting.state() == State::going; bytes.remove_prefix(1)) {
    say(ends.other, bytes.substr(0, 1));
    greeting.step(ends.one.get());
  }
  TUTTI_ASSERT(greeting.state() == State::going || greeting.state() == State::failed, "a stranger was let in");
}

/// Two ends of one job. What is between them changes each byte of what they say by one of `bytes`, as long as there are
/// some.
void greet_through(std::string_view bytes) {
  const Ends client_side = connected(), server_side = connected();
  tcp::Greeting client = tcp::Greeting::of_client(secret_of_job(), nonce_of(1), kClaim);
  tcp::Greeting server = tcp::Greeting::of_server(secret_of_job(), nonce_of(2), kClaim.role);
  bool is_changed = false;
  const auto pass = [&](const Descriptor& from, const Descriptor& to) {
    std::string text = heard_at(from);
    for (std::size_t i = 0; i < text.size() && !bytes.empty(); ++i, bytes.remove_prefix(1)) {
      is_changed |= bytes.front() != 0;
      text[i] = static_cast<char>(text[i] ^ bytes.front());
    }
    say(to, text);
  };
  constexpr int kTurns = 3;  // each way
  for (int turn = 0; turn < kTurns; ++turn) {
    if (server.step(server_side.one.get()) == State::claimed) {
      server.answer(tcp::Verdict::crossed);
      server.step(server_side.one.get());
    }
    pass(server_side.other, client_side.other);
    client.step(client_side.one.get());
    pass(client_side.other, server_side.other);
  }
  TUTTI_ASSERT((client.state() == State::done) == !is_changed, "changed: {}, and the client is let in: {}", is_changed,
               client.state() == State::done);
  const bool is_known = server.state() == State::done || server.state() == State::claimed;
  TUTTI_ASSERT(is_known || is_changed, "the client was not let in");
  TUTTI_ASSERT(!is_known || std::memcmp(&server.claim(), &kClaim, sizeof kClaim) == 0, "the claim was changed");
}

}  // namespace

void frames(std::string_view input) {
  LinkEnd whole, in_pieces, releasing;
  whole.take(input, std::max<std::size_t>(input.size(), 1), false);
  whole.check_rest();
  in_pieces.take(input, 7, false);
  TUTTI_ASSERT(whole.seen() == in_pieces.seen(), "in pieces it is something else");
  releasing.take(input, 40, true);
}

void greetings(std::string_view input) {
  const char kind = input.empty() ? ' ' : input.front();
  const std::string_view bytes = input.substr(std::min<std::size_t>(1, input.size()));
  if (kind == 'c') greet_a_stranger(tcp::Greeting::of_client(secret_of_job(), nonce_of(1), kClaim), bytes);
  if (kind == 's') greet_a_stranger(tcp::Greeting::of_server(secret_of_job(), nonce_of(2), kClaim.role), bytes);
  if (kind == 'm') greet_through(bytes);
}

}  // namespace tutti::fuzz

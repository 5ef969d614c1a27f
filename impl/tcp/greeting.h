// SPDX-License-Identifier: Apache-2.0
// How two ends of a connection show each other that they know the job's secret, before anything else is read:
//
//   server -> client   magic, Ns
//   client -> server   Nc, claim, HMAC(K, "client" Ns Nc claim)
//   server -> client   verdict, HMAC(K, "server" Nc Ns claim verdict)
//
// Each end draws a nonce of its own, so that nothing that was said before can be said again. The two directions have
// different labels, so that nothing can be sent back. Who claims to be whom is sealed with it. All lengths are fixed,
// and nothing is looked at before its seal has held. What follows is neither secret nor sealed: who sits on the wire
// can read and change it, as with MPI.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "impl/tcp/secret.h"

namespace tutti::tcp {

enum class Role : std::uint32_t {
  link = 1,
  meeting = 2,
  machine = 3,   ///< what starts the ranks of a machine, with whoever has started it
  exchange = 4,  ///< two ranks, beside what they are measured with
  limit = 5,     ///< two machines, for what is sent between them at most
};

/// What the client says of itself.
struct Claim {
  Role role = Role::link;
  std::uint32_t from = 0;   ///< its rank, or its process
  std::uint32_t to = 0;     ///< and whom it wants
  std::uint32_t build = 0;  ///< both ends are of the same
};
static_assert(sizeof(Claim) == 16);

enum class Verdict : std::uint64_t {
  welcome = 1,
  crossed = 2,  ///< the server is on its way to the client itself, and that connection will serve
};

/// One end, on a socket that does not block. `step` when the socket can be read or written; it reads no byte too many.
class Greeting {
 public:
  static Greeting of_client(const Secret& secret, const Nonce& nonce, const Claim& claim);
  static Greeting of_server(const Secret& secret, const Nonce& nonce);

  enum class State : std::uint8_t {
    going,
    claimed,  ///< server: the client's claim is genuine, and wants an answer
    done,     ///< the verdict is given, or heard
    failed,   ///< the other end is none of this job, or it is gone
  };
  State step(int socket);
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool wants_to_write() const { return written_ < to_write_; }
  /// Whether it failed as the other end hung up: that one is gone, or does not let this one in.
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  [[nodiscard]] const Claim& claim() const { return claim_; }
  [[nodiscard]] Verdict verdict() const { return verdict_; }
  /// Requires: claimed.
  void answer(Verdict verdict);

 private:
  Greeting(const Secret& secret, bool is_server) : secret_(secret), is_server_(is_server) {}
  void say(std::initializer_list<std::span<const std::byte>> parts);
  void expect(std::size_t bytes) {
    to_read_ = bytes;
    read_ = 0;
  }
  /// All that was expected is there.
  State heard();
  State hung_up() {
    has_ended_ = true;
    return state_ = State::failed;
  }

  Secret secret_;
  bool is_server_;
  State state_ = State::going;
  bool has_ended_ = false;
  int phase_ = 0;
  Nonce mine_{}, theirs_{};
  Claim claim_;
  Verdict verdict_ = Verdict::welcome;
  std::array<std::byte, 96> in_{}, out_{};
  std::size_t read_ = 0, to_read_ = 0, written_ = 0, to_write_ = 0;
};

/// Of those who have connected and not shown yet that they are of this job, so many are heard at a time, each for this
/// long at least. So strangers, however many there are, crowd nobody out who answers in time.
inline constexpr std::size_t kMostGuests = 256;
inline constexpr std::chrono::milliseconds kTurnOfAGuest(250);

/// Whether one more can be let in; the oldest of `guests` leaves for it once it has had its turn. They are in the order
/// in which they have come.
template <class Guests>
[[nodiscard]] bool make_room(Guests& guests) {
  if (guests.size() < kMostGuests) return true;
  if (std::chrono::steady_clock::now() - guests.front().since < kTurnOfAGuest) return false;
  guests.pop_front();
  return true;
}

}  // namespace tutti::tcp

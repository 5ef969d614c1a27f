// SPDX-License-Identifier: Apache-2.0
// How two ends of a connection show each other that they know the job's key, before anything else is read:
//
//   server -> client   magic, Ns
//   client -> server   Nc, claim, HMAC(K, "client" Ns Nc claim)
//   server -> client   answer, HMAC(K, "server" Nc Ns claim answer)
//
// K is derived from the job's key and the role of the connection. Each end draws a nonce of its own, so that nothing
// that was said before can be said again. The two directions have different labels, so that nothing can be sent back.
// Who claims to be whom is sealed with it. All lengths are fixed, and nothing is looked at before its seal has held.
//
// What follows is not secret. Both ends derive two keys from K, the nonces, the claim and the answer, one for each
// direction, and SealedStream (sealed_stream.h) seals each message with them. Only links and limits, which carry the
// payload of collectives, go on without seals: who sits on the wire can change their data, as with MPI.
//
// The first meeting of a job that somebody else has started has the lasting secret in the place of the job's key, for
// the job's id is not known yet. There the claim has what the processes of one job have in common: their number, and
// what their starter calls the job. A process of another job is refused with words, and the meeting goes on.
//
// A claim to the right role whose seal does not hold has zeros for an answer. So both ends can say at once that they
// have different keys.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "impl/tcp/secret.h"

namespace tutti::tcp {

/// What a connection is for. Each has a key of its own.
enum class Role : std::uint32_t {
  link = 1,
  machine = 2,   ///< what starts the ranks of a machine, with the launcher
  exchange = 3,  ///< two ranks, beside what they are measured with
  limit = 4,     ///< two machines, for what is sent between them at most
  hosts = 5,     ///< the first processes of two hosts, about how a job without a launcher ends
  meeting_of_hosts = 6,
  meeting_of_places = 7,
  meeting_of_exchange = 8,
  meeting_of_links = 9,
};

/// What the client says of itself.
struct Claim {
  Role role = Role::link;
  std::uint32_t from = 0;  ///< its rank, or its process
  std::uint32_t to = 0;    ///< and whom it wants
  std::uint32_t of = 0;    ///< at a meeting: how many processes its job has
  std::uint64_t job = 0;   ///< at a meeting of hosts: hash_of_start (impl/bootstrap/init.h)
};
static_assert(sizeof(Claim) == 24);

enum class Verdict : std::uint32_t {
  welcome = 1,
  crossed = 2,          ///< the server is on its way to the client itself, and that connection will serve
  other_number = 3,     ///< refused: the meeting is of `number` processes
  other_start = 4,      ///< refused: the starter calls the meeting's job otherwise
  is_here_already = 5,  ///< refused: a process of this number has come
};
struct Answer {
  Verdict verdict = Verdict::welcome;
  std::uint32_t number = 0;
};
static_assert(sizeof(Answer) == 8);

/// The keys of what this end sends and receives after the greeting.
struct Session {
  Secret out, in;
};

/// One end, on a socket that does not block. `step` when the socket can be read or written; it reads no byte too many.
class Greeting {
 public:
  static Greeting of_client(const Secret& key, const Nonce& nonce, const Claim& claim);
  /// A client that claims another role fails.
  static Greeting of_server(const Secret& key, const Nonce& nonce, Role role);

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
  /// Whether it failed as the other end speaks in the same way and has another key. Not even a stranger's word for it:
  /// good for a message alone.
  [[nodiscard]] bool has_other_key() const { return has_other_key_; }

  /// Of a server: genuine once it is claimed; with has_other_key what the stranger said.
  [[nodiscard]] const Claim& claim() const { return claim_; }
  [[nodiscard]] Verdict verdict() const { return answer_.verdict; }
  [[nodiscard]] const Answer& answer() const { return answer_; }
  /// Requires: claimed.
  void answer(Verdict verdict, std::uint32_t number = 0);
  /// Requires: done.
  [[nodiscard]] Session session() const;

 private:
  Greeting(const Secret& key, Role role, bool is_server);
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

  Secret key_;  ///< of the role
  bool is_server_;
  State state_ = State::going;
  bool has_ended_ = false;
  bool has_other_key_ = false;
  int phase_ = 0;
  Nonce mine_{}, theirs_{};
  Claim claim_;
  Answer answer_;
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

// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/greeting.h"

#include <cstring>

#include "impl/tcp/socket.h"

namespace tutti::tcp {
namespace {

constexpr std::uint64_t kMagic = 0x3130'6974'7475'74ULL;  // "tutti01", in the byte order of the machine

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
void take(T& value, const std::byte* from) {
  std::memcpy(&value, from, sizeof value);
}

constexpr std::size_t kHelloBytes = sizeof kMagic + sizeof(Nonce);
constexpr std::size_t kClaimBytes = sizeof(Nonce) + sizeof(Claim) + sizeof(Seal);
constexpr std::size_t kAnswerBytes = sizeof(Verdict) + sizeof(Seal);

}  // namespace

Greeting Greeting::of_client(const Secret& secret, const Nonce& nonce, const Claim& claim) {
  Greeting greeting(secret, false);
  greeting.mine_ = nonce;
  greeting.claim_ = claim;
  greeting.expect(kHelloBytes);
  return greeting;
}

Greeting Greeting::of_server(const Secret& secret, const Nonce& nonce) {
  Greeting greeting(secret, true);
  greeting.mine_ = nonce;
  greeting.say({bytes_of(kMagic), bytes_of(nonce)});
  greeting.expect(kClaimBytes);
  return greeting;
}

void Greeting::say(std::initializer_list<std::span<const std::byte>> parts) {
  to_write_ = written_ = 0;
  for (const auto part : parts) {
    std::memcpy(out_.data() + to_write_, part.data(), part.size());
    to_write_ += part.size();
  }
}

void Greeting::answer(Verdict verdict) {
  verdict_ = verdict;
  say({bytes_of(verdict), seal_of(secret_, "server", {theirs_, mine_, bytes_of(claim_), bytes_of(verdict)})});
  state_ = State::going;
}

Greeting::State Greeting::step(int socket) {
  while (state_ == State::going) {
    if (written_ < to_write_) {
      const iovec part{.iov_base = out_.data() + written_, .iov_len = to_write_ - written_};
      const Moved moved = write_some(socket, {&part, 1});
      if (moved.has_ended) return hung_up();
      if (moved.bytes == 0) return state_;
      written_ += moved.bytes;
      continue;
    }
    if (is_server_ && phase_ == 1) return state_ = State::done;
    const iovec part{.iov_base = in_.data() + read_, .iov_len = to_read_ - read_};
    const Moved moved = read_some(socket, {&part, 1});
    if (moved.has_ended) return hung_up();
    if (moved.bytes == 0) return state_;
    read_ += moved.bytes;
    if (read_ == to_read_) state_ = heard();
  }
  return state_;
}

Greeting::State Greeting::heard() {
  const std::byte* const in = in_.data();
  Seal seal;
  if (is_server_) {
    take(theirs_, in);
    Claim claim;
    take(claim, in + sizeof(Nonce));
    take(seal, in + sizeof(Nonce) + sizeof(Claim));
    if (!is_same(seal, seal_of(secret_, "client", {mine_, theirs_, bytes_of(claim)}))) return State::failed;
    claim_ = claim;
    phase_ = 1;
    return State::claimed;
  }
  if (phase_++ == 0) {
    std::uint64_t magic;
    take(magic, in);
    if (magic != kMagic) return State::failed;
    take(theirs_, in + sizeof magic);
    say({mine_, bytes_of(claim_), seal_of(secret_, "client", {theirs_, mine_, bytes_of(claim_)})});
    expect(kAnswerBytes);
    return State::going;
  }
  Verdict verdict;
  take(verdict, in);
  take(seal, in + sizeof verdict);
  const bool holds = is_same(seal, seal_of(secret_, "server", {mine_, theirs_, bytes_of(claim_), bytes_of(verdict)}));
  verdict_ = verdict;
  return holds ? State::done : State::failed;
}

}  // namespace tutti::tcp

// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/greeting.h"

#include <cstring>

#include "impl/tcp/socket.h"

namespace tutti::tcp {
namespace {

constexpr std::uint64_t kMagic = 0x3230'6974'7475'74ULL;  // "tutti02", in the byte order of the machine

template <class T>
void take(T& value, const std::byte* from) {
  std::memcpy(&value, from, sizeof value);
}

constexpr std::size_t kHelloBytes = sizeof kMagic + sizeof(Nonce);
constexpr std::size_t kClaimBytes = sizeof(Nonce) + sizeof(Claim) + sizeof(Seal);
constexpr std::size_t kAnswerBytes = sizeof(Answer) + sizeof(Seal);

}  // namespace

Greeting::Greeting(const Secret& key, Role role, bool is_server)
    : key_(derived_from(key, "role", {bytes_of(role)})), is_server_(is_server) {
  static_assert(kClaimBytes <= sizeof in_ && kClaimBytes <= sizeof out_);
}

Greeting Greeting::of_client(const Secret& key, const Nonce& nonce, const Claim& claim) {
  Greeting greeting(key, claim.role, false);
  greeting.mine_ = nonce;
  greeting.claim_ = claim;
  greeting.expect(kHelloBytes);
  return greeting;
}

Greeting Greeting::of_server(const Secret& key, const Nonce& nonce, Role role) {
  Greeting greeting(key, role, true);
  greeting.mine_ = nonce;
  greeting.claim_.role = role;
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

void Greeting::answer(Verdict verdict, std::uint32_t number) {
  answer_ = {.verdict = verdict, .number = number};
  say({bytes_of(answer_), seal_of(key_, "server", {theirs_, mine_, bytes_of(claim_), bytes_of(answer_)})});
  state_ = State::going;
}

Session Greeting::session() const {
  const Nonce& servers = is_server_ ? mine_ : theirs_;
  const Nonce& clients = is_server_ ? theirs_ : mine_;
  const auto key = [&](std::string_view direction) {
    return derived_from(key_, direction, {servers, clients, bytes_of(claim_), bytes_of(answer_)});
  };
  const Secret to_server = key("to server"), to_client = key("to client");
  return is_server_ ? Session{.out = to_client, .in = to_server} : Session{.out = to_server, .in = to_client};
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
    if (state_ == State::failed && is_server_ && has_other_key_) {
      const iovec zeros{.iov_base = out_.data(), .iov_len = to_write_};
      (void)write_some(socket, {&zeros, 1});  // a socket that is new takes them, or they do not matter
    }
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
    const bool holds = is_same(seal, seal_of(key_, "client", {mine_, theirs_, bytes_of(claim)}));
    if (!holds || claim.role != claim_.role) {
      has_other_key_ = claim.role == claim_.role;
      claim_ = claim;
      say({std::array<std::byte, kAnswerBytes>()});
      return State::failed;
    }
    claim_ = claim;
    phase_ = 1;
    return State::claimed;
  }
  if (phase_++ == 0) {
    std::uint64_t magic;
    take(magic, in);
    if (magic != kMagic) return State::failed;
    take(theirs_, in + sizeof magic);
    say({mine_, bytes_of(claim_), seal_of(key_, "client", {theirs_, mine_, bytes_of(claim_)})});
    expect(kAnswerBytes);
    return State::going;
  }
  Answer answer;
  take(answer, in);
  take(seal, in + sizeof answer);
  const Seal right = seal_of(key_, "server", {mine_, theirs_, bytes_of(claim_), bytes_of(answer)});
  has_other_key_ = !is_same(seal, right);
  if (has_other_key_) return State::failed;
  answer_ = answer;
  return State::done;
}

}  // namespace tutti::tcp

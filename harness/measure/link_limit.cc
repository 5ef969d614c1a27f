// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/link_limit.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/uio.h>

#include "harness/board/runner_sockets.h"
#include "impl/tcp/socket.h"

namespace tutti::harness::measure {
namespace {

constexpr std::size_t kMostAddress = 64;
/// Of one call to the kernel: more is slower, for the kernel then does not send and receive in turns.
constexpr std::size_t kMostAtOnce = 128 << 10;

/// An address, as it is exchanged.
struct AddressBox {
  std::array<char, kMostAddress> text{};
};

}  // namespace

std::vector<std::int64_t> leaving_bytes(const Cell& cell, const Hosts& machines) {
  const auto count = static_cast<std::size_t>(machines.count());
  std::vector<std::int64_t> leaving(count, 0);
  for (const Movement& one : least_movements(cell)) {
    std::vector<bool> gives(count, false), needs(count, false);
    for (const Piece& from : one.sources) gives[static_cast<std::size_t>(machines.host_of(from.rank))] = true;
    for (const Piece& to : one.destinations) needs[static_cast<std::size_t>(machines.host_of(to.rank))] = true;
    for (std::size_t machine = 0; machine < count; ++machine) {
      bool is_needed_elsewhere = false;
      for (std::size_t other = 0; other < count; ++other) is_needed_elsewhere |= other != machine && needs[other];
      if (gives[machine] && is_needed_elsewhere) leaving[machine] += one.bytes;
    }
  }
  return leaving;
}

/// What a machine sends and what comes, in memory of their own.
class LinkLimit::Streams final : public Prepared {
 public:
  Streams(const LinkLimit& limit, std::size_t leaving, std::size_t coming)
      : limit_(limit), out_{.bytes = std::vector<std::byte>(leaving)}, in_{.bytes = std::vector<std::byte>(coming)} {}

  Status post(std::size_t /*index*/) override {
    ++calls_;
    number(out_.bytes);
    out_.moved = in_.moved = 0;
    return send();
  }
  Result<bool> test(std::size_t /*index*/) override {
    TUTTI_RETURN_IF_ERROR(send());
    TUTTI_RETURN_IF_ERROR(receive());
    return out_.is_done() && in_.is_done();
  }
  [[nodiscard]] std::string flaw(std::size_t /*index*/) override {
    std::vector<std::byte> wanted(in_.bytes.size());
    number(wanted);
    const std::size_t word = std::min(sizeof(calls_), wanted.size());
    const bool is_right =
        std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(word), in_.bytes.begin()) &&
        std::equal(wanted.end() - static_cast<std::ptrdiff_t>(word), wanted.end(),
                   in_.bytes.end() - static_cast<std::ptrdiff_t>(word));
    std::ranges::fill(in_.bytes, std::byte{0});
    if (is_right) return "";
    return fmt::format("the stream of {} bytes from rank {} is not that of call {}", in_.bytes.size(),
                       limit_.machine_after(-1), calls_);
  }

 private:
  struct Stream {
    std::vector<std::byte> bytes;
    std::size_t moved = 0;
    [[nodiscard]] bool is_done() const { return moved == bytes.size(); }
    [[nodiscard]] iovec rest() {
      return {.iov_base = bytes.data() + moved, .iov_len = std::min(bytes.size() - moved, kMostAtOnce)};
    }
  };

  /// The first and the last bytes.
  void number(std::vector<std::byte>& bytes) const {
    const std::size_t word = std::min(sizeof(calls_), bytes.size());
    if (word == 0) return;
    std::memcpy(bytes.data() + bytes.size() - word, &calls_, word);
    std::memcpy(bytes.data(), &calls_, word);
  }
  Status send() { return out_.is_done() ? Status() : take(out_, limit_.next_, tcp::write_some, 1); }
  Status receive() {
    const Descriptor& from = limit_.previous_.is_open() ? limit_.previous_ : limit_.next_;
    return in_.is_done() ? Status() : take(in_, from, tcp::read_some, -1);
  }
  template <class Move>
  Status take(Stream& stream, const Descriptor& socket, Move move, int whom) {
    const iovec rest = stream.rest();
    const tcp::Moved moved = move(socket.get(), std::span(&rest, 1));
    stream.moved += moved.bytes;
    if (!moved.has_ended) return {};
    return error(Code::aborted, "the connection to rank {}, over which the limit is measured, has ended: {}",
                 limit_.machine_after(whom), std::strerror(moved.error));
  }

  const LinkLimit& limit_;
  Stream out_, in_;
  std::uint64_t calls_ = 0;
};

Result<std::unique_ptr<LinkLimit>> LinkLimit::open(Runner& runner, const Place& place) {
  std::unique_ptr<LinkLimit> limit(new LinkLimit(place.machines, runner.index()));
  tcp::Listener listener;
  Status status;
  if (limit->is_first()) {
    auto made = tcp::listen_on(place.interface);
    status = made.status();
    if (made.is_ok()) listener = std::move(made).value();
  }
  AddressBox mine;
  listener.address.copy(mine.text.data(), mine.text.size() - 1);
  TUTTI_ASSIGN_OR_RETURN(const Reason why_none, runner.first_reason(status));
  if (why_none.is_any()) return Status(why_none.code, why_none.text());
  TUTTI_ASSIGN_OR_RETURN(const std::vector<AddressBox> all, runner.exchange(mine));
  if (limit->is_first()) {
    const int next = limit->first_of(limit->machine_after(1));
    const int previous = limit->first_of(limit->machine_after(-1));
    RunnerSockets request{.runner = runner.index(),
                          .others = {next},
                          .key = place.key,
                          .listener = listener.socket.get(),
                          .timeout = runner.timeout(),
                          .role = tcp::Role::limit,
                          .what = "the limit"};
    if (previous != next) request.others.push_back(previous);
    for (const AddressBox& one : all) request.addresses.emplace_back(one.text.data());
    auto sockets = connect_to_runners(request);
    status = sockets.status();
    if (sockets.is_ok()) {
      for (RunnerSocket& one : sockets.value())
        (one.runner == next ? limit->next_ : limit->previous_) = std::move(one.socket);
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const Reason why_apart, runner.first_reason(status));
  if (why_apart.is_any()) return Status(why_apart.code, why_apart.text());
  return limit;
}

Result<std::unique_ptr<Prepared>> LinkLimit::prepare(const Case& /*one*/, std::span<const RankBuffers> /*buffers*/) {
  const auto bytes_of = [&](int machine) {
    return static_cast<std::size_t>(leaving_[static_cast<std::size_t>(machine)]);
  };
  const std::size_t leaving = is_first() ? bytes_of(machine_after(0)) : 0;
  const std::size_t coming = is_first() ? bytes_of(machine_after(-1)) : 0;
  return std::unique_ptr<Prepared>(std::make_unique<Streams>(*this, leaving, coming));
}

Result<std::optional<Variant>> make_link_limit(Runner& runner, LinkLimit& backend, const MemorySource& memory,
                                               const Variant::Request& like) {
  const std::optional<Case> limit = limit_of(like.instance);
  if (!limit) return std::optional<Variant>();
  backend.begin_cell(like.instance);
  if (!backend.has_something_to_send()) return std::optional<Variant>();
  const Case one = without_elements(*limit, kLinkLimitName);
  Result<Variant> variant = Variant::create(
      runner, {.backend = backend, .memory = memory, .instance = one, .seed = like.seed, .number = like.number});
  TUTTI_ASSIGN_OR_RETURN(const Reason why_none, runner.first_reason(variant.status()));
  if (why_none.is_any()) return std::optional<Variant>();
  return std::optional(std::move(variant).value());
}

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
#include "harness/board/runner_sockets.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <poll.h>

#include <fmt/ranges.h>

#include "impl/tcp/socket.h"

namespace tutti::harness::board {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceWithCallers(2);

/// A connection that is not made yet, or whose other end has not shown yet that it is of this job.
struct Half {
  int runner = -1;  ///< -1: not known yet
  Descriptor socket;
  tcp::Greeting greeting;
  bool is_connected = false;
  Clock::time_point since;

  [[nodiscard]] bool is_on_its_way() const { return runner >= 0 && !is_connected; }
  [[nodiscard]] pollfd waits_for() const {
    const bool writes = is_on_its_way() || greeting.wants_to_write();
    return {.fd = socket.get(), .events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), .revents = 0};
  }
};

// The runner with the lower number connects to the other. All listen before a runner knows an address.
class Connecting {
 public:
  explicit Connecting(const RunnerSockets& request) : request_(request), end_(Clock::now() + request.timeout) {}

  Result<std::vector<RunnerSocket>> run() {
    TUTTI_RETURN_IF_ERROR(call());
    while (sockets_.size() < request_.others.size()) {
      if (Clock::now() > end_) return late();
      TUTTI_RETURN_IF_ERROR(look());
      TUTTI_RETURN_IF_ERROR(let_in());
    }
    return std::move(sockets_);
  }

 private:
  Status call() {
    for (const int runner : request_.others) {
      if (runner < request_.runner) continue;
      TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce nonce, tcp::draw_nonce());
      TUTTI_ASSIGN_OR_RETURN(Descriptor socket, tcp::connect_to(address_of(runner)));
      calls_.push_back({.runner = runner,
                        .socket = std::move(socket),
                        .greeting = tcp::Greeting::of_client(request_.key, nonce,
                                                             {.role = request_.role,
                                                              .from = static_cast<std::uint32_t>(request_.runner),
                                                              .to = static_cast<std::uint32_t>(runner)}),
                        .since = Clock::now()});
    }
    return {};
  }
  Status let_in() {
    while (tcp::make_room(guests_)) {
      Descriptor socket = tcp::accept_from(request_.listener);
      if (!socket.is_open()) return {};
      TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce nonce, tcp::draw_nonce());
      guests_.push_back({.socket = std::move(socket),
                         .greeting = tcp::Greeting::of_server(request_.key, nonce, request_.role),
                         .since = Clock::now()});
    }
    return {};
  }
  Status look() {
    std::vector<pollfd> set;
    for (const std::list<Half>* const halves : {&calls_, &guests_}) {
      for (const Half& half : *halves) set.push_back(half.waits_for());
    }
    set.push_back({.fd = request_.listener, .events = POLLIN, .revents = 0});
    ::poll(set.data(), set.size(), 100);
    auto ready = set.begin();
    for (std::list<Half>* const halves : {&calls_, &guests_}) {
      for (auto half = halves->begin(); half != halves->end(); ++ready) {
        bool is_over = false;
        if (!half->is_on_its_way() || ready->revents != 0) {
          TUTTI_ASSIGN_OR_RETURN(is_over, go_on(*half));
        }
        half = is_over ? halves->erase(half) : std::next(half);
      }
    }
    return {};
  }
  /// True where the other end is known now, or a stranger.
  Result<bool> go_on(Half& half) {
    const bool is_client = half.runner >= 0;
    if (half.is_on_its_way()) {
      if (const int failure = tcp::error_of(half.socket.get()); failure != 0) {
        return error(Code::io, "rank {} does not reach rank {} at {}: {}", request_.runner, half.runner,
                     address_of(half.runner), std::strerror(failure));
      }
      half.is_connected = true;
    }
    auto state = half.greeting.step(half.socket.get());
    if (state == tcp::Greeting::State::claimed) {
      half.greeting.answer(tcp::Verdict::welcome);
      state = half.greeting.step(half.socket.get());
    }
    if (state == tcp::Greeting::State::failed && is_client)
      return error(Code::mismatch, "the program at {} did not prove that it is of this job", address_of(half.runner));
    if (state != tcp::Greeting::State::done)
      return state == tcp::Greeting::State::failed || (!is_client && Clock::now() - half.since > kPatienceWithCallers);
    const tcp::Claim& claim = half.greeting.claim();
    const int runner = is_client ? half.runner : static_cast<int>(claim.from);
    const bool is_other = std::ranges::find(request_.others, runner) != request_.others.end();
    if (is_other && !is_there(runner))
      sockets_.push_back({.runner = runner, .socket = std::move(half.socket), .session = half.greeting.session()});
    return true;
  }
  [[nodiscard]] Status late() const {
    std::vector<int> missing;
    for (const int runner : request_.others) {
      if (!is_there(runner)) missing.push_back(runner);
    }
    return error(Code::timeout, "rank {} has no connection for {} to rank {} within {:.1f} s", request_.runner,
                 request_.what, fmt::join(missing, ", "), std::chrono::duration<double>(request_.timeout).count());
  }
  [[nodiscard]] bool is_there(int runner) const {
    return std::ranges::find(sockets_, runner, &RunnerSocket::runner) != sockets_.end();
  }
  [[nodiscard]] const std::string& address_of(int runner) const {
    return request_.addresses[static_cast<std::size_t>(runner)];
  }

  const RunnerSockets& request_;
  Clock::time_point end_;
  std::list<Half> calls_, guests_;
  std::vector<RunnerSocket> sockets_;
};

}  // namespace

Result<std::vector<RunnerSocket>> connect_to_runners(const RunnerSockets& request) { return Connecting(request).run(); }

}  // namespace tutti::harness::board

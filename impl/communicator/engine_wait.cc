// SPDX-License-Identifier: Apache-2.0
// How a rank waits: what it looks at, and when it gives up.
#include <algorithm>
#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impl/communicator/engine.h"
#include "impl/transports/failure.h"

namespace tutti {
namespace {

constexpr int kLooksBetweenChecks = 16;
constexpr int kYieldsBeforeParking = 200;
constexpr std::chrono::microseconds kSpinsInCrowd(40);
constexpr unsigned kTestsBetweenLooks = 64;
constexpr std::chrono::milliseconds kBeforeFirstLook(20);
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
constexpr timespec kTick{.tv_sec = 0, .tv_nsec = 1'000'000};

/// Shared between processes.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  static_assert(sizeof word == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

bool Engine::is_complete(const Ticket& ticket) const {
  if (ticket.kind == Ticket::Kind::collective) return is_complete(ticket.number);
  const Direction direction = ticket.kind == Ticket::Kind::send ? Direction::send : Direction::receive;
  return transfers_.is_complete(direction, ticket.peer, ticket.number);
}

bool Engine::is_nothing_new() const {
  return !machine_.has_links() && in_flight_ == 1 && starting_ == next_ && prepared_ == &operation(completed_ + 1) &&
         transfers_.is_idle() && company_->size() == 1 && !machine_.may_go_on();
}

bool Engine::is_over(const Ticket& ticket) {
  if (!is_complete(ticket)) return false;
  if (!is_drained()) return false;  // peers wait, and nobody else moves it
  if (is_told_) withdraw_standing();
  return true;
}

Result<bool> Engine::test(const Ticket& ticket) {
  if (is_over(ticket)) return true;
  TUTTI_RETURN_IF_ERROR(failed_);  // after it, nothing may be written any more
  progress_all();
  if (is_over(ticket)) return true;
  TUTTI_RETURN_IF_ERROR(check(ticket, Clock::time_point::max()));
  return false;
}

Status Engine::wait(const Ticket& ticket, std::chrono::nanoseconds timeout) {
  if (is_over(ticket)) return {};
  TUTTI_RETURN_IF_ERROR(failed_);
  progress_all();
  return is_over(ticket) ? Status() : wait_long(ticket, timeout, AtDeadline::fails).status();
}

Result<bool> Engine::wait_for(const Ticket& ticket, std::chrono::nanoseconds timeout) {
  TUTTI_ASSIGN_OR_RETURN(const bool is_done, test(ticket));
  if (is_done) return true;
  return wait_long(ticket, timeout, AtDeadline::returns);
}

Result<bool> Engine::wait_long(const Ticket& ticket, std::chrono::nanoseconds timeout, AtDeadline at_deadline) {
  std::uint64_t moves_before = moves_;
  int idle_looks = 0;
  Clock::time_point waits_since;
  // The clock is first read after some polls: reading it takes as long as a small operation.
  for (std::optional<Clock::time_point> deadline;;) {
    for (int i = 0; i < kLooksBetweenChecks; ++i) {
      if (options_.waiting == Waiting::spin) {
        pause();
      } else {
        sched_yield();
      }
      if (is_nothing_new()) continue;
      progress_all();
      if (is_over(ticket)) return true;
    }
    if (!deadline) deadline = Clock::now() + std::min(timeout, kLongest);
    if (at_deadline == AtDeadline::returns && Clock::now() >= *deadline) {
      TUTTI_RETURN_IF_ERROR(check_failures());
      return false;
    }
    TUTTI_RETURN_IF_ERROR(check(ticket, at_deadline == AtDeadline::returns ? *deadline + kLongest : *deadline));
    const Clock::time_point now = Clock::now();
    if (moves_ != moves_before || idle_looks == 0) {
      waits_since = now;
      crowd_.begin(now);
    } else {
      crowd_.look(now);
    }
    idle_looks = moves_ == moves_before ? idle_looks + kLooksBetweenChecks : 0;
    moves_before = moves_;
    if (idle_looks > 0) rest(waits_since, now, idle_looks);
  }
}

void Engine::rest(Clock::time_point waits_since, Clock::time_point now, int idle_looks) {
  if (network_ != nullptr && network_->descriptor() < 0) return;
  if (crowd_.is_crowded(now)) {
    if (now - waits_since >= kSpinsInCrowd) park();
  } else if (options_.waiting == Waiting::yield && idle_looks >= kYieldsBeforeParking) {
    park();
  }
}

/// No fence orders the announcement before ring and its look at the sleepers. So it may miss a sleeper, and that one
/// sleeps for a tick. That is cheaper than a barrier in every operation.
void Engine::wake() {
  bell_.rings.fetch_add(1, std::memory_order_release);
  futex(bell_.rings, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
}

void Engine::tell_moved() {
  ring();
  if (hooks_.pace != nullptr) hooks_.pace->went_on();
}

void Engine::park() {
  const std::uint32_t rings = bell_.rings.load(std::memory_order_acquire);
  bell_.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t moves_before = moves_;
  progress_all();
  if (moves_ == moves_before && network_ != nullptr) {
    std::vector<pollfd> news;
    for (const Engine* const each : *company_) {
      const int descriptor = each->network_ == nullptr ? -1 : each->network_->descriptor();
      if (descriptor >= 0) news.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
    }
    ppoll(news.data(), news.size(), &kTick, nullptr);  // who rings is heard a tick later
  } else if (moves_ == moves_before) {
    futex(bell_.rings, FUTEX_WAIT, rings, &kTick);
  }
  bell_.sleepers.fetch_sub(1, std::memory_order_relaxed);
  crowd_.begin(Clock::now());
}

Status Engine::check_failures() {
  // What goes wrong in another communicator of this rank ends that one for its ranks, though nobody waits for it here.
  for (Engine* const each : *company_) (void)each->check_own_failures();
  hear_of_losses();
  TUTTI_RETURN_IF_ERROR(failed_);
  return failed_rank_of(domain_) ? fail(announced_failure(domain_)) : Status();
}

Status Engine::check(const Ticket& ticket, Clock::time_point deadline) {
  TUTTI_RETURN_IF_ERROR(check_failures());
  if (is_complete(ticket)) {
    if (Clock::now() < deadline) return {};
    return fail(error(Code::timeout, "{} is done, but what it told ranks that share no memory with it has not left",
                      domain_.name_of(rank_)));
  }
  // A rank that only tests reads the clock now and then.
  if (deadline == Clock::time_point::max() && ++tests_ % kTestsBetweenLooks != 0) return {};
  const Clock::time_point now = Clock::now();
  if (const std::uint64_t progress = completed_ + moves_; progress != seen_progress_) {
    seen_progress_ = progress;
    until_look_ = kBeforeFirstLook;
    look_at_ = now + until_look_;
  } else if (now >= look_at_) {
    until_look_ *= 2;
    look_at_ = now + until_look_;
    TUTTI_RETURN_IF_ERROR(look(ticket));
  }
  return now < deadline ? Status() : give_up(ticket);
}

void Engine::hear_of_losses() {
  Network* const of_world = domain_.world().network();
  if (network_ == nullptr || of_world == network_ || !failed_.is_ok() || of_world->failure().is_ok()) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!machine_.is_behind_link(rank) || !of_world->has_gone(domain_.world_rank(rank))) continue;
    network_->lose(rank);
    (void)fail(network_->failure());
    return;
  }
}

Status Engine::check_own_failures() {
  if (!failed_.is_ok()) return failed_;
  if (!machine_.failure().is_ok()) return fail(explained(machine_.failure()));
  if (!transfers_.failure().is_ok()) return fail(transfers_.failure());
  return {};
}

Status Engine::fail(Status status) {
  const bool is_of_network = network_ != nullptr && network_->failed_rank() >= 0;
  return fail(std::move(status), is_of_network ? network_->failed_rank() : rank_);
}

Status Engine::fail(Status status, int who) {
  last_ = {};
  failed_ = std::move(status);
  (void)announce_failure(domain_, rank_, who, text_for_others(domain_, who, failed_));
  // If a rank of this host has told of a failure before, that one is the cause, also for the other hosts.
  if (network_ != nullptr) network_->abort(*failed_rank_of(domain_), announced_failure(domain_).message());
  ring();
  return failed_;
}

Status Engine::abort(int rank, std::string_view reason) {
  if (rank < 0 || rank >= ranks_) {
    return error(Code::invalid_argument, "abort because of rank {}, which is out of range: 0 to {}", rank, ranks_ - 1);
  }
  if (!check_failures().is_ok()) return {};
  (void)announce_failure(domain_, rank_, rank, fmt::format("{} failed: {}", domain_.name_of(rank), reason));
  (void)fail(announced_failure(domain_), rank);
  return {};
}

}  // namespace tutti

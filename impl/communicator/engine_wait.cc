// SPDX-License-Identifier: Apache-2.0
// How a rank waits: what it looks at, when it gives up, and what it then says.
#include <algorithm>
#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <optional>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impl/communicator/engine.h"

namespace tutti {
namespace {

constexpr int kLooksBetweenChecks = 16;
constexpr int kYieldsBeforeParking = 200;
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
  return in_flight_ == 1 && starting_ == next_ && prepared_ == &operation(completed_ + 1) && transfers_.is_idle() &&
         company_->size() == 1 && !machine_.may_go_on();
}

Result<bool> Engine::test(const Ticket& ticket) {
  if (is_complete(ticket)) return true;
  TUTTI_RETURN_IF_ERROR(failed_);  // after it, nothing may be written any more
  progress_all();
  if (is_complete(ticket)) return true;
  TUTTI_RETURN_IF_ERROR(check(ticket, Clock::time_point::max()));
  return false;
}

Status Engine::wait(const Ticket& ticket, std::chrono::nanoseconds timeout) {
  if (is_complete(ticket)) return {};
  TUTTI_RETURN_IF_ERROR(failed_);
  progress_all();
  if (is_complete(ticket)) return {};
  std::uint64_t moves_before = moves_;
  int idle_looks = 0;
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
      if (is_complete(ticket)) return {};
    }
    if (!deadline) deadline = Clock::now() + timeout;
    TUTTI_RETURN_IF_ERROR(check(ticket, *deadline));
    if (options_.waiting == Waiting::spin) continue;
    idle_looks = moves_ == moves_before ? idle_looks + kLooksBetweenChecks : 0;
    moves_before = moves_;
    if (idle_looks >= kYieldsBeforeParking) park();
  }
}

/// No fence orders the waker's announcement and its look at the sleepers: it may miss one, who then sleeps for a tick.
/// That is cheaper than a barrier in every operation.
void Engine::ring() {
  Doorbell& bell = domain_.doorbell();
  if (bell.sleepers.load(std::memory_order_relaxed) == 0) return;
  bell.rings.fetch_add(1, std::memory_order_release);
  futex(bell.rings, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
}

void Engine::tell_moved() {
  ring();
  if (options_.pace != nullptr) options_.pace->went_on();
}

void Engine::park() {
  Doorbell& bell = domain_.doorbell();
  const std::uint32_t rings = bell.rings.load(std::memory_order_acquire);
  bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t moves_before = moves_;
  progress_all();
  if (moves_ == moves_before) futex(bell.rings, FUTEX_WAIT, rings, &kTick);
  bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

Status Engine::check(const Ticket& ticket, Clock::time_point deadline) {
  // What goes wrong in another communicator of this rank ends that one for its ranks, though nobody waits for it here.
  for (Engine* const each : *company_) (void)each->check_own_failures();
  TUTTI_RETURN_IF_ERROR(failed_);
  if (const std::uint64_t word = domain_.abort_line().word.load(std::memory_order_acquire); word != 0) {
    return fail(error(Code::aborted, "{} failed", domain_.name_of(static_cast<int>(word - 1))));
  }
  if (deadline == Clock::time_point::max() || Clock::now() < deadline) return {};
  for (std::uint64_t number = completed_ + 1; number <= completed_ + in_flight_; ++number) {
    if (operation(number).is_complete) continue;
    prepare_machine(operation(number));
    machine_.compare_plans();
    TUTTI_RETURN_IF_ERROR(check_own_failures());
  }
  return fail(error(Code::timeout, "{} gave up: {}", domain_.name_of(rank_), position(ticket)));
}

Status Engine::check_own_failures() {
  if (!failed_.is_ok()) return failed_;
  if (!machine_.failure().is_ok()) return fail(machine_.failure());
  if (!transfers_.failure().is_ok()) return fail(transfers_.failure());
  return {};
}

Status Engine::fail(Status status) {
  last_ = {};
  failed_ = std::move(status);
  std::uint64_t nobody = 0;
  domain_.abort_line().word.compare_exchange_strong(nobody, static_cast<std::uint64_t>(rank_) + 1,
                                                    std::memory_order_release);
  return failed_;
}

std::string Engine::describe_call(const Pending& call) const {
  return fmt::format("{} {}, segment {} of {}", to_string(call.entry->schedule.problem.collective),
                     call.entry->schedule.name, call.segment + 1, call.entry->call.segments());
}

std::string Engine::describe(const Operation& operation) const {
  const Pending& call = pending(operation.ticket);
  const Plan& plan = call.entry->call.plan(call.segment);
  const PlanOp& op = plan.ops()[operation.lane.at];
  const std::string step = fmt::format("operation {} ({}), step {} of {}", operation.number, describe_call(call),
                                       op.step + 1, call.entry->schedule.step_count(rank_));
  if (op.verb == Verb::wait) {
    return fmt::format("{}: waits for phase {} of {}", step, op.phase,
                       domain_.name_of(plan.ranks(op).at(operation.lane.cursor, ranks_)));
  }
  const auto is_channel = [](const PlanOperand& operand) { return operand.space == Space::channel; };
  const auto sources = plan.sources(op);
  const auto source = std::find_if(sources.begin(), sources.end(), is_channel);
  if (source != sources.end()) {
    return fmt::format("{}: waits for data from {}", step, domain_.name_of(source->ranks.first));
  }
  const auto destinations = plan.destinations(op);
  const auto destination = std::find_if(destinations.begin(), destinations.end(), is_channel);
  if (destination != destinations.end()) {
    return fmt::format("{}: waits for room at {}", step, domain_.name_of(destination->ranks.first));
  }
  return step;
}

std::string Engine::position(const Ticket& ticket) const {
  if (is_complete(ticket)) return "complete";
  if (ticket.kind != Ticket::Kind::collective) {
    const Direction direction = ticket.kind == Ticket::Kind::send ? Direction::send : Direction::receive;
    return transfers_.describe(direction, ticket.peer, ticket.number);
  }
  std::uint64_t number = completed_ + 1;
  for (; number <= completed_ + in_flight_; ++number) {
    const Operation& each = operation(number);
    if (each.ticket == ticket.number && !each.is_complete) return describe(each);
  }
  const std::string call = describe_call(pending(ticket.number));
  if (in_flight_ > 0) {
    return fmt::format("{}: waits for operations before it, first {}", call, describe(operation(completed_ + 1)));
  }
  return fmt::format("operation {} ({}) waits for the ranks that have not completed an operation a generation ago",
                     number, call);
}

}  // namespace tutti

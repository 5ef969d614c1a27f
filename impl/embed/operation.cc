// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/operation.h"

#include "impl/embed/parts.h"
#include "impl/embed/progress.h"

namespace tutti::embed {

using Clock = std::chrono::steady_clock;

Operation::Operation(std::shared_ptr<World> world, Next next, OperationOptions options)
    : world_(std::move(world)),
      next_(std::move(next)),
      options_(std::move(options)),
      may_spin_(world_->parts_->has_core_for_each()) {
  const auto own = options_.timeout.count() > 0 ? options_.timeout : world_->timeout();
  deadline_ = Clock::now() + own;
}

Operation::~Operation() = default;

bool Operation::look() {
  const auto fail = [&](Status status) {
    status_ = world_->parts_->with_process(status);
    return true;
  };
  for (;;) {
    for (; at_ < works_.size(); ++at_) {
      const Result<bool> is_complete = works_[at_].test();
      if (!is_complete.is_ok()) return fail(is_complete.status());
      if (!is_complete.value()) return false;
    }
    if (is_posted_) return true;
    if (Status status = post_next(); !status.is_ok()) return fail(std::move(status));
    if (!is_posted_ && at_ == works_.size()) return false;
  }
}

Status Operation::post_next() {
  World::Parts& parts = *world_->parts_;
  const bool has_turn = options_.needs == OperationOptions::kAllRanks;
  if (has_turn && parts.turn != turn_) return {};
  const Result<bool> is_last = next_(*parts.communicator, works_);
  is_posted_ = is_last.is_ok() && is_last.value();
  if (has_turn && (is_posted_ || !is_last.is_ok())) ++parts.turn;
  return is_last.status();
}

bool Operation::look_around(Clock::time_point now) {
  World::Parts& parts = *world_->parts_;
  parts.peers->look(now);
  if (parts.peers->has_lost_any()) {
    if (const auto lost = parts.peers->lost_by(options_.needs, now)) {
      if (look()) return true;  // with what it had given before
      (void)parts.communicator->abort(*lost, parts.peers->fate_of(*lost));
      if (!look()) status_ = error(Code::aborted, "rank {} failed: {}", *lost, parts.peers->fate_of(*lost));
      return true;
    }
  }
  if (now < deadline_) return false;
  if (at_ == works_.size()) {
    const bool has_turn = options_.needs == OperationOptions::kAllRanks;
    status_ = error(Code::timeout, "rank {} has waited for {} in vain", parts.rank,
                    has_turn ? "an operation that it has posted before" : "a message");
    if (has_turn) (void)parts.communicator->abort(parts.rank, status_.message());
    return true;
  }
  status_ = works_[at_].wait(std::chrono::nanoseconds(0));
  return status_.is_ok() ? look() : true;
}

void Operation::conclude() {
  if (options_.at_end) options_.at_end(status_);
  options_.at_end = nullptr;
  next_ = nullptr;
  works_.clear();
  const std::shared_ptr<World> world = std::move(world_);
  is_done_.store(true, std::memory_order_release);
  Progress::here().ring();
}

bool Operation::test() {
  if (!is_done()) Progress::here().move_once();
  return is_done();
}

bool Operation::wait_for(std::chrono::nanoseconds timeout) {
  if (is_done()) return true;
  const Clock::time_point now = Clock::now();
  const bool is_endless = timeout >= Clock::time_point::max() - now;
  Progress::here().drive(*this, is_endless ? Clock::time_point::max() : now + timeout);
  return is_done();
}

Status Operation::wait() {
  wait_for(std::chrono::nanoseconds::max());
  return status_;
}

void Operation::attend() {
  if (!is_done()) Progress::here().attend(*this);
}

}  // namespace tutti::embed

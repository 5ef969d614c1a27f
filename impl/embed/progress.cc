// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/progress.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "impl/embed/parts.h"
#include "impl/execute/cpu_machine.h"

namespace tutti::embed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollsWithLock = 32;
constexpr unsigned kPollsBetweenLooks = 64;
constexpr std::chrono::microseconds kSpin(40);
constexpr std::chrono::milliseconds kTick(1);
constexpr timespec kTickWithLinks{.tv_sec = 0, .tv_nsec = 200'000};  // who rings is heard at its end
constexpr int kQuietTicks = 50;                                      // after which the helper sleeps for good
constexpr std::chrono::milliseconds kBetweenWatches(10);

/// Doorbells and the words seen there, as the kernel wants them.
class Bells {
 public:
  void add(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool is_private) {
    if (count_ == waits_.size()) return;  // the tick hears the rest
    waits_[count_++] = {.val = seen,
                        .uaddr = reinterpret_cast<std::uintptr_t>(&word),
                        .flags = FUTEX_32 | (is_private ? unsigned{FUTEX_PRIVATE_FLAG} : 0U),
                        .__reserved = 0};
  }
  /// Until one of them rings, for a tick at most.
  void wait() {
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += std::chrono::nanoseconds(kTick).count();
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    const bool has_waited = ::syscall(SYS_futex_waitv, waits_.data(), count_, 0, &until, CLOCK_MONOTONIC) >= 0;
    if (has_waited || (errno != ENOSYS && errno != EPERM && errno != EACCES)) return;
    // A kernel before 5.16, or a sandbox that knows no later one, waits for one word only.
    const timespec tick{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kTick).count()};
    auto* const word = reinterpret_cast<std::uint32_t*>(waits_[count_ - 1].uaddr);
    ::syscall(SYS_futex, word, FUTEX_WAIT, waits_[count_ - 1].val, &tick, nullptr, 0);
  }

 private:
  std::array<futex_waitv, FUTEX_WAITV_MAX> waits_{};
  std::size_t count_ = 0;
};

std::atomic<Progress*> of_this_process{nullptr};

// Of this thread:
thread_local int drives_here = 0;              // calls of drive that count
thread_local bool concludes_here = false;      // what may wait
thread_local std::uint64_t helps_in_turn = 0;  // 0: it is no helper

}  // namespace

Progress& Progress::here() {
  static std::once_flag once;
  // The one of a parent is left behind in a forked child: its lock may be held for ever, and its helper is not there.
  std::call_once(once, [] {
    of_this_process.store(new Progress);
    ::pthread_atfork(nullptr, nullptr, [] { of_this_process.store(new Progress); });
  });
  return *of_this_process.load();
}

void Progress::add(std::shared_ptr<Operation> operation) {
  if (operation->is_attended_) attended_.fetch_add(1);
  active_.push_back(std::move(operation));
  count_.fetch_add(1);
}

void Progress::tell_helper() {
  posts_.fetch_add(1, std::memory_order_relaxed);
  if (!has_helper_.load(std::memory_order_acquire)) begin_helper();
  if (!is_helper_asleep_.load()) return;
  const std::lock_guard lock(helper_mutex_);
  helper_wakes_.notify_one();
}

void Progress::attend(Operation& operation) {
  {
    const Lock lock(*this);
    const auto is_it = [&](const auto& each) { return each.get() == &operation; };
    if (operation.is_attended_ || std::ranges::none_of(active_, is_it)) return;
    operation.is_attended_ = true;
    attended_.fetch_add(1);
  }
  begin_helper();
  if (concludes_here && helps_in_turn != 0) relieve(helps_in_turn);
  const std::lock_guard lock(helper_mutex_);
  helper_wakes_.notify_one();
}

Progress::Operations Progress::take_all_of(const World& world, const Status& status) {
  Operations taken;
  std::erase_if(active_, [&](const std::shared_ptr<Operation>& each) {
    if (each->world_.get() != &world) return false;
    each->status_ = status;
    count_.fetch_sub(1);
    if (each->is_attended_) attended_.fetch_sub(1);
    taken.push_back(each);
    return true;
  });
  return taken;
}

void Progress::poll(Operations& over) {
  const bool looks_around = ++looks_ % kPollsBetweenLooks == 0;
  const Time now = looks_around ? Clock::now() : Time();
  for (auto each = active_.begin(); each != active_.end();) {
    Operation& operation = **each;
    if (!operation.look() && !(looks_around && operation.look_around(now))) {
      ++each;
      continue;
    }
    if (operation.is_attended_) attended_.fetch_sub(1);
    count_.fetch_sub(1);
    over.push_back(std::move(*each));
    each = active_.erase(each);
  }
}

void Progress::conclude(Operations& over) {
  if (over.empty() && finished_count_.load() == 0) return;
  const int drives = std::exchange(drives_here, 0);
  waiters_.fetch_sub(drives);
  const bool is_outermost = !std::exchange(concludes_here, true);
  const bool is_helper = is_outermost && helps_in_turn != 0 && helps_in_turn == turn_.load();
  if (is_helper) conclusions_.fetch_add(1);
  for (auto each = keep_all_but_one(over); each != nullptr; each = take_finished()) each->conclude();
  if (is_helper && helps_in_turn == turn_.load()) conclusions_.fetch_add(1);
  if (is_outermost) concludes_here = false;
  waiters_.fetch_add(drives);
  drives_here = drives;
}

std::shared_ptr<Operation> Progress::keep_all_but_one(Operations& over) {
  if (over.empty()) return take_finished();
  std::shared_ptr<Operation> first = std::move(over.front());
  if (over.size() > 1) {
    {
      const std::lock_guard lock(finished_mutex_);
      for (std::size_t i = 1; i < over.size(); ++i) finished_.push_back(std::move(over[i]));
      finished_count_.store(static_cast<int>(finished_.size()));
    }
    const std::lock_guard lock(helper_mutex_);
    helper_wakes_.notify_one();
  }
  over.clear();
  return first;
}

std::shared_ptr<Operation> Progress::take_finished() {
  if (finished_count_.load() == 0) return nullptr;
  const std::lock_guard lock(finished_mutex_);
  if (finished_.empty()) return nullptr;
  std::shared_ptr<Operation> first = std::move(finished_.front());
  finished_.pop_front();
  finished_count_.store(static_cast<int>(finished_.size()));
  return first;
}

void Progress::move_once() {
  Operations over;
  if (!mutex_.try_lock()) return;
  poll(over);
  mutex_.unlock();
  conclude(over);
}

void Progress::drive(const Operation& operation, Time until) {
  waiters_.fetch_add(1);
  ++drives_here;
  Operations over;
  const bool may_spin = operation.may_spin();
  std::optional<Time> spins_until;
  while (!operation.is_done()) {
    if (mutex_.try_lock()) {
      for (int i = 0; i < kPollsWithLock && over.empty() && wanted_.load(std::memory_order_relaxed) == 0; ++i) {
        poll(over);
        pause();
      }
      mutex_.unlock();
      if (!over.empty()) {
        conclude(over);
        spins_until.reset();
        continue;
      }
    } else {
      pause();
    }
    const Time now = Clock::now();
    if (now >= until) break;
    if (!spins_until) spins_until = may_spin ? now + kSpin : now;
    if (now >= *spins_until) sleep(&operation);
  }
  --drives_here;
  if (waiters_.fetch_sub(1) > 1 || attended_.load() == 0) return;
  const std::lock_guard lock(helper_mutex_);
  helper_wakes_.notify_one();
}

void Progress::sleep(const Operation* operation) {
  Operations over;
  std::vector<std::shared_ptr<World>> worlds;  // so that their memory stays
  std::vector<pollfd> links;
  Bells bells;
  const std::uint32_t seen = rings_.load(std::memory_order_acquire);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  bool has_lock = mutex_.try_lock();
  if (has_lock) {
    for (const auto& each : active_) {
      if (std::ranges::find(worlds, each->world_) == worlds.end()) worlds.push_back(each->world_);
    }
    for (const auto& world : worlds) {
      Doorbell& bell = *world->parts_->doorbell;
      bells.add(bell.rings, bell.rings.load(std::memory_order_acquire), false);
      bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (world->parts_->descriptor >= 0) {
        links.push_back({.fd = world->parts_->descriptor, .events = POLLIN, .revents = 0});
      }
    }
    // Who has written before the sleepers were told of has not rung.
    looks_ = looks_ / kPollsBetweenLooks * kPollsBetweenLooks + kPollsBetweenLooks - 1;
    poll(over);
    mutex_.unlock();
  }
  bells.add(rings_, seen, true);
  const bool is_over = operation != nullptr ? operation->is_done() : count_.load() == 0 || waiters_.load() > 0;
  if (over.empty() && !is_over) {
    if (links.empty()) {
      bells.wait();
    } else {
      ::ppoll(links.data(), links.size(), &kTickWithLinks, nullptr);
    }
  }
  for (const auto& world : worlds) world->parts_->doorbell->sleepers.fetch_sub(1, std::memory_order_relaxed);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  conclude(over);
}

void Progress::ring() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  rings_.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void Progress::begin_helper() {
  const std::lock_guard lock(helper_mutex_);
  if (has_helper_) return;
  begin_thread([this, turn = turn_.load()] { help(turn); });
  begin_thread([this] { watch_helpers(); });
  has_helper_.store(true, std::memory_order_release);
}

void Progress::begin_thread(std::function<void()> does) {
  // Signals are for the threads of the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(does)).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::relieve(std::uint64_t turn) {
  const std::lock_guard lock(helper_mutex_);
  if (turn_.load() != turn) return;
  conclusions_.store(0);
  turn_.store(turn + 1);
  begin_thread([this, turn] { help(turn + 1); });
}

bool Progress::is_helper_wanted() const {
  return (count_.load() > 0 || finished_count_.load() > 0) && waiters_.load() == 0;
}

void Progress::watch_helpers() {
  ::pthread_setname_np(::pthread_self(), "tutti_watch");
  std::uint64_t seen_turn = 0, seen = 0;
  for (;;) {
    {
      std::unique_lock lock(helper_mutex_);
      if (is_helper_asleep_.load()) helper_comes_.wait(lock, [&] { return !is_helper_asleep_.load(); });
    }
    std::this_thread::sleep_for(kBetweenWatches);
    const std::uint64_t turn = turn_.load(), now = conclusions_.load();
    const bool is_the_same = turn == seen_turn && now == seen && now % 2 == 1;
    if (is_the_same && is_helper_wanted()) relieve(turn);
    seen_turn = turn;
    seen = now;
  }
}

void Progress::help(std::uint64_t turn) {
  ::pthread_setname_np(::pthread_self(), "tutti_helper");
  helps_in_turn = turn;
  Operations over;
  std::uint64_t seen = 0;
  for (int quiet = 0;;) {
    {
      std::unique_lock lock(helper_mutex_);
      const std::uint64_t posts = posts_.load(std::memory_order_relaxed);
      quiet = count_.load() == 0 && posts == seen ? quiet + 1 : 0;
      seen = posts;
      if (quiet > kQuietTicks) {
        is_helper_asleep_.store(true);
        helper_wakes_.wait(lock, [&] { return count_.load() > 0 || finished_count_.load() > 0; });
        is_helper_asleep_.store(false);
        helper_comes_.notify_one();
      } else {
        helper_wakes_.wait_for(lock, kTick, [&] { return attended_.load() > 0 && is_helper_wanted(); });
      }
    }
    while (is_helper_wanted()) {
      if (mutex_.try_lock()) {
        for (int i = 0; i < kPollsWithLock && over.empty() && wanted_.load(std::memory_order_relaxed) == 0; ++i) {
          poll(over);
          pause();
        }
        mutex_.unlock();
      }
      if (over.empty() && finished_count_.load() == 0) sleep(nullptr);
      conclude(over);
      if (turn_.load() != turn) return;
    }
  }
}

}  // namespace tutti::embed

// SPDX-License-Identifier: Apache-2.0
// Who moves what is under way in a process: one list of all its operations, of all worlds, and one lock around all its
// communicators. Whoever waits looks at all of them, spins a little, then sleeps until a peer rings. It never yields:
// where other threads want the core, one that yields has no claim to it, and a sleeper that is woken has.
//
// A helper thread does so while nobody waits. It begins with the first operation that its post has not completed, looks
// once in a millisecond, and sleeps for good after 50 ms without an operation. An operation that is attended to
// (Operation::attend) it moves at once.
//
// What an operation calls in its end may wait for another operation, as callbacks of futures do, even without `drive`.
// A thread that has called it so counts for none that waits; and a helper that attends to something there, or does not
// come back for some milliseconds, is relieved by a new one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "impl/embed/operation.h"

namespace tutti::embed {

class World;

class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Operations = std::vector<std::shared_ptr<Operation>>;

  /// That of this process; of a forked child, a new one.
  [[nodiscard]] static Progress& here();

  /// The lock around all communicators of the process. Whoever polls makes way for it.
  class Lock {
   public:
    explicit Lock(Progress& progress) : progress_(progress) {
      progress.wanted_.fetch_add(1, std::memory_order_relaxed);
      progress.mutex_.lock();
      progress.wanted_.fetch_sub(1, std::memory_order_relaxed);
    }
    ~Lock() { progress_.mutex_.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Progress& progress_;
  };

  /// With the lock: one that is not over.
  void add(std::shared_ptr<Operation> operation);
  /// After add, without the lock.
  void tell_helper();
  /// With the lock: takes all operations of a world out of the list, with that status.
  [[nodiscard]] Operations take_all_of(const World& world, const Status& status);

  /// Looks once at all of them.
  void move_once();
  /// Returns when `operation` is done, or at `until`.
  void drive(const Operation& operation, Time until);
  void attend(Operation& operation);
  /// Wakes the threads of this process that sleep: an operation is done.
  void ring();

 private:
  /// With the lock: those that are over leave the list for `over`.
  void poll(Operations& over);
  /// One after the other; another thread may take some of them, while this one is busy with what one calls.
  void conclude(Operations& over);
  /// The first, or null; the others to finished_.
  [[nodiscard]] std::shared_ptr<Operation> keep_all_but_one(Operations& over);
  [[nodiscard]] std::shared_ptr<Operation> take_finished();
  /// Sleeps until a peer or this process rings, for a tick at most, unless `operation` is done. Null: the helper.
  void sleep(const Operation* operation);
  void begin_helper();
  static void begin_thread(std::function<void()> does);
  /// Until another one has its place: `turn` is its own.
  void help(std::uint64_t turn);
  /// In the place of the helper whose turn it is, if that is still `turn`.
  void relieve(std::uint64_t turn);
  /// Relieves helpers that do not come back.
  [[noreturn]] void watch_helpers();
  [[nodiscard]] bool is_helper_wanted() const;

  std::mutex mutex_;
  std::atomic<int> wanted_{0};
  Operations active_;             // in the order in which they were posted
  std::atomic<int> count_{0};     // of active_
  std::atomic<int> attended_{0};  // of active_
  unsigned looks_ = 0;
  std::atomic<int> waiters_{0};  // threads in drive
  std::atomic<std::uint32_t> rings_{0}, sleepers_{0};

  std::mutex finished_mutex_;
  std::deque<std::shared_ptr<Operation>> finished_;  // over, and not yet concluded
  std::atomic<int> finished_count_{0};

  std::mutex helper_mutex_;
  std::condition_variable helper_wakes_, helper_comes_;
  std::atomic<bool> has_helper_{false};
  std::atomic<bool> is_helper_asleep_{false};  // for good
  std::atomic<std::uint64_t> posts_{0};
  std::atomic<std::uint64_t> turn_{1};         // of helpers: how many there have been
  std::atomic<std::uint64_t> conclusions_{0};  // of the helper whose turn it is: odd while it concludes
};

}  // namespace tutti::embed

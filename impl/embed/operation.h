// SPDX-License-Identifier: Apache-2.0
// A call of a world on its way, whoever moves it: the thread that waits for it, another one that waits for something
// else, or the helper (progress.h).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "impl/communicator/communicator.h"
#include "impl/types/visibility.h"

namespace tutti::embed {

class World;

/// What an operation does. It is asked when it is posted, and again whenever all of `works` are complete. It posts on
/// the communicator, appends the handles to `works` and answers whether nothing is to follow them. One that waits for
/// something else, such as a message of any rank, appends nothing and answers false until it is there. Ranks post
/// collectives in one order, so one that needs all ranks is asked first when those posted before have nothing to follow.
using Next = std::function<Result<bool>(Communicator& communicator, std::vector<Work>& works)>;

struct OperationOptions {
  static constexpr int kAllRanks = -1, kAnyRank = -2;
  /// From the post on; 0: that of the world. One that passes its deadline ends the world, and says where all ranks
  /// stand.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds(0);
  /// The rank without which it cannot go on: its end is the operation's. kAnyRank: any other one will do.
  int needs = kAllRanks;
  /// Called once when the operation is done, before it says so, without a lock, by any thread.
  std::function<void(const Status&)> at_end = {};
};

/// Thread-safe.
class TUTTI_API Operation {
 public:
  Operation(std::shared_ptr<World> world, Next next, OperationOptions options);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Whether it is done, well or badly. It does not look: see test.
  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  /// Makes progress once with all operations of the process; whether it is done.
  bool test();
  /// Returns when it is done, or when the time is over, which ends nothing; whether it is done. Moves all operations of
  /// the process meanwhile: spins a little, then sleeps.
  bool wait_for(std::chrono::nanoseconds timeout);
  /// The same without an end but that of the operation's own deadline. Returns how it went.
  Status wait();
  /// How it went. Requires: is_done. Errors: timeout, aborted, mismatch as for Work::wait.
  [[nodiscard]] const Status& status() const { return status_; }
  /// The helper thread moves it from now on, whoever waits: for somebody who waits elsewhere, as for a future.
  void attend();

 private:
  friend class Progress;
  friend class World;
  /// With the lock of Progress. Whether it is over.
  bool look();
  /// The same, now and then: whether a rank that it needs is no more, and its deadline.
  bool look_around(std::chrono::steady_clock::time_point now);
  /// Asks next_, if it is this one's turn. With the lock of Progress.
  Status post_next();
  /// Without the lock, once, when it is over.
  void conclude();

  /// Whether each rank of the host has a core to wait on.
  [[nodiscard]] bool may_spin() const { return may_spin_; }

  std::shared_ptr<World> world_;  // null once it is done
  Next next_;
  OperationOptions options_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<Work> works_;
  std::uint64_t turn_ = 0;    // of those that need all ranks
  std::size_t at_ = 0;        // works before it are complete
  bool is_posted_ = false;    // nothing is to follow
  bool is_attended_ = false;  // with the lock of Progress
  bool may_spin_;
  Status status_;
  std::atomic<bool> is_done_{false};
};

}  // namespace tutti::embed

// SPDX-License-Identifier: Apache-2.0
// Gloo has no asynchronous calls. Its users run them in threads of their own, and so does this backend.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tutti::backend_gloo {

/// What a lane is to do once. It outlives the wait for it.
struct Task {
  const std::function<void()>* work = nullptr;
  std::atomic<bool> is_done = true;
  std::string error;  ///< what was thrown; read it when the task is done
};

/// A thread that does tasks one after the other, in the order in which they were pushed.
class Lane {
 public:
  Lane() : thread_([this] { serve(); }) {}
  /// All tasks are done.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void push(Task& task);
  void wait(const Task& task);
  [[nodiscard]] bool is_idle() const;

 private:
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable pushed_, done_;
  std::deque<Task*> queue_;  ///< the first one is being done
  bool is_ending_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace tutti::backend_gloo

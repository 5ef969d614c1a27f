// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/lane.h"

#include <exception>

namespace tutti::backend_gloo {

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  pushed_.notify_one();
  thread_.join();
}

void Lane::push(Task& task) {
  task.error.clear();
  task.is_done = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(&task);
  }
  pushed_.notify_one();
}

void Lane::wait(const Task& task) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&task] { return task.is_done.load(); });
}

bool Lane::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void Lane::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    pushed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task& task = *queue_.front();
    lock.unlock();
    try {
      (*task.work)();
    } catch (const std::exception& thrown) {
      task.error = thrown.what();
    }
    lock.lock();
    queue_.pop_front();
    task.is_done = true;  // its owner may free it from here on
    done_.notify_all();
  }
}

}  // namespace tutti::backend_gloo

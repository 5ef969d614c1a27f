// SPDX-License-Identifier: Apache-2.0
#include "suites/backends/doubles/stream.h"

#include <utility>

#include "suites/backends/doubles/settings.h"

namespace tutti::doubles {
namespace {

/// The most that an item waits before it begins.
int most_late_us() {
  static const int most = number_of("TUTTI_DOUBLE_LATE_US", 60);
  return most;
}

unsigned next_seed() {
  static std::atomic<unsigned> seed = 1;
  return seed++;
}

}  // namespace

bool& is_in_item() {
  thread_local bool is_in = false;
  return is_in;
}

Line::Line(int of_device) : device_(of_device), random_(next_seed()), thread_([this] { serve(); }) {}

Line::~Line() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Line::put(Item item) {
  const std::lock_guard lock(mutex_);
  if (capture_ != nullptr) {
    capture_->items.push_back(std::move(item));
    return;
  }
  items_.push_back(std::move(item));
  changed_.notify_all();
}

bool Line::is_idle() {
  const std::lock_guard lock(mutex_);
  return items_.empty();
}

void Line::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return items_.empty(); });
}

std::shared_ptr<Capture> Line::capture() {
  const std::lock_guard lock(mutex_);
  return capture_;
}

void Line::begin(std::shared_ptr<Capture> capture) {
  const std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
}

std::shared_ptr<Capture> Line::end() {
  const std::lock_guard lock(mutex_);
  return std::exchange(capture_, nullptr);
}

void Line::serve() {
  is_in_item() = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item& item = items_.front();  // others are put behind it meanwhile
    lock.unlock();
    if (item.is_late && most_late_us() > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<unsigned>(most_late_us())));
    }
    item.work();
    lock.lock();
    items_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace tutti::doubles

// SPDX-License-Identifier: Apache-2.0
// A stream is a thread that works late: each item begins a while after it was put there. A graph is a list of items
// that were put on a stream while it was captured.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace tutti::doubles {

struct Item {
  std::function<void()> work;
  bool is_late = true;
};

struct Capture {
  std::vector<Item> items;
  int mode = 0;
  std::thread::id thread;
  std::atomic<bool> is_broken = false;  ///< something was called that must not be
};

/// What an event waits for. Kept by the items that refer to it.
struct Mark {
  std::atomic<std::uint64_t> recorded = 0;
  std::atomic<std::uint64_t> reached = 0;
  std::atomic<std::int64_t> time_ns = 0;
  std::atomic<bool> is_captured = false;
};

class Line {
 public:
  explicit Line(int of_device);
  /// All items are done.
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Behind all others; or into the graph, while it is captured.
  void put(Item item);
  [[nodiscard]] bool is_idle();
  void wait_until_idle();

  [[nodiscard]] int device() const { return device_; }
  /// Null unless it is captured.
  [[nodiscard]] std::shared_ptr<Capture> capture();
  void begin(std::shared_ptr<Capture> capture);
  [[nodiscard]] std::shared_ptr<Capture> end();

 private:
  void serve();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;  ///< the first one is being done
  std::shared_ptr<Capture> capture_;
  bool is_over_ = false;
  std::minstd_rand random_;
  std::thread thread_;  ///< last: it uses the others
};

/// Whether this thread is doing an item, where no function of CUDA may be called.
[[nodiscard]] bool& is_in_item();

}  // namespace tutti::doubles

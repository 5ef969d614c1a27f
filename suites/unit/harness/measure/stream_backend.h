// SPDX-License-Identifier: Apache-2.0
// A library for the memory of a device, by backend.h: a stream is a thread that works late. Its one collective is
// all_gather of the ranks of this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/backends/backend.h"
#include "harness/machine/clock.h"
#include "suites/unit/harness/verify/device_memory.h"

namespace tutti::harness::measure {

/// Does what was posted on it, one after the other, each a while after it was posted.
class LateStream {
 public:
  ~LateStream() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  /// The number of the work, from 1.
  int post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
    return ++posted_;
  }
  [[nodiscard]] bool has_done(int number) {
    const std::lock_guard lock(mutex_);
    return done_ >= number;
  }
  void synchronise(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= number; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_over_ || !work_.empty(); });
      if (work_.empty()) return;
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      next();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  int posted_ = 0, done_ = 0;
  bool is_over_ = false;
  std::thread thread_{[this] { run(); }};
};

/// Instants on such a stream, and how often any of them was marked.
class LateInstants final : public verify::Instants {
 public:
  LateInstants(LateStream& stream, std::atomic<int>& marks) : stream_(stream), marks_(marks) {}
  Status mark() override {
    ++marks_;
    numbers_.push_back(stream_.post([seen = seen_] { seen->push_back(monotonic_ns()); }));
    return {};
  }
  [[nodiscard]] Result<std::size_t> passed() override {
    return static_cast<std::size_t>(std::ranges::count_if(numbers_, [this](int one) { return stream_.has_done(one); }));
  }
  [[nodiscard]] Result<std::vector<double>> intervals_us() override {
    stream_.synchronise(numbers_.back());
    std::vector<double> intervals;
    for (std::size_t i = 1; i < seen_->size(); ++i) {
      intervals.push_back(static_cast<double>((*seen_)[i] - (*seen_)[i - 1]) * 1e-3);
    }
    return intervals;
  }
  void restart() override {
    numbers_.clear();
    seen_->clear();
  }

 private:
  LateStream& stream_;
  std::atomic<int>& marks_;
  std::vector<int> numbers_;  ///< of their works
  std::shared_ptr<std::vector<std::int64_t>> seen_ = std::make_shared<std::vector<std::int64_t>>();
};

/// Device memory with the stream that its calls are posted on.
class StreamedMemory final : public DeviceMemory {
 public:
  [[nodiscard]] void* stream() const override { return &stream_; }
  [[nodiscard]] Result<std::unique_ptr<verify::Instants>> instants(int /*most*/) override {
    if (!has_instants) return std::unique_ptr<verify::Instants>();
    return std::unique_ptr<verify::Instants>(std::make_unique<LateInstants>(stream_, marks));
  }

  bool has_instants = false;
  std::atomic<int> marks = 0;

 private:
  mutable LateStream stream_;
};

/// The state behind the table of functions, which has no context: one at a time.
struct StreamLibrary {
  struct Call {
    TuttiBackendCall what;
    int number = 0;  ///< of its work in the stream
  };
  StreamedMemory device;
  std::vector<TuttiBackendCall> prepared;  ///< all that ever were
  std::vector<Call*> calls;                ///< by local rank
  std::vector<Call*> posted_in_group;
  bool is_in_group = false, forgets_to_synchronise = false;
  int groups = 0, aborted = 0, closed = 0, registered = 0, forgotten = 0;
  std::size_t registered_bytes = 0;
  std::string error;                         ///< found of its own accord
  std::atomic<int> begun = 0, hangs_at = 0;  ///< calls; the number of the one that ends when it `goes_on`
  std::atomic<bool> goes_on = false;

  StreamLibrary() { now() = this; }
  ~StreamLibrary() { now() = nullptr; }
  StreamLibrary(const StreamLibrary&) = delete;
  StreamLibrary& operator=(const StreamLibrary&) = delete;
  static StreamLibrary*& now() {
    static StreamLibrary* one = nullptr;
    return one;
  }

  void enqueue(Call& call) {
    call.number = static_cast<LateStream*>(call.what.stream)->post([this, &call] {
      const bool hangs = ++begun == hangs_at;
      while (hangs && !goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      gather(call.what);
    });
  }
  void gather(const TuttiBackendCall& to) const {
    const auto block = static_cast<std::size_t>(to.count) * to.element_bytes;
    for (std::size_t from = 0; from < calls.size(); ++from) {
      std::memmove(device.at(to.recv) + from * block, device.at(calls[from]->what.send), block);
    }
  }
};

inline int say(TuttiBackendMessage* message, const std::string& text) {
  std::snprintf(message->text, message->size, "%s", text.c_str());
  return 1;
}

/// Without the functions that a library need not have, or with them.
[[nodiscard]] inline TuttiBackend stream_table(bool has_all) {
  using Call = StreamLibrary::Call;
  TuttiBackend table{};
  table.abi = TUTTI_BACKEND_ABI;
  table.name = "late";
  table.starter = TUTTI_STARTER_NONE;
  table.open = [](const TuttiBackendGroup*, const TuttiBackendJoin*, TuttiBackendMessage*) { return 0; };
  table.supports = [](const TuttiBackendCall*, TuttiBackendMessage*) { return 0; };
  table.prepare = [](const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
    StreamLibrary& all = *StreamLibrary::now();
    all.prepared.push_back(*call);
    if (call->memory != TUTTI_MEMORY_CUDA || call->stream == nullptr) return say(message, "not on a stream");
    all.calls.resize(std::max(all.calls.size(), static_cast<std::size_t>(call->local) + 1));
    *handle = all.calls[static_cast<std::size_t>(call->local)] = new Call{.what = *call};
    return 0;
  };
  table.run = [](void* handle, TuttiBackendMessage*) {
    Call& call = *static_cast<Call*>(handle);
    StreamLibrary::now()->enqueue(call);
    if (!StreamLibrary::now()->forgets_to_synchronise) {
      static_cast<LateStream*>(call.what.stream)->synchronise(call.number);
    }
    return 0;
  };
  table.post = [](void* handle, TuttiBackendMessage* message) {
    StreamLibrary& all = *StreamLibrary::now();
    Call& call = *static_cast<Call*>(handle);
    if (call.what.asynchronous == 0) return say(message, "prepared to be run");
    if (all.is_in_group) {
      all.posted_in_group.push_back(&call);
    } else if (all.calls.size() > 1) {
      return say(message, "one thread posts for several ranks in groups only");
    } else {
      all.enqueue(call);
    }
    return 0;
  };
  table.test = [](void* handle, int32_t* is_complete, TuttiBackendMessage*) {
    Call& call = *static_cast<Call*>(handle);
    const bool is_done = static_cast<LateStream*>(call.what.stream)->has_done(call.number);
    *is_complete = is_done || StreamLibrary::now()->forgets_to_synchronise ? 1 : 0;
    return 0;
  };
  table.release = [](void* handle) {
    auto* const call = static_cast<Call*>(handle);
    static_cast<LateStream*>(call->what.stream)->synchronise(call->number);
    delete call;
  };
  table.close = [](TuttiBackendMessage*) {
    ++StreamLibrary::now()->closed;
    return 0;
  };
  if (!has_all) return table;
  table.begin_group = [](TuttiBackendMessage*) {
    StreamLibrary::now()->is_in_group = true;
    return 0;
  };
  table.end_group = [](TuttiBackendMessage*) {
    StreamLibrary& all = *StreamLibrary::now();
    for (Call* const call : std::exchange(all.posted_in_group, {})) all.enqueue(*call);
    all.is_in_group = false;
    ++all.groups;
    return 0;
  };
  table.register_buffer = [](void*, int32_t, void*, uint64_t bytes, int32_t kind, void** handle, TuttiBackendMessage*) {
    StreamLibrary& all = *StreamLibrary::now();
    all.registered += kind == 0 ? 1 : 0;  // a symmetric window needs memory of the library
    all.registered_bytes += bytes;
    *handle = &all;
    return 0;
  };
  table.forget_buffer = [](int32_t, void* handle, TuttiBackendMessage*) {
    ++static_cast<StreamLibrary*>(handle)->forgotten;
    return 0;
  };
  table.poll_error = [](int32_t, TuttiBackendMessage* message) {
    const std::string& error = StreamLibrary::now()->error;
    return error.empty() ? 0 : say(message, error);
  };
  table.abort = [](int32_t, TuttiBackendMessage*) {
    ++StreamLibrary::now()->aborted;
    return 0;
  };
  return table;
}

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
#include "harness/text/outlet.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tutti::harness::text {
namespace {

/// SIGPIPE does not end the program while one of these lives; what it raised meanwhile is taken.
class WithoutPipeSignal {
 public:
  explicit WithoutPipeSignal(bool is_wanted) : is_wanted_(is_wanted) {
    if (!is_wanted_) return;
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() {
    if (!is_wanted_) return;
    const timespec now{};
    if (!was_waiting_) {
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  bool is_wanted_;
  bool was_waiting_ = false;
  sigset_t pipe_{};
  sigset_t before_{};
};

/// Signals that a thread made meanwhile leaves to the others; those of its own writing it keeps.
class SignalsForOthers {
 public:
  SignalsForOthers() {
    sigset_t most;
    sigfillset(&most);
    for (const int own : {SIGPIPE, SIGTTOU, SIGXFSZ, SIGSEGV, SIGBUS, SIGABRT}) sigdelset(&most, own);
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  SignalsForOthers(const SignalsForOthers&) = delete;
  SignalsForOthers& operator=(const SignalsForOthers&) = delete;
  ~SignalsForOthers() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// A reader that is slow may keep a write of a few bytes waiting, and no poll can tell. Others never do for long.
bool may_wait(int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) return false;
  return S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || ::isatty(descriptor) != 0;
}

}  // namespace

/// The texts for one file, in order, and the thread that writes them. It lives as long as the process.
class OutletQueue {
 public:
  /// The queue of the file that is open at `descriptor`. Null if the file never keeps a writer waiting.
  static OutletQueue* of(int descriptor) {
    if (!may_wait(descriptor)) return nullptr;
    struct stat about {};
    ::fstat(descriptor, &about);
    const std::lock_guard lock(all().mutex);
    auto& queue = all().queues[{about.st_dev, about.st_ino}];
    if (queue == nullptr) queue = std::make_unique<OutletQueue>();
    return queue.get();
  }

  /// A reader that keeps up is waited for, so that it has the text on return.
  void add(std::shared_ptr<Outlet> owner, Outlet& outlet, std::string_view text) {
    constexpr std::chrono::milliseconds kOfAReaderThatKeepsUp(100);
    std::unique_lock lock(mutex_);
    if (!start()) {  // no thread can be made: the caller waits itself
      lock.unlock();
      outlet.put_out(text);
      return;
    }
    const bool was_empty = texts_.empty();
    if (was_empty) is_given_up_ = false;
    texts_.push_back({std::move(owner), outlet, std::string(text)});
    has_text_.notify_one();
    if (was_empty) is_empty_.wait_for(lock, kOfAReaderThatKeepsUp, [this] { return texts_.empty(); });
  }

  [[nodiscard]] bool is_empty() {
    const std::lock_guard lock(mutex_);
    return texts_.empty();
  }

  void has_moved() { ++moves_; }

  static bool drain(std::optional<std::chrono::milliseconds> patience) {
    bool is_all = true;
    std::vector<OutletQueue*> queues;
    {
      const std::lock_guard lock(all().mutex);
      for (const auto& [_, queue] : all().queues) queues.push_back(queue.get());
    }
    for (OutletQueue* const queue : queues) is_all = queue->wait_until_empty(patience) && is_all;
    return is_all;
  }

 private:
  struct Text {
    std::shared_ptr<Outlet> owner;  ///< null if the outlet lives as long as the process
    Outlet& outlet;
    std::string text;
  };
  struct All {
    std::mutex mutex;
    std::map<std::pair<dev_t, ino_t>, std::unique_ptr<OutletQueue>> queues;
  };
  /// Never destroyed, as the threads are not.
  static All& all() {
    static All& one = *new All();
    return one;
  }

  bool start() {
    if (thread_of_ == ::getpid()) return true;
    try {
      const SignalsForOthers mask;
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    static const int at_end = std::atexit([] { drain_outlets(); });
    static_cast<void>(at_end);
    thread_of_ = ::getpid();
    return true;
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      has_text_.wait(lock, [this] { return !texts_.empty(); });
      Text& next = texts_.front();
      lock.unlock();
      next.outlet.put_out(next.text);
      lock.lock();
      texts_.pop_front();
      if (texts_.empty()) is_empty_.notify_all();
    }
  }

  bool wait_until_empty(std::optional<std::chrono::milliseconds> patience) {
    std::unique_lock lock(mutex_);
    if (is_given_up_ || thread_of_ != ::getpid()) return true;  // a child of fork has no such thread
    const auto is_over = [this] { return texts_.empty(); };
    if (!patience) {
      is_empty_.wait(lock, is_over);
      return true;
    }
    for (std::uint64_t seen = moves_;; seen = moves_) {
      if (is_empty_.wait_for(lock, *patience, is_over)) return true;
      if (seen == moves_) break;
    }
    is_given_up_ = true;
    return false;
  }

  std::mutex mutex_;
  std::condition_variable has_text_, is_empty_;
  std::deque<Text> texts_;  ///< the first is being written
  std::atomic<std::uint64_t> moves_ = 0;
  pid_t thread_of_ = 0;  ///< the process that has the thread
  bool is_given_up_ = false;
};

Outlet::Outlet(int descriptor, Descriptor owned, bool raises_pipe_signal)
    : descriptor_(descriptor),
      owned_(std::move(owned)),
      raises_pipe_signal_(raises_pipe_signal),
      queue_(OutletQueue::of(descriptor)) {}

Outlet& Outlet::to_stdout() {
  static Outlet& one = *new Outlet(STDOUT_FILENO, Descriptor(), true);
  return one;
}

Outlet& Outlet::to_stderr() {
  static Outlet& one = *new Outlet(STDERR_FILENO, Descriptor(), false);
  return one;
}

std::shared_ptr<Outlet> Outlet::on(Descriptor file) {
  const int number = file.get();
  return std::shared_ptr<Outlet>(new Outlet(number, std::move(file), true));
}

int Outlet::write(std::string_view text) {
  if (failure_ != 0 || text.empty()) return failure_;
  if (queue_ == nullptr) {
    put_out(text);
  } else {
    queue_->add(weak_from_this().lock(), *this, text);
  }
  return failure_;
}

bool Outlet::is_behind() const { return queue_ != nullptr && !queue_->is_empty(); }

void Outlet::put_out(std::string_view text) {
  constexpr std::size_t kAtOnce = 4096;
  const WithoutPipeSignal guard(!raises_pipe_signal_);
  while (!text.empty() && failure_ == 0) {
    const ssize_t written = ::write(descriptor_, text.data(), std::min(text.size(), kAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another program has made the file so that nothing waits
      pollfd one{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      ::poll(&one, 1, -1);
      continue;
    }
    if (written <= 0) {
      failure_ = written < 0 ? errno : ENOSPC;
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    if (queue_ != nullptr) queue_->has_moved();
  }
}

bool drain_outlets(std::optional<std::chrono::milliseconds> patience) { return OutletQueue::drain(patience); }

}  // namespace tutti::harness::text

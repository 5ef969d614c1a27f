// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/footprint.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/backends/tutti/backend.h"
#include "harness/board/board.h"
#include "harness/gate/allocations.h"
#include "harness/machine/clock.h"
#include "harness/measure/variant.h"
#include "harness/process/waits.h"
#include "impl/transports/transport.h"

namespace tutti::harness::gate {
namespace {

constexpr unsigned kDeadlineSeconds = 60;  ///< of the child, by its alarm
/// By how much later the parent ends a child that its alarm has not ended.
constexpr std::chrono::seconds kParentPatience{5};
constexpr int kWarmUp = 16;  ///< operations: plans, all generations, all that is allocated once

/// Zeroed memory that a child shares.
class Pages {
 public:
  static Result<Pages> create(std::size_t bytes) {
    void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return error(Code::resource, "no {} bytes of memory: {}", bytes, std::strerror(errno));
    return Pages(base, bytes);
  }
  [[nodiscard]] void* base() const { return memory_.get(); }

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(void* base) const { ::munmap(base, bytes); }
  };
  Pages(void* base, std::size_t bytes) : memory_(base, Unmap{bytes}) {}
  std::unique_ptr<void, Unmap> memory_;
};

/// What the child says of itself.
struct Confession {
  std::int64_t allocations = 0;
  Code code = Code::ok;
  char reason[512] = {};
};

/// Stops, for the tracer to count from here, or up to here. Only this thread can send itself a signal in this way:
/// see Traced::is_mark.
void mark() { ::raise(SIGSTOP); }

[[noreturn]] void be_counted(Confession& confession, const std::function<Status()>& prepare,
                             const std::function<Status()>& perform) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kDeadlineSeconds);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
  Status status = prepare();
  if (status.is_ok()) {
    mark();
    mark();  // between these two lies only what a mark itself costs
    const std::int64_t before = allocations_of_this_thread();
    status = perform();
    confession.allocations = allocations_of_this_thread() - before;
    mark();
  }
  confession.code = status.code();
  std::strncpy(confession.reason, std::string(status.message()).c_str(), sizeof confession.reason - 1);
  ::_exit(0);
}

/// A child that is traced, and gone when this is.
class Traced {
 public:
  explicit Traced(pid_t pid)
      : pid_(pid), deadline_(Clock::now() + std::chrono::seconds(kDeadlineSeconds) + kParentPatience) {}
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  ~Traced() {
    if (!end_) ::kill(pid_, SIGKILL);
    while (!end_) wait();
  }

  /// System calls up to its next mark; empty where it ends before that. Does not count before `starts_counting`.
  std::optional<std::int64_t> calls_to_mark() {
    std::int64_t calls = 0;
    for (bool is_inside = false;;) {
      const auto stop = wait();
      if (!stop) return std::nullopt;
      const bool is_call = *stop == (SIGTRAP | kSystemCall);
      if (is_mark(*stop)) return calls;
      if (is_call) is_inside = !is_inside;
      if (is_call && is_inside) ++calls;
      goes_on(is_call ? 0 : *stop);
    }
  }
  void starts_counting() {
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    request_ = PTRACE_SYSCALL;
    goes_on();
  }
  void goes_on() { goes_on(0); }
  /// Until its end. How it ended, as waitpid has it.
  int ends() {
    request_ = PTRACE_CONT;
    if (!end_) goes_on();
    while (!end_) {
      if (const auto stop = wait()) goes_on(*stop == (SIGTRAP | kSystemCall) ? 0 : *stop);
    }
    return *end_;
  }
  [[nodiscard]] bool is_late() const { return is_late_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kSystemCall = 0x80;  ///< PTRACE_O_TRACESYSGOOD sets it

  /// Whether it stops by mark(). A SIGSTOP that `kill` sends has another origin, and stops it anywhere.
  [[nodiscard]] bool is_mark(int stop) const {
    siginfo_t origin = {};
    return stop == SIGSTOP && ::ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &origin) == 0 && origin.si_code == SI_TKILL &&
           origin.si_pid == pid_;
  }

  /// Continues it, with the signal for which it has stopped. A signal that would only stop it again is dropped.
  void goes_on(int signal) {
    const bool is_stop = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    const bool is_traced = ::ptrace(request_, pid_, nullptr, is_stop ? 0 : signal) == 0;
    if (!is_traced) ::kill(pid_, SIGCONT);  // it was stopped before it asked to be traced
  }

  /// The signal with which it stops; empty: it has ended. Ends it at the deadline.
  std::optional<int> wait() {
    constexpr std::chrono::microseconds kNap{50};
    int status = 0;
    pid_t found = 0;
    const auto has_changed = [&] {
      found = ::waitpid(pid_, &status, WNOHANG | WUNTRACED);
      return found == pid_ || (found < 0 && errno != EINTR);
    };
    if (!nap_until(deadline_ - Clock::now(), has_changed, kNap)) {
      is_late_ = true;
      ::kill(pid_, SIGKILL);
      while ((found = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
      }
    }
    if (found < 0) status = SIGKILL;
    if (WIFSTOPPED(status)) return WSTOPSIG(status);
    end_ = status;
    return std::nullopt;
  }

  pid_t pid_;
  __ptrace_request request_ = PTRACE_CONT;
  Clock::time_point deadline_;
  bool is_late_ = false;
  std::optional<int> end_;
};

/// All ranks of a case as tasks of this thread.
class Tasks {
 public:
  static Result<std::unique_ptr<Tasks>> create(Case one) {
    one.ranks_as = RanksAs::tasks;
    const Transport& transport = best_transport(RanksIn::one_process);
    one.transport = transport.name;
    TUTTI_ASSIGN_OR_RETURN(Pages pages, Pages::create(Board::bytes(one.ranks)));
    auto tasks = std::unique_ptr<Tasks>(new Tasks(std::move(pages), one));
    TUTTI_ASSIGN_OR_RETURN(tasks->domain_, transport.open(transport.shape(one.ranks, 1, 0), {}));
    const CommunicatorOptions options{.waiting = Waiting::yield, .prove_plans = false};
    TUTTI_ASSIGN_OR_RETURN(tasks->backend_, OwnBackend::create(*tasks->domain_, tasks->runner_.ranks(), options));
    OwnBackend& backend = *tasks->backend_;
    const auto memory = [&](const Case& which, std::size_t index) { return backend.allocator(which, index); };
    auto variant = Variant::create(tasks->runner_, {.backend = backend, .memory = memory, .instance = one});
    if (!variant.is_ok()) return variant.status();
    tasks->variant_ = std::make_unique<Variant>(std::move(variant).value());
    tasks->variant_->refill(1);
    return tasks;
  }

  Status run(int operations) {
    for (int i = 0; i < operations; ++i) TUTTI_RETURN_IF_ERROR(variant_->run(times_));
    return {};
  }

 private:
  Tasks(Pages pages, const Case& one)
      : pages_(std::move(pages)),
        runner_(Board(pages_.base(), one.ranks), {.job_ranks = one.ranks, .ranks = all_of(one.ranks)}) {}

  static std::vector<int> all_of(int ranks) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  Pages pages_;
  Runner runner_;
  std::unique_ptr<Domain> domain_;
  std::unique_ptr<OwnBackend> backend_;
  std::unique_ptr<Variant> variant_;
  RankTimes times_;
};

}  // namespace

Result<Footprint> footprint_of(const std::function<Status()>& prepare, const std::function<Status()>& perform) {
  TUTTI_ASSIGN_OR_RETURN(const Pages pages, Pages::create(sizeof(Confession)));
  auto& confession = *new (pages.base()) Confession();
  const pid_t pid = ::fork();
  if (pid < 0) return error(Code::resource, "there can be no further process: {}", std::strerror(errno));
  if (pid == 0) be_counted(confession, prepare, perform);
  Traced child(pid);
  std::optional<std::int64_t> of_mark, calls;
  if (child.calls_to_mark()) {
    child.starts_counting();
    of_mark = child.calls_to_mark();
    if (of_mark) child.goes_on();
    if (of_mark) calls = child.calls_to_mark();
  }
  const int end = child.ends();
  if (WIFEXITED(end) && WEXITSTATUS(end) != 0) {
    return error(Code::unavailable, "system calls cannot be counted: a process may not trace its child here (ptrace)");
  }
  if (child.is_late() || (WIFSIGNALED(end) && WTERMSIG(end) == SIGALRM)) {
    return error(Code::timeout, "what is counted did not end within {} s", kDeadlineSeconds);
  }
  if (WIFSIGNALED(end)) return error(Code::aborted, "what is counted ended with signal {}", WTERMSIG(end));
  if (confession.code != Code::ok) return error(confession.code, "{}", confession.reason);
  return Footprint{.allocations = confession.allocations, .system_calls = *calls - *of_mark};
}

Result<Footprint> footprint_of(const Case& one) {
  std::unique_ptr<Tasks> tasks;
  const auto prepare = [&]() -> Status {
    TUTTI_ASSIGN_OR_RETURN(tasks, Tasks::create(one));
    return tasks->run(kWarmUp);
  };
  return footprint_of(prepare, [&] { return tasks->run(kCountedOperations); });
}

bool clock_calls_kernel() {
  const auto nothing = [] { return Status(); };
  const auto read = [] {
    static_cast<void>(monotonic_ns());
    return Status();
  };
  const auto counted = footprint_of(nothing, read);
  return counted.is_ok() && counted.value().system_calls > 0;
}

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
#include "impl/device/teams.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "impl/execute/device_move.h"
#include "impl/execute/target.h"
#include "impl/transports/shared_memory.h"

namespace tutti {
namespace {

constexpr std::align_val_t kAlignment{kDeviceLine};
constexpr int kYieldsBeforeSleep = 200;

/// A replaced kernel knows nothing of threads: one of the team calls it.
void move_replaced(const DeviceMove& move, const DeviceLaunch::Replaced& replaced) {
  std::vector<std::byte*> destinations(move.destinations, move.destinations + move.destination_count);
  std::vector<const std::byte*> sources(move.sources, move.sources + move.source_count);
  std::vector<std::byte> scaled;
  if (move.scaled >= 0) {
    Factor factor;
    std::memcpy(factor.data(), &move.factor, factor.size());
    scaled.resize(static_cast<std::size_t>(move.bytes));
    auto& source = sources[static_cast<std::size_t>(move.scaled)];
    replaced.scale(scaled.data(), source, scaled.size(), factor);
    source = scaled.data();
  }
  replaced.kernel({.destinations = destinations.data(),
                   .destination_count = move.destination_count,
                   .sources = sources.data(),
                   .source_count = move.source_count,
                   .bytes = static_cast<std::size_t>(move.bytes),
                   .ranks = move.ranks,
                   .is_final = move.is_final,
                   .context = replaced.context.get()});
}

struct TeamReduce {
  DeviceMoveFunction move = nullptr;
  const DeviceLaunch::Replaced* replaced = nullptr;  ///< null: nothing is

  void operator()(const DeviceMove& one, int thread, int threads) const {
    if (replaced == nullptr) return move(one, thread, threads);
    if (thread == 0) move_replaced(one, *replaced);
  }
};

/// A list: what is recorded is launched as if it were told anew.
struct RecordedLaunches final : DeviceGraph {
  explicit RecordedLaunches(std::vector<DeviceLaunch> what) : launches(std::move(what)) {}
  std::vector<DeviceLaunch> launches;
};

/// Plans that teams walk.
struct Walk {
  explicit Walk(DeviceLaunch what) : launch(std::move(what)), move(device_move_for(launch.dtype, launch.op)) {
    for (int team = 0; team < launch.teams(); ++team) barriers.emplace_back(launch.threads);
    const auto addresses = static_cast<std::size_t>(most_device_addresses(launch.world.ranks));
    lists.assign(static_cast<std::size_t>(launch.teams()), std::vector<std::byte*>(addresses));
  }

  /// What thread `index` of all teams does. Teams are numbered by lane first: a lane waits for the same lane only.
  void run(int index) {
    const int team = index / launch.threads;
    const int party = team % launch.work.parties;
    const auto place = static_cast<std::size_t>(team);
    HostTarget target(barriers[place], index % launch.threads, launch.threads);
    const TeamReduce reduce{
        .move = move,
        .replaced = launch.replaced.empty() ? nullptr : &launch.replaced[static_cast<std::size_t>(party)]};
    const int rank = launch.work.ranks == nullptr ? party : launch.work.ranks[party];
    run_lane<HostTarget, TeamReduce>(
        launch.world, launch.work, party,
        {.rank = rank, .lane = team / launch.work.parties, .addresses = lists[place].data()}, target, reduce);
  }

  DeviceLaunch launch;
  DeviceMoveFunction move;
  std::deque<TeamBarrier> barriers;            // [team]
  std::vector<std::vector<std::byte*>> lists;  // [team] of addresses
};

/// A function that teams run.
struct Run {
  Run(const TeamsOfThreads& shape, HostTeams::Function what) : threads(shape.threads), function(std::move(what)) {
    for (int team = 0; team < shape.teams; ++team) barriers.emplace_back(threads);
  }
  void run(int index) {
    HostTarget target(barriers[static_cast<std::size_t>(index / threads)], index % threads, threads);
    function(target, index / threads);
  }

  int threads;
  HostTeams::Function function;
  std::deque<TeamBarrier> barriers;  // [team]
};

/// What threads are at work on: each calls `run` with its index.
struct Job {
  template <class What>
  Job(std::shared_ptr<What> what, int all_threads)
      : run([what = std::move(what)](int index) { what->run(index); }), threads(all_threads), running(all_threads) {}

  std::function<void(int index)> run;
  int threads;
  std::atomic<int> running;  // threads that have not ended
};

class Teams final : public HostTeams {
 public:
  explicit Teams(int devices) : most_(kMostTeamThreads / devices) {}
  ~Teams() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::string name() const override { return "teams of threads of the host"; }

  Result<std::byte*> allocate(std::size_t bytes) override {
    if (bytes >= kReserved) return reserve(bytes);
    void* const memory = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow);
    if (memory == nullptr) return no_memory(bytes);
    std::memset(memory, 0, bytes);
    return static_cast<std::byte*>(memory);
  }
  Result<std::byte*> allocate_mapped(std::size_t bytes) override { return allocate(bytes); }
  /// A file in memory, which others reach through /proc as long as it is open here.
  Result<std::byte*> allocate_for_processes(std::size_t bytes) override {
    TUTTI_ASSIGN_OR_RETURN(const int file, create_memory("tutti-teams", bytes));
    const Result<std::byte*> memory = map_file(file, bytes);
    if (!memory.is_ok()) {
      close(file);
      return memory;
    }
    const std::lock_guard lock(mutex_);
    mapped_[memory.value()] = {.bytes = bytes, .file = file};
    return memory;
  }
  void release(std::byte* memory) override {
    const std::lock_guard lock(mutex_);
    const auto mapped = mapped_.extract(memory);
    if (mapped.empty()) return ::operator delete(memory, kAlignment);
    munmap(memory, mapped.mapped().bytes);
    if (mapped.mapped().file >= 0) close(mapped.mapped().file);
  }

  [[nodiscard]] std::string place() const override {
    return fmt::format("process {}, {}", getpid(), static_cast<const void*>(this));
  }
  Result<DeviceOffer> offer(std::byte* memory) override {
    const std::lock_guard lock(mutex_);
    const auto mapped = mapped_.find(memory);
    TUTTI_ASSERT(mapped != mapped_.end() && mapped->second.file >= 0, "memory that is not for processes");
    const Offered offered{.process = getpid(), .file = mapped->second.file, .bytes = mapped->second.bytes};
    DeviceOffer offer;
    std::memcpy(offer.handle.data(), &offered, sizeof offered);
    return offer;
  }
  Result<std::byte*> open_offered(const DeviceOffer& offer, const std::string& place) override {
    Offered offered;
    std::memcpy(&offered, offer.handle.data(), sizeof offered);
    const std::string path = fmt::format("/proc/{}/fd/{}", offered.process, offered.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) {
      return error(Code::unavailable, "cannot open {}, what teams of {} have: {}", path, place, std::strerror(errno));
    }
    const Result<std::byte*> memory = map_file(file, offered.bytes);
    close(file);
    if (!memory.is_ok()) return memory;
    const std::lock_guard lock(mutex_);
    mapped_[memory.value()] = {.bytes = offered.bytes};
    return memory;
  }
  void close_offered(std::byte* memory) override { release(memory); }

  Status write(std::byte* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }

  [[nodiscard]] int usual_threads() const override { return 1; }
  [[nodiscard]] bool needs_cores() const override { return true; }
  Status fits(int teams, int threads) override {
    if (teams <= most_ / threads) return {};
    return error(Code::resource, "{} blocks of {} threads are {} threads of the host: at most {}", teams, threads,
                 static_cast<std::int64_t>(teams) * threads, most_);
  }

  Result<Ticket> launch(DeviceLaunch launch) override {
    TUTTI_RETURN_IF_ERROR(fits(launch.teams(), launch.threads));
    if (const int queue = std::exchange(launch.queue, 0); queue > 0) {
      TUTTI_ASSIGN_OR_RETURN(const Ticket ticket, teams_of(queue).launch(std::move(launch)));
      return ticket | static_cast<Ticket>(queue) << kQueueBit;
    }
    const int threads = launch.teams() * launch.threads;
    return start(std::make_shared<Job>(std::make_shared<Walk>(std::move(launch)), threads));
  }

  Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch> launches) override {
    for (const DeviceLaunch& one : launches) TUTTI_RETURN_IF_ERROR(fits(one.teams(), one.threads));
    return std::unique_ptr<DeviceGraph>(std::make_unique<RecordedLaunches>(std::move(launches)));
  }

  Result<Ticket> replay(DeviceGraph& graph) override {
    Ticket last = 0;
    for (const DeviceLaunch& one : dynamic_cast<const RecordedLaunches&>(graph).launches) {
      TUTTI_ASSIGN_OR_RETURN(last, launch(one));
    }
    return last;
  }

  Result<Ticket> run(const TeamsOfThreads& shape, Function function) override {
    TUTTI_RETURN_IF_ERROR(fits(shape.teams, shape.threads));
    return start(std::make_shared<Job>(std::make_shared<Run>(shape, std::move(function)), shape.teams * shape.threads));
  }

  Result<bool> is_complete(Ticket ticket) override {
    const auto queue = static_cast<int>(ticket >> kQueueBit);
    if (queue > 0) return teams_of(queue).is_complete(ticket & ((Ticket{1} << kQueueBit) - 1));
    return complete_.load(std::memory_order_acquire) >= ticket;
  }

 private:
  static constexpr std::size_t kReserved = std::size_t{1} << 20U;  // from here on

  /// Those of a queue that is not the first.
  Teams& teams_of(int queue) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Teams>& teams = queues_[queue];
    if (teams == nullptr) teams = std::make_unique<Teams>(kMostTeamThreads / most_);
    return *teams;
  }

  Result<Ticket> start(std::shared_ptr<Job> job) {
    Ticket ticket = 0;
    {
      const std::lock_guard lock(mutex_);
      TUTTI_RETURN_IF_ERROR(start_threads(static_cast<std::size_t>(job->threads)));
      jobs_.push_back(std::move(job));
      ticket = first_ + jobs_.size() - 1;
      newest_.store(ticket, std::memory_order_release);
    }
    changed_.notify_all();
    return ticket;
  }

  static Status no_memory(std::size_t bytes) {
    return error(Code::resource, "no memory for {} bytes of the ranks' teams", bytes);
  }
  /// Pages that nobody touches take no memory: of many ranks most channels are never used.
  Result<std::byte*> reserve(std::size_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return no_memory(bytes);
    const std::lock_guard lock(mutex_);
    mapped_[static_cast<std::byte*>(memory)] = {.bytes = bytes};
    return static_cast<std::byte*>(memory);
  }
  static Result<std::byte*> map_file(int file, std::size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return no_memory(bytes);
    return static_cast<std::byte*>(memory);
  }

  Status start_threads(std::size_t wanted) {
    while (threads_.size() < wanted) {
      const int index = static_cast<int>(threads_.size());
      try {
        threads_.emplace_back([this, index, next = first_] { work(index, next); });
      } catch (const std::system_error& failure) {
        return error(Code::resource, "cannot start thread {} of {} of the ranks' teams: {}", index + 1, wanted,
                     failure.code().message());
      }
    }
    return {};
  }

  /// What a thread does all its life: its part of every launch from `next` on, one after the other.
  void work(int index, Ticket next) {
    for (;; ++next) {
      if (!sleep_until([&] { return newest_.load(std::memory_order_acquire) >= next; })) return;
      const std::shared_ptr<Job> job = job_of(next);
      if (job != nullptr && index < job->threads) {
        job->run(index);
        if (job->running.fetch_sub(1, std::memory_order_acq_rel) == 1) finish(next);
      }
      while (complete_.load(std::memory_order_acquire) < next) {
        if (!sleep_until([&] { return complete_.load(std::memory_order_acquire) >= next; })) return;
      }
    }
  }

  void finish(Ticket ticket) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.pop_front();
      ++first_;
      complete_.store(ticket, std::memory_order_release);
    }
    changed_.notify_all();
  }

  /// Null where it is complete: then it had no part for whoever asks.
  std::shared_ptr<Job> job_of(Ticket ticket) {
    const std::lock_guard lock(mutex_);
    return ticket < first_ ? nullptr : jobs_[ticket - first_];
  }

  /// False where the device is over.
  template <class Predicate>
  bool sleep_until(Predicate holds) {
    for (int i = 0; i < kYieldsBeforeSleep; ++i) {
      if (holds()) return true;
      std::this_thread::yield();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_ || holds(); });
    return holds();
  }

  struct Mapped {
    std::size_t bytes = 0;
    int file = -1;  // that other processes open
  };
  /// What an offer holds.
  struct Offered {
    int process = 0;
    int file = 0;
    std::size_t bytes = 0;
  };

  const int most_;  // threads
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;  // that are not complete
  Ticket first_ = 1;                       // of the front of jobs_
  std::atomic<Ticket> newest_ = 0;
  std::atomic<Ticket> complete_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
  std::map<std::byte*, Mapped> mapped_;
  std::map<int, std::unique_ptr<Teams>> queues_;  // but for the first, which this is
};

}  // namespace

std::unique_ptr<HostTeams> make_host_teams(int devices) { return std::make_unique<Teams>(devices); }

}  // namespace tutti

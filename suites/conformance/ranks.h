// SPDX-License-Identifier: Apache-2.0
// Ranks for tests: one body run on every rank of a world, as threads of this process, as processes that share memory
// over shm, as thread blocks on teams of threads of the host, or as processes that have such a device each. What a rank
// finds wrong fails the test in every form.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "impl/communicator/blocks.h"
#include "impl/communicator/communicator.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"
#include "impl/transports/shared_memory.h"
#include "impl/transports/shm/domain.h"

namespace tutti {

enum class Kind { threads, processes, blocks, devices };
inline void PrintTo(Kind kind, std::ostream* out) {
  constexpr const char* kNames[] = {"threads", "processes", "blocks", "devices"};
  *out << kNames[static_cast<int>(kind)];
}

using Body = std::function<void(Communicator&)>;

/// Memory that forked ranks share with the test; zeroed.
template <class T>
class Common {
 public:
  Common() : at_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) std::abort();
  }
  ~Common() { munmap(at_, sizeof(T)); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;
  [[nodiscard]] T& operator*() const { return *static_cast<T*>(at_); }
  [[nodiscard]] T* operator->() const { return static_cast<T*>(at_); }

 private:
  void* at_;
};

inline void run_rank(Domain& domain, int rank, const Body& body) {
  auto communicator =
      Communicator::create(domain, rank, {.waiting = Waiting::yield, .timeout = std::chrono::seconds(30)});
  ASSERT_TRUE(communicator.is_ok()) << communicator.status().message();
  body(*communicator.value());
}

inline void on_threads(int ranks, const Body& body) {
  const auto domain = local::open_domain(local::shape_for(ranks));
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(*domain.value(), rank, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

/// A process's rank, on its own device.
inline void run_rank_on_device(Domain& domain, int rank, const Body& body) {
  const std::unique_ptr<Device> device = make_host_teams();
  auto communicator = create_on_own_device(domain, rank, *device, {.lanes = 2}, {.timeout = std::chrono::seconds(30)});
  ASSERT_TRUE(communicator.is_ok()) << communicator.status().message();
  body(*communicator.value());
}

using RunRank = void (*)(Domain& domain, int rank, const Body& body);
inline void on_processes(int ranks, const Body& body, RunRank run = run_rank) {
  const DomainShape shape = default_shape(ranks, std::size_t{64} << 10U);
  const Result<int> memory = create_memory("tutti-test", domain_bytes(shape));
  ASSERT_TRUE(memory.is_ok()) << memory.status().message();
  std::vector<pid_t> children;
  std::fflush(nullptr);  // or every child prints what waits in the buffers again
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto domain = shm::open_domain(shape, memory.value());
      EXPECT_TRUE(domain.is_ok()) << domain.status().message();
      if (domain.is_ok()) run(*domain.value(), rank, body);
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "the process of rank " << rank << " failed: " << status;
  }
  close(memory.value());
}

/// Each rank is called by a thread of its own, and is two blocks.
inline void on_blocks(int ranks, const Body& body) {
  const auto domain = local::open_domain(local::shape_for(ranks));
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  const std::unique_ptr<Device> device = make_host_teams();
  auto communicators = create_as_blocks(*domain.value(), *device, {.lanes = 2}, {.timeout = std::chrono::seconds(30)});
  ASSERT_TRUE(communicators.is_ok()) << communicators.status().message();
  std::vector<std::thread> threads;
  for (auto& communicator : communicators.value()) {
    threads.emplace_back([&body, mine = std::move(communicator)]() mutable {
      body(*mine);
      mine = nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Runs `body` on every rank of a world of `ranks`.
inline void on_ranks(Kind kind, int ranks, const Body& body) {
  switch (kind) {
    case Kind::threads:
      return on_threads(ranks, body);
    case Kind::processes:
      return on_processes(ranks, body);
    case Kind::blocks:
      return on_blocks(ranks, body);
    case Kind::devices:
      return on_processes(ranks, body, run_rank_on_device);
  }
}

}  // namespace tutti

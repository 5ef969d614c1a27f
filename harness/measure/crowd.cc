// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/crowd.h"

#include <csignal>
#include <pthread.h>
#include <system_error>

#include "harness/board/binding.h"
#include "harness/measure/computation.h"

namespace tutti::harness::measure {
namespace {

constexpr double kBetweenLooksUs = 500;  ///< at whether the crowd has ended

}  // namespace

Result<std::unique_ptr<Crowd>> Crowd::start(int threads, const std::vector<int>& cores) {
  const Computation computation = Computation::lasting(kBetweenLooksUs);
  auto crowd = std::make_unique<Crowd>();
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for other threads
  Status started;
  try {
    while (std::ssize(crowd->threads_) < threads) {
      std::jthread& thread = crowd->threads_.emplace_back([computation, &has_ended = crowd->has_ended_] {
        while (!has_ended.load(std::memory_order_relaxed)) computation.run();
      });
      const pthread_t handle = thread.native_handle();
      (void)bind_thread(handle, cores);  // where the kernel refuses, the ranks are not bound either
      ::pthread_setname_np(handle, "tutti_crowd");
      ::pthread_getcpuclockid(handle, &crowd->clocks_.emplace_back());
    }
  } catch (const std::system_error& failure) {
    started = error(Code::unavailable, "--crowd {}: no more than {} threads: {}", threads, crowd->threads_.size(),
                    failure.code().message());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TUTTI_RETURN_IF_ERROR(started);
  return crowd;
}

double Crowd::used_s() const {
  double sum = 0;
  for (const clockid_t clock : clocks_) {
    timespec used{};
    ::clock_gettime(clock, &used);
    sum += static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
  return sum;
}

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
// A rank that has waited for long sleeps at the world's doorbell until another gets on. A rank with a core of its own
// does so only if other threads take that core.
#include <atomic>
#include <functional>
#include <sched.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "impl/communicator/communicator.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Act = std::function<Status()>;

constexpr int kMostRounds = 100;

bool comes_true(const std::function<bool()>& condition, milliseconds patience = seconds(20)) {
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return false;
}

class Parking : public testing::Test {
 protected:
  std::unique_ptr<Communicator> seat(int rank, Waiting waiting) {
    return Communicator::create(*domain_, rank, {.waiting = waiting, .timeout = seconds(30), .prove_plans = false})
        .value();
  }
  [[nodiscard]] bool has_sleeper() const { return domain_->doorbell().sleepers.load() > 0; }
  [[nodiscard]] std::uint32_t rings() const { return domain_->doorbell().rings.load(); }

  /// Rounds in which one rank waits until it sleeps, then the other comes. It may come while the first looks around
  /// between two naps, and has nobody to wake: there are rounds until it had.
  void expect_sleep_and_ring(const Act& wait, const Act& come) const {
    const std::uint32_t before = rings();
    for (int round = 0; round < kMostRounds && rings() == before; ++round) {
      std::thread waiter([&] {
        const Status status = wait();
        EXPECT_TRUE(status.is_ok()) << status.message();
      });
      EXPECT_TRUE(comes_true([this] { return has_sleeper(); }));
      const Status status = come();
      EXPECT_TRUE(status.is_ok()) << status.message();
      waiter.join();
      EXPECT_FALSE(has_sleeper());
      if (HasFailure()) return;
    }
    EXPECT_GT(rings(), before);
  }

  std::unique_ptr<Domain> domain_ = local::open_domain(local::shape_for(2)).value();
};

TEST_F(Parking, WhoWaitsLongInACollectiveSleepsUntilTheOtherComes) {
  const auto first = seat(0, Waiting::yield), second = seat(1, Waiting::yield);
  expect_sleep_and_ring([&] { return second->barrier(); }, [&] { return first->barrier(); });
}

TEST_F(Parking, WhoWaitsLongForAMessageSleepsUntilItIsSent) {
  const auto first = seat(0, Waiting::yield), second = seat(1, Waiting::yield);
  const float sent = 1;
  float received = 0;
  expect_sleep_and_ring([&] { return second->recv(&received, 1, Dtype::f32, 0); },
                        [&] { return first->send(&sent, 1, Dtype::f32, 1); });
  EXPECT_EQ(received, sent);
}

TEST_F(Parking, WhoWaitsInAGroupSleepsAtTheDoorbellOfTheWorld) {
  const auto first = seat(0, Waiting::yield), second = seat(1, Waiting::yield);
  std::unique_ptr<Communicator> group_of_second;
  std::thread other([&] { group_of_second = second->split(0, 0).value(); });
  const auto group_of_first = first->split(0, 0).value();
  other.join();
  expect_sleep_and_ring([&] { return group_of_second->barrier(); }, [&] { return group_of_first->barrier(); });
}

/// Puts the calling thread on the first core that it may use.
void keep_to_one_core() {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (CPU_ISSET(core, &allowed) == 0) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST_F(Parking, WhoSpinsWhereOthersTakeTheCoreSleepsToo) {
  const auto first = seat(0, Waiting::spin), second = seat(1, Waiting::spin);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> crowd;
  for (int i = 0; i < 3; ++i) {
    crowd.emplace_back([&] {
      keep_to_one_core();
      while (!is_over) continue;
    });
  }
  const auto wait = [&] {
    keep_to_one_core();
    return second->barrier();
  };
  expect_sleep_and_ring(wait, [&] { return first->barrier(); });
  is_over = true;
  for (std::thread& each : crowd) each.join();
}

TEST_F(Parking, WhoHasACoreOfItsOwnDoesNotSleep) {
  const auto first = seat(0, Waiting::spin), second = seat(1, Waiting::spin);
  // Programs beside this one may take the core meanwhile. So there are rounds until none did.
  bool has_slept = true;
  for (int round = 0; round < kMostRounds && has_slept; ++round) {
    std::thread waiter([&] { EXPECT_TRUE(second->barrier().is_ok()); });
    has_slept = comes_true([this] { return has_sleeper(); }, milliseconds(30));
    EXPECT_TRUE(first->barrier().is_ok());
    waiter.join();
  }
  EXPECT_FALSE(has_slept);
}

}  // namespace
}  // namespace tutti

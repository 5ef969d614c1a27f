// SPDX-License-Identifier: Apache-2.0
// Teams of the host that note how they look at words and store them, so that a test can say where flags lie.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "impl/device/teams.h"
#include "impl/execute/device_move.h"
#include "suites/unit/impl/execute/device_memory.h"

namespace tutti {

class Watch {
 public:
  explicit Watch(const MemoryOfDevices& memory) : memory_(memory) {}

  /// What a thread of team `team` of a launch does.
  void run(const DeviceLaunch& launch, HostTarget& target, int team) {
    here = launch.world.here;
    watch = this;
    const int party = team % launch.work.parties;
    Target mine(target);
    const Move move{device_move_for(launch.dtype, launch.op)};
    const int rank = launch.work.ranks == nullptr ? party : launch.work.ranks[party];
    run_lane<Target, Move>(launch.world, launch.work, party,
                           {.rank = rank, .lane = team / launch.work.parties, .addresses = addresses_of(launch, team)},
                           mine, move);
  }

  /// Looks at memory of another device; words that are stored for one device and looked at as if by another.
  [[nodiscard]] std::vector<std::string> faults() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all = faults_;
    for (const auto& [word, uses] : uses_) {
      if ((uses & (kStoredAfar | kSeenAfar)) == 0 || (uses & (kStored | kSeen)) == 0) continue;
      all.push_back(fmt::format("a word of device {} is stored or looked at in both scopes: {:#x}",
                                memory_.device_at(word).value_or(-1), uses));
    }
    return all;
  }
  /// Words by which a device told another one.
  [[nodiscard]] std::size_t words_between_devices() {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const auto& [word, uses] : uses_) all += (uses & kStoredAfar) != 0 && (uses & kSeenAfar) != 0 ? 1 : 0;
    return all;
  }

 private:
  enum Use : unsigned { kStored = 1, kSeen = 2, kStoredAfar = 4, kSeenAfar = 8 };

  struct Move {
    DeviceMoveFunction move;
    void operator()(const DeviceMove& one, int thread, int threads) const { move(one, thread, threads); }
  };
  /// A team of one thread.
  class Target {
   public:
    explicit Target(HostTarget& target) : target_(target) {}
    [[nodiscard]] int thread() const { return target_.thread(); }
    [[nodiscard]] int threads() const { return target_.threads(); }
    void barrier() { target_.barrier(); }
    bool any(bool vote) { return target_.any(vote); }
    static std::uint64_t load_acquire(std::uint64_t* word) {
      watch->note(word, kSeen);
      return HostTarget::load_acquire(word);
    }
    static std::uint64_t load_acquire_afar(std::uint64_t* word) {
      watch->note(word, kSeenAfar);
      return HostTarget::load_acquire(word);
    }
    static void store_release(std::uint64_t* word, std::uint64_t value) {
      watch->note(word, kStored);
      HostTarget::store_release(word, value);
    }
    static void store_release_afar(std::uint64_t* word, std::uint64_t value) {
      watch->note(word, kStoredAfar);
      HostTarget::store_release(word, value);
    }
    static void store_relaxed(std::uint64_t* word, std::uint64_t value) { HostTarget::store_relaxed(word, value); }
    static std::uint64_t load_relaxed(std::uint64_t* word) { return HostTarget::load_relaxed(word); }
    static void store_release_to_host(std::uint64_t* word, std::uint64_t value) {
      HostTarget::store_release(word, value);
    }
    static bool swap_if(std::uint64_t* word, std::uint64_t expected, std::uint64_t value) {
      return HostTarget::swap_if(word, expected, value);
    }
    static std::uint64_t now_ns() { return HostTarget::now_ns(); }
    static void pause() { HostTarget::pause(); }

   private:
    HostTarget& target_;
  };

  /// The team's list.
  std::byte** addresses_of(const DeviceLaunch& launch, int team) {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& list = addresses_[{launch.world.here, team}];
    list.resize(static_cast<std::size_t>(most_device_addresses(launch.world.ranks)));
    return list.data();
  }

  void note(const std::uint64_t* word, Use use) {
    const std::lock_guard lock(mutex_);
    uses_[word] |= use;
    const bool is_here = memory_.device_at(word) == here;
    if (is_here == (use != kStoredAfar) || faults_.size() > 10) return;
    faults_.push_back(fmt::format("device {} {} a word of device {}", here,
                                  use == kSeen || use == kSeenAfar ? "looks at"
                                  : use == kStored                 ? "stores, as for itself,"
                                                                   : "stores, as for another,",
                                  memory_.device_at(word).value_or(-1)));
  }

  static inline thread_local int here = 0;
  static inline thread_local Watch* watch = nullptr;

  const MemoryOfDevices& memory_;
  std::mutex mutex_;
  std::map<const std::uint64_t*, unsigned> uses_;
  std::vector<std::string> faults_;
  std::map<std::pair<int, int>, std::vector<std::byte*>> addresses_;  // by device and team
};

}  // namespace tutti

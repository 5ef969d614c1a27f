// SPDX-License-Identifier: Apache-2.0
// A rank's bound calls, by what distinguishes them.
#pragma once

#include <memory>
#include <unordered_map>

#include "impl/communicator/communicator.h"
#include "impl/communicator/store_choice.h"
#include "impl/reduce/kernels.h"
#include "impl/reduce/scale.h"

namespace tutti {

/// A call bound on this rank.
struct BoundEntry {
  Schedule schedule;
  BoundCall call;
  Count segments = 0;
  StoreChoice stores;
  Kernel kernel = nullptr;
  SmallKernel small_kernel = nullptr;  ///< of reducing collectives
  Scale scale = nullptr;               ///< of premul_sum
};

class PlanCache {
 public:
  struct Key {
    std::uint64_t what = 0;  ///< root, collective, dtype, op, buffers, placement
    Count count = 0;
    const Schedule* schedule = nullptr;
    bool operator==(const Key&) const = default;
  };
  [[nodiscard]] static Key key_of(const Call& call) {
    // In the order in which they lie in Call, so that most of it is one load.
    const auto at = [](auto value, unsigned shift) { return static_cast<std::uint64_t>(value) << shift; };
    return {.what = at(call.collective, 0) | at(call.dtype, 8) | at(call.op, 16) |
                    at(static_cast<std::uint32_t>(call.root), 32) | at(call.buffers, 24) | at(call.is_in_place, 31),
            .count = call.count,
            .schedule = call.schedule};
  }

  [[nodiscard]] BoundEntry* find(const Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.get();
  }
  BoundEntry* insert(const Key& key, BoundEntry entry) {
    auto& place = entries_[key];
    place = std::make_unique<BoundEntry>(std::move(entry));
    return place.get();
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
      const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0xff51afd7ed558ccdULL ^ (hash >> 29U); };
      mix(key.what);
      mix(static_cast<std::uint64_t>(key.count));
      mix(reinterpret_cast<std::uintptr_t>(key.schedule));
      return hash;
    }
  };
  std::unordered_map<Key, std::unique_ptr<BoundEntry>, Hash> entries_;
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// A rank's bound calls, by what distinguishes them.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "impl/communicator/communicator.h"
#include "impl/communicator/store_choice.h"
#include "impl/reduce/kernels.h"
#include "impl/reduce/scale.h"
#include "impl/transports/journal.h"

namespace tutti {

/// A call bound on this rank.
struct BoundEntry {
  Schedule schedule;
  BoundCall call;
  Count segments = 0;
  StoreChoice stores;
  std::optional<BlockTable> blocks;  ///< of a v form: part of the key
  Kernel kernel = nullptr;
  std::shared_ptr<const void> kernel_context;  ///< of a kernel that an instrument has put in its place
  SmallKernel small_kernel = nullptr;          ///< of reducing collectives
  Scale scale = nullptr;                       ///< of premul_sum
  std::shared_ptr<const void> on_device;       ///< its plans, where ranks are thread blocks
  bool copies_once = false;                    ///< peers reach private buffers where they lie
  CallNote note;                               ///< for the journal; `first` is the operation's
  bool is_compared = false;                    ///< with what the ranks beside this one call
  /// Some rank signals to one of another host before it has heard from it, so that the line there must be known to be
  /// heard (Engine::put_fence). The same on all ranks.
  bool needs_fence = false;
};

class PlanCache {
 public:
  struct Key {
    std::uint64_t what = 0;  ///< root, collective, dtype, op, buffers, placement
    Count count = 0;         ///< of a v form: a hash of its blocks
    const Schedule* schedule = nullptr;
    bool operator==(const Key&) const = default;
    /// The same but for the placement, which the addresses decide.
    [[nodiscard]] bool is_same_elsewhere(const Key& other) const {
      return ((what ^ other.what) & ~kInPlace) == 0 && count == other.count && schedule == other.schedule;
    }
    static constexpr std::uint64_t kInPlace = std::uint64_t{1} << 31U;
  };
  /// A key that no call has.
  [[nodiscard]] static Key key_of_none() {
    Key key;
    key.what = ~std::uint64_t{0};
    return key;
  }
  [[nodiscard]] static Key key_of(const Call& call) {
    // In the order in which they lie in Call, so that most of it is one load.
    const auto at = [](auto value, unsigned shift) { return static_cast<std::uint64_t>(value) << shift; };
    return {.what = at(call.collective, 0) | at(call.dtype, 8) | at(call.op, 16) |
                    at(static_cast<std::uint32_t>(call.root), 32) | at(call.buffers, 24) |
                    (call.is_in_place ? Key::kInPlace : 0),
            .count = call.count,
            .schedule = call.schedule};
  }

  [[nodiscard]] static Key key_of(const Call& call, const BlockTable& blocks) {
    Key key = key_of(call);
    Mixer mixer;
    for (const std::vector<Block>* list : {&blocks.input, &blocks.output}) {
      mixer.mix(list->size());
      for (const Block& block : *list) {
        mixer.mix(static_cast<std::uint64_t>(block.offset));
        mixer.mix(static_cast<std::uint64_t>(block.bytes));
      }
    }
    for (const std::int64_t bytes : blocks.shared) mixer.mix(static_cast<std::uint64_t>(bytes));
    key.count = static_cast<Count>(mixer.hash);
    return key;
  }

  /// `blocks`: of a v form, else nullptr.
  [[nodiscard]] BoundEntry* find(const Key& key, const BlockTable* blocks) const {
    const auto [begin, end] = entries_.equal_range(key);
    for (auto at = begin; at != end; ++at) {
      if (blocks == nullptr || at->second->blocks == *blocks) return at->second.get();
    }
    return nullptr;
  }
  BoundEntry* insert(const Key& key, BoundEntry entry) {
    if (entry.blocks) ++v_entries_;
    return entries_.emplace(key, std::make_unique<BoundEntry>(std::move(entry)))->second.get();
  }

  /// A program whose blocks are others in every call would fill the memory with plans.
  [[nodiscard]] bool is_full() const { return v_entries_ >= kMostVEntries; }
  void forget_v_forms() {
    std::erase_if(entries_, [](const auto& entry) { return entry.second->blocks.has_value(); });
    v_entries_ = 0;
  }

 private:
  static constexpr std::size_t kMostVEntries = 256;

  struct Mixer {
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
    void mix(std::uint64_t value) { hash = (hash ^ value) * 0xff51afd7ed558ccdULL ^ (hash >> 29U); }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      Mixer mixer;
      mixer.mix(key.what);
      mixer.mix(static_cast<std::uint64_t>(key.count));
      mixer.mix(reinterpret_cast<std::uintptr_t>(key.schedule));
      return mixer.hash;
    }
  };
  std::unordered_multimap<Key, std::unique_ptr<BoundEntry>, Hash> entries_;
  std::size_t v_entries_ = 0;
};

}  // namespace tutti

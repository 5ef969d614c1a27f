// SPDX-License-Identifier: Apache-2.0
// The channels of a walk: from a pair of ranks to what is under way between them. A channel that is empty takes no
// room: all_to_all on P ranks has P * P channels, few of them in use at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::simulate {

/// A hash table with open addressing. References are good until the next call that adds or erases.
template <class Value>
class Channels {
 public:
  using Key = std::uint64_t;

  Channels() : slots_(kFirstSlots) {}

  /// The value of a key, made if it is not there. Requires: key < 2^64 - 1.
  Value& operator[](Key key) {
    if (2 * used_ >= slots_.size()) grow();
    std::size_t at = home_of(key);
    for (; slots_[at].tag != 0; at = next(at)) {
      if (slots_[at].tag == key + 1) return slots_[at].value;
    }
    slots_[at].tag = key + 1;
    ++used_;
    return slots_[at].value;
  }

  /// Requires: the key is there.
  void erase(Key key) {
    std::size_t hole = home_of(key);
    while (slots_[hole].tag != key + 1) hole = next(hole);
    --used_;
    // What follows moves up, unless it would come before its home.
    for (std::size_t at = next(hole); slots_[at].tag != 0; at = next(at)) {
      const std::size_t home = home_of(slots_[at].tag - 1);
      const bool is_between = hole <= at ? hole < home && home <= at : hole < home || home <= at;
      if (is_between) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
    slots_[hole] = Slot{};
  }

  [[nodiscard]] std::size_t size() const { return used_; }

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two
  struct Slot {
    std::uint64_t tag = 0;  ///< the key + 1; 0: free
    Value value{};
  };

  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  [[nodiscard]] std::size_t home_of(Key key) const {
    constexpr Key kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
    Key mixed = (key ^ (key >> 29U)) * kMultiplier;
    mixed ^= mixed >> 32U;
    return static_cast<std::size_t>(mixed) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    used_ = 0;
    for (Slot& slot : old) {
      if (slot.tag != 0) (*this)[slot.tag - 1] = std::move(slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace tutti::harness::simulate

// SPDX-License-Identifier: Apache-2.0
// SplitMix: the random numbers of scramble.h one after the other, for statistics that draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/floors.h"
#include "impl/types/scramble.h"

namespace tutti::harness::statistics {

class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    const std::uint64_t number = scramble(state_);
    state_ += kScrambleStep;
    return number;
  }
  /// Between 0 and 1, neither of them.
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }
  /// Below `bound`, which is less than 2^32.
  std::size_t below(std::size_t bound) { return (next() >> 32U) * bound >> 32U; }
  /// Every order is as likely (Fisher & Yates).
  template <class Value>
  void shuffle(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tutti::harness::statistics

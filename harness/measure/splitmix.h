// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine and with every library, for statistics that draw. The generator is
// Steele, Lea & Flood's (OOPSLA 2014).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::harness {

class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t mixed = (state_ ^ (state_ >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31U);
  }
  /// Between 0 and 1, neither of them.
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }
  /// Below `bound`, which is less than 2^32.
  std::size_t below(std::size_t bound) { return (next() >> 32U) * bound >> 32U; }

 private:
  std::uint64_t state_;
};

}  // namespace tutti::harness

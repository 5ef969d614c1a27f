// SPDX-License-Identifier: Apache-2.0
// Symbolic values: what a run of bytes holds, as one small value whatever its length.
//
// A byte at offset y that holds the contribution of rank r's input byte x is worth R_r * g^(x - y) in Z_p, p = 2^61 -
// 1, R_r and g random; a reduction adds. Along a copied run x - y is constant, so a run is worth one number. Moving it
// from offset a to offset b multiplies by g^(a - b). Two different multisets of contributions are worth the same with
// probability of about 2^-61. Beside it travel a hash of the sequence of ranks (does the op's order hold?) and a hash
// of the tree of operations, blind to the order of two operands (are the bits the same on every rank?).
//
// ExactLane has the same operations on the multisets themselves: slow, used to explain what the hashes found wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "impl/types/scramble.h"

namespace tutti {

inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61U) - 1;
__extension__ typedef unsigned __int128 Wide;

[[nodiscard]] inline std::uint64_t add_mod(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}
[[nodiscard]] inline std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return add_mod(static_cast<std::uint64_t>(product) & kPrime, static_cast<std::uint64_t>(product >> 61U));
}
[[nodiscard]] inline std::uint64_t random_mod(std::uint64_t seed) { return scramble(seed) % (kPrime - 2) + 1; }

/// g^n for |n| < 2^48, from tables of 8 bits each.
class Powers {
 public:
  Powers() {
    const std::uint64_t base = random_mod(0x707269636bU);
    fill(up_, base);
    fill(down_, inverse(base));
  }
  [[nodiscard]] std::uint64_t of(std::int64_t exponent) const {
    const auto& table = exponent < 0 ? down_ : up_;
    auto rest = static_cast<std::uint64_t>(exponent < 0 ? -exponent : exponent);
    std::uint64_t result = 1;
    for (std::size_t window = 0; window < kWindows && rest != 0; ++window, rest >>= 8U) {
      if ((rest & 255U) != 0) result = multiply_mod(result, table[window][rest & 255U]);
    }
    return result;
  }

 private:
  static constexpr std::size_t kWindows = 6;
  using Table = std::array<std::array<std::uint64_t, 256>, kWindows>;

  static void fill(Table& table, std::uint64_t base) {
    for (auto& window : table) {
      window[0] = 1;
      for (std::size_t i = 1; i < window.size(); ++i) window[i] = multiply_mod(window[i - 1], base);
      base = multiply_mod(window.back(), base);
    }
  }
  static std::uint64_t inverse(std::uint64_t value) {
    std::uint64_t result = 1;
    for (std::uint64_t rest = kPrime - 2; rest != 0; rest >>= 1U, value = multiply_mod(value, value)) {
      if ((rest & 1U) != 0) result = multiply_mod(result, value);
    }
    return result;
  }

  Table up_;
  Table down_;
};

/// The lane that proves. Every lane has these six operations on its Value.
class HashLane {
 public:
  struct Value {
    std::uint64_t sum;    ///< the multiset of contributions with their offsets
    std::uint64_t order;  ///< the sequence of ranks, a polynomial in kOrderBase ...
    std::uint64_t scale;  ///< ... and kOrderBase^length
    std::uint64_t tree;   ///< the tree of operations
    int finals;           ///< times it was made final

    bool operator==(const Value&) const = default;
  };

  /// The input of `rank`, seen where it lies.
  [[nodiscard]] Value contribution(int rank) const {
    const auto seed = static_cast<std::uint64_t>(rank);
    return {.sum = random_mod(3 * seed),
            .order = random_mod(3 * seed + 1),
            .scale = kOrderBase,
            .tree = scramble(3 * seed + 2),
            .finals = 0};
  }
  /// premul_sum: multiplied by the factor of the rank that reads it.
  void scale(Value& value) const {
    value.sum = multiply_mod(value.sum, kFactor);
    value.tree = scramble(value.tree + 3);
  }
  /// The same run `-delta` bytes further on.
  void shift(Value& value, std::int64_t delta) const {
    if (delta != 0) value.sum = multiply_mod(value.sum, powers().of(delta));
  }
  void combine(Value& left, const Value& right) const {
    left.sum = add_mod(left.sum, right.sum);
    left.order = add_mod(multiply_mod(left.order, right.scale), right.order);
    left.scale = multiply_mod(left.scale, right.scale);
    left.tree = scramble(std::min(left.tree, right.tree) ^ scramble(std::max(left.tree, right.tree)));
    left.finals += right.finals;
  }
  /// The store that ends a reduction: narrow types round here.
  void round(Value& value) const { value.tree = scramble(value.tree + 1); }
  void finish(Value& value) const {
    value.tree = scramble(value.tree + 2);
    ++value.finals;
  }

 private:
  static constexpr std::uint64_t kOrderBase = 0x123456789abcdefU;
  static constexpr std::uint64_t kFactor = 0xfedcba987654321U;
  [[nodiscard]] static const Powers& powers() {
    static const Powers kPowers;
    return kPowers;
  }
};

/// The lane that explains.
class ExactLane {
 public:
  /// `count` times the contribution of `rank`'s input byte y + delta at byte y, multiplied by a factor `scales` times.
  struct Term {
    int rank;
    std::int64_t delta;
    int count;
    int scales = 0;

    bool operator==(const Term&) const = default;
  };
  struct Value {
    std::vector<Term> terms;  ///< sorted by rank, delta and scales
    int finals = 0;

    bool operator==(const Value&) const = default;
  };

  [[nodiscard]] Value contribution(int rank) const { return {.terms = {{.rank = rank, .delta = 0, .count = 1}}}; }
  void scale(Value& value) const {
    for (Term& term : value.terms) ++term.scales;
  }
  void shift(Value& value, std::int64_t delta) const {
    for (Term& term : value.terms) term.delta += delta;
  }
  void combine(Value& left, const Value& right) const {
    for (const Term& term : right.terms) {
      const auto at = std::lower_bound(left.terms.begin(), left.terms.end(), term, [](const Term& a, const Term& b) {
        return std::tie(a.rank, a.delta, a.scales) < std::tie(b.rank, b.delta, b.scales);
      });
      if (at != left.terms.end() && at->rank == term.rank && at->delta == term.delta && at->scales == term.scales) {
        at->count += term.count;
      } else {
        left.terms.insert(at, term);
      }
    }
    left.finals += right.finals;
  }
  void round(Value& /*value*/) const {}
  void finish(Value& value) const { ++value.finals; }
};

}  // namespace tutti

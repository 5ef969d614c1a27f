// SPDX-License-Identifier: Apache-2.0
// Everything below the key derivation is arithmetic on lanes in loops without branches, which GCC vectorises at -O3.
// Refilling a buffer must not take longer than measuring on it. On x86-64 there is a second copy for AVX2, which
// multiplies 32-bit integers in one instruction. Without it, half of a check's time would be spent here.
#include "harness/verify/inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "harness/verify/input_streams.h"
#include "harness/verify/input_values.h"
#include "harness/verify/special_values.h"

namespace tutti::harness::verify {
namespace {

constexpr int kTile = 1024;  // elements computed at a time in an aligned array: the destination may be misaligned

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31U)) * 0x9fb21c651e98df25U;
  x = (x ^ (x >> 27U)) * 0xd6e8feb86659fd93U;
  return x ^ (x >> 32U);
}
HashKeys keys_of(std::uint64_t key) {
  return {.first = static_cast<std::uint32_t>(key), .second = static_cast<std::uint32_t>(key >> 32U)};
}

/// What signed values may add up to on either side, and what one of them may be. 0: nothing limits them.
struct Limit {
  std::uint64_t total = 0;
  std::uint64_t each = 0;
};

Limit limit_of(Dtype dtype, Op op) {
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) -> Limit {
    if constexpr (std::is_integral_v<T>) {
      return {};
    } else {
      // Integers up to the significand are exact; at most 20 or 40 bits, so that those of the hash suffice.
      constexpr std::uint64_t kSignificand = std::uint64_t{1} << (Format<T>::kMantissaBits + 1);
      if (combining(op) == Op::sum) return {kSignificand, std::uint64_t{1} << (sizeof(T) == 8 ? 40U : 20U)};
      // The exponents of normal numbers; a product of a few with 2^64 stays well within those of double.
      if (op == Op::prod) return {static_cast<std::uint64_t>(bias_of<T>() - 1), 64};
      return {};
    }
  });
}

std::uint64_t active_of(const Limit& limit, std::uint64_t ranks) {
  return limit.total == 0 ? ranks : std::min<std::uint64_t>(ranks, 2 * limit.total - 1);
}

/// How many ranks have a value, and a sign of their own, and how large the values may be. Where the limit allows four
/// values or more, all are free. Of 2L ranks one is left out: with values of at least 1 all would have to be pairs, and
/// sums 0.
void share(const Limit& limit, Stream& stream) {
  const std::uint64_t active = active_of(limit, stream.ranks);
  const bool are_all_free = limit.total >= 4 * active;
  const std::uint64_t on_one_side = are_all_free ? active : (active + 1) / 2;
  const std::uint64_t most = std::bit_floor(std::min(limit.total / on_one_side, limit.each));
  stream.active = static_cast<std::uint32_t>(active);
  stream.magnitudes = most - 1;
  // With f free ranks a side has at most f + (active - f) / 2 of them: as many as the limit allows.
  stream.free = static_cast<std::uint32_t>(std::min(active, 2 * (limit.total / most) - active));
}

/// The same circle in every refill, turned by the number of active ranks from one to the next.
void turn(const InputSpec& spec, std::uint64_t index_high, Stream& stream) {
  if (stream.active == stream.ranks) return;
  stream.steady = ~std::uint32_t{0};
  stream.steady_turn = static_cast<std::uint32_t>(mix(spec.seed ^ mix(index_high + 0x9e3779b97f4a7c15U)));
  stream.seat = static_cast<std::uint32_t>((stream.rank + spec.salt % stream.ranks * stream.active) % stream.ranks);
}

}  // namespace

Stream stream_of(const InputSpec& spec, std::uint64_t index_high) {
  std::uint64_t key = mix(spec.seed + 0x9e3779b97f4a7c15U);
  key = mix(key ^ (spec.salt * 0xa0761d6478bd642fU));
  const auto rank = static_cast<std::uint32_t>(spec.rank);
  const auto ranks = static_cast<std::uint32_t>(spec.ranks);
  const std::uint64_t common = mix(~key + index_high);
  Stream stream{.own = keys_of(mix(mix(key + rank) + index_high)),
                .common = keys_of(common),
                .rank = rank,
                .ranks = ranks,
                .seat = rank,
                .steady = 0,
                .steady_turn = 0,
                .rank_mask = spec.op == Op::min || spec.op == Op::max ? std::bit_ceil(ranks) - 1 : 0U,
                .rank_bits = rank ^ static_cast<std::uint32_t>(common >> 16U),
                .active = ranks,
                .free = ranks,
                .magnitudes = 0};
  if (const Limit limit = limit_of(spec.dtype, spec.op); limit.total != 0) share(limit, stream);
  turn(spec, index_high, stream);
  return stream;
}

namespace {

/// Tile by tile, within one upper half of the index.
template <class T, class Element>
void fill_tiles(std::span<std::byte> bytes, std::uint32_t first, Element element) {
  std::array<T, kTile> tile;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t part = std::min(bytes.size() - done, sizeof(tile));
    const std::uint32_t index = first + static_cast<std::uint32_t>(done / sizeof(T));
    const auto elements = static_cast<std::uint32_t>(part / sizeof(T));
    for (std::uint32_t i = 0; i < elements; ++i) tile[i] = element(index + i);
    std::memcpy(bytes.data() + done, tile.data(), part);
    done += part;
  }
}

/// Random bytes, four of one hash, with `element` of each. One hash for each byte would take four times as long.
template <class Element>
void fill_bytes(std::span<std::byte> bytes, std::uint32_t first, const HashKeys& keys, Element element) {
  constexpr std::uint32_t kWord = sizeof(std::uint32_t);
  constexpr std::uint32_t kWords = kTile / kWord;
  std::array<std::uint32_t, kWords> words;
  std::array<std::uint8_t, sizeof(words)> tile;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::uint32_t index = first + static_cast<std::uint32_t>(done);
    const std::size_t skipped = index % kWord;
    for (std::uint32_t i = 0; i < kWords; ++i) words[i] = hash(index / kWord + i, keys);
    std::memcpy(tile.data(), words.data(), sizeof(words));
    for (std::uint8_t& byte : tile) byte = element(byte);
    const std::size_t part = std::min(bytes.size() - done, sizeof(tile) - skipped);
    std::memcpy(bytes.data() + done, tile.data() + skipped, part);
    done += part;
  }
}

/// The elements of one stream. Integers of one width are filled alike.
template <class T>
void fill_stream(std::span<std::byte> bytes, std::uint32_t first, const Stream stream, Op op, bool is_random) {
  if constexpr (!std::is_integral_v<T>) {
    if (is_random && op == Op::prod) {
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return random_factor<T>(i, stream); });
    }
    if (is_random) return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return random_summand<T>(i, stream); });
  }
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (op == Op::none) return fill_bytes(bytes, first, stream.own, [](std::uint8_t value) { return value; });
    if (op == Op::sum) {
      return fill_bytes(bytes, first, stream.own, [](std::uint8_t value) { return without_zero(value); });
    }
  }
  switch (op) {
    case Op::none:
    case Op::min:
    case Op::max:
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return arbitrary<T>(i, stream); });
    case Op::sum:
    case Op::avg:
      // The usual case apart: a hash less for each element.
      if (stream.free == stream.ranks && sizeof(T) > 1) {
        return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return summand<T, Sharing::all_free>(i, stream); });
      }
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return summand<T, Sharing::by_role>(i, stream); });
    case Op::premul_sum:
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return before_factor<T>(i, stream); });
    case Op::prod:
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return factor<T>(i, stream); });
    case Op::band:
    case Op::bor:
    case Op::bxor:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Op::band)
      return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return bits<T, Op::band>(i, stream); });
    if (op == Op::bor) return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return bits<T, Op::bor>(i, stream); });
    return fill_tiles<T>(bytes, first, [=](std::uint32_t i) { return bits<T, Op::bxor>(i, stream); });
  }
  TUTTI_ASSERT(false, "{} of a float", to_string(op));
}

/// The same of truth.
template <>
void fill_stream<Boolean>(std::span<std::byte> bytes, std::uint32_t first, const Stream stream, Op op,
                          bool /*is_random*/) {
  const auto fill = [&]<Op of>(std::integral_constant<Op, of>) {
    fill_tiles<Boolean>(bytes, first, [=](std::uint32_t i) { return truth<of>(i, stream); });
  };
  if (op == Op::none) return fill(std::integral_constant<Op, Op::none>{});
  if (op == Op::min || op == Op::band) return fill(std::integral_constant<Op, Op::band>{});
  fill(std::integral_constant<Op, Op::bor>{});
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2"), gnu::flatten]] void fill_stream_avx2(std::span<std::byte> bytes, std::uint32_t first,
                                                            const Stream& stream, Op op, bool is_random) {
  fill_stream<T>(bytes, first, stream, op, is_random);
}
#endif

template <class T>
void fill_stream_here(std::span<std::byte> bytes, std::uint32_t first, const Stream& stream, const InputSpec& spec) {
  if constexpr (!std::is_integral_v<T>) {
    if (spec.values == Values::special) {
      return fill_tiles<T>(bytes, first, [=, table = special_table<T>(spec.op)](std::uint32_t i) {
        return special_value(i, stream, table);
      });
    }
  }
  const bool is_random = is_rounded(spec.values, spec.dtype, spec.op);
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return fill_stream_avx2<T>(bytes, first, stream, spec.op, is_random);
#endif
  fill_stream<T>(bytes, first, stream, spec.op, is_random);
}

template <class T>
void fill_typed(std::span<std::byte> bytes, const InputSpec& spec, Count first) {
  while (!bytes.empty()) {
    const auto index = static_cast<std::uint64_t>(first);
    const std::uint64_t until_high_changes = (std::uint64_t{1} << 32U) - (index & 0xffffffffU);
    const std::size_t part = std::min<std::uint64_t>(bytes.size() / sizeof(T), until_high_changes) * sizeof(T);
    fill_stream_here<T>(bytes.first(part), static_cast<std::uint32_t>(index), stream_of(spec, index >> 32U), spec);
    bytes = bytes.subspan(part);
    first += static_cast<Count>(part / sizeof(T));
  }
}

}  // namespace

Status supports_inputs(Dtype dtype, Op op, int ranks) {
  if (ranks < 1) return error(Code::invalid_argument, "{} ranks: must be 1 or more", ranks);
  if (!op_exists(op, dtype)) return error(Code::invalid_argument, "{} has no {}", to_string(dtype), to_string(op));
  return {};
}

bool is_rounded(Values values, Dtype dtype, Op op) {
  return values == Values::random && !is_integer(dtype) && (combining(op) == Op::sum || op == Op::prod);
}

int contributors_of(Dtype dtype, Op op, int ranks) {
  if (combining(op) != Op::sum) return ranks;  // a rank without a factor of a product has -1
  return static_cast<int>(active_of(limit_of(dtype, op), static_cast<std::uint64_t>(ranks)));
}

int passes_of(Dtype dtype, Op op, int ranks) {
  const int contributors = contributors_of(dtype, op, ranks);
  return (ranks + contributors - 1) / contributors;
}

Factor factor_element(Dtype dtype, int rank) {
  Factor bytes{};
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    T value;
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(factor_of(rank));
    } else {
      value = T::from_float(static_cast<float>(factor_of(rank)));
    }
    std::memcpy(bytes.data(), &value, sizeof(T));
  });
  return bytes;
}

void fill_input(std::span<std::byte> bytes, const InputSpec& spec, Count first) {
  TUTTI_ASSERT(bytes.size() % size_of(spec.dtype) == 0, "{} bytes of {}", bytes.size(), to_string(spec.dtype));
  visit_dtype(spec.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, Boolean>) {
      fill_typed<std::make_unsigned_t<T>>(bytes, spec, first);
    } else {
      fill_typed<T>(bytes, spec, first);
    }
  });
}

}  // namespace tutti::harness::verify

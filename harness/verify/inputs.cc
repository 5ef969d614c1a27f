// SPDX-License-Identifier: Apache-2.0
// Everything below the key derivation is arithmetic on 32-bit lanes in loops without branches, which GCC vectorises at
// -O3: refilling a buffer must not take longer than measuring on it.
#include "harness/verify/inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tutti::harness {
namespace {

constexpr int kTile = 1024;  // elements computed at a time in an aligned array: the destination may be misaligned

/// The constants of one (spec, upper half of the index).
struct Stream {
  std::uint32_t first_key;
  std::uint32_t second_key;
  std::uint32_t multiplier;  // tells the two ranks of a pair apart
  std::uint32_t is_odd;      // second rank of its pair: the opposite sign
  std::uint32_t magnitudes;  // mask of magnitude - 1
  std::uint32_t rank;
  std::uint32_t rank_mask;  // low bits that hold the rank
};

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31U)) * 0x9fb21c651e98df25U;
  x = (x ^ (x >> 27U)) * 0xd6e8feb86659fd93U;
  return x ^ (x >> 32U);
}

bool is_summed(Op op) { return op == Op::sum || op == Op::avg; }

/// Largest integer up to which every integer is representable; 0: sums wrap, and there is no such bound.
std::uint32_t exact_limit(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) -> std::uint32_t {
    if constexpr (std::is_integral_v<T>) return 0;
    return sizeof(T) == 2 ? 1U << 8U : 1U << 24U;
  });
}

std::uint32_t positive_ranks(int ranks) { return (static_cast<std::uint32_t>(ranks) + 1) / 2; }

Stream stream_of(const InputSpec& spec, std::uint64_t index_high) {
  // Signs are shared by a pair of ranks, so both of a pair draw from one stream where signs matter.
  const bool is_paired = is_summed(spec.op) && exact_limit(spec.dtype) != 0;
  const auto rank = static_cast<std::uint32_t>(spec.rank);
  std::uint64_t key = mix(spec.seed + 0x9e3779b97f4a7c15U);
  key = mix(key ^ (spec.salt * 0xa0761d6478bd642fU));
  key = mix(key + (is_paired ? rank >> 1U : rank));
  key = mix(key + index_high);
  Stream stream{.first_key = static_cast<std::uint32_t>(key),
                .second_key = static_cast<std::uint32_t>(key >> 32U),
                .multiplier = rank % 2 == 0 ? 1U : 0x9e3779b1U,
                .is_odd = rank % 2,
                .magnitudes = 0,
                .rank = rank,
                .rank_mask = 0};
  if (is_paired) {
    // At most 2^20, so that the bits of the magnitude and of the sign do not overlap.
    const std::uint32_t most = exact_limit(spec.dtype) / positive_ranks(spec.ranks);
    stream.magnitudes = std::bit_floor(std::min(most, 1U << 20U)) - 1;
  }
  if (spec.op == Op::max) stream.rank_mask = std::bit_ceil(static_cast<std::uint32_t>(spec.ranks)) - 1;
  return stream;
}

inline std::uint32_t hash(std::uint32_t index, const Stream& stream) {
  std::uint32_t x = index * 0x9e3779b1U + stream.first_key;
  x = ((x ^ (x >> 15U)) ^ stream.second_key) * 0x85ebca6bU;
  x = (x ^ (x >> 13U)) * 0xc2b2ae35U;
  return x ^ (x >> 16U);
}

/// Sign in bit 31, the same for both ranks of a pair before `is_odd`; magnitude from bits 8 to 27.
inline std::int32_t signed_magnitude(std::uint32_t h, const Stream& stream) {
  const std::uint32_t magnitude = (((h * stream.multiplier) >> 8U) & stream.magnitudes) + 1;
  const std::uint32_t negative = 0U - ((h >> 31U) ^ stream.is_odd);
  return static_cast<std::int32_t>((magnitude ^ negative) - negative);
}

template <class T>
T summand(std::uint32_t h, const Stream& stream);
template <>
inline float summand<float>(std::uint32_t h, const Stream& stream) {
  return static_cast<float>(signed_magnitude(h, stream));
}
template <>
inline BFloat16 summand<BFloat16>(std::uint32_t h, const Stream& stream) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(summand<float>(h, stream)) >> 16U)};  // exact
}
template <>
inline std::int32_t summand<std::int32_t>(std::uint32_t h, const Stream& /*stream*/) {
  return static_cast<std::int32_t>(h | static_cast<std::uint32_t>(h == 0));
}

/// Any finite value: exponents from -63 to 64, no NaN, infinity, subnormal or zero.
template <class T>
T arbitrary(std::uint32_t h);
template <>
inline float arbitrary<float>(std::uint32_t h) {
  return std::bit_cast<float>((h & 0x807fffffU) | ((h & 0x3f800000U) + 0x20000000U));
}
template <>
inline BFloat16 arbitrary<BFloat16>(std::uint32_t h) {
  return {static_cast<std::uint16_t>((h & 0x807fU) | ((h & 0x3f80U) + 0x2000U))};
}
template <>
inline std::int32_t arbitrary<std::int32_t>(std::uint32_t h) {
  return static_cast<std::int32_t>(h);
}

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

template <class T>
void fill_typed(std::span<std::byte> bytes, const InputSpec& spec, Count first) {
  while (!bytes.empty()) {
    const auto index = static_cast<std::uint64_t>(first);
    const std::uint64_t until_high_changes = (std::uint64_t{1} << 32U) - (index & 0xffffffffU);
    const std::size_t part = std::min<std::uint64_t>(bytes.size() / sizeof(T), until_high_changes) * sizeof(T);
    const Stream stream = stream_of(spec, index >> 32U);
    const auto low = static_cast<std::uint32_t>(index);
    if (is_summed(spec.op)) {
      fill_tiles<T>(bytes.first(part), low, [stream](std::uint32_t i) { return summand<T>(hash(i, stream), stream); });
    } else {
      fill_tiles<T>(bytes.first(part), low, [stream](std::uint32_t i) {
        const std::uint32_t h = hash(i, stream);
        return arbitrary<T>((h & ~stream.rank_mask) | ((stream.rank ^ i) & stream.rank_mask));
      });
    }
    bytes = bytes.subspan(part);
    first += static_cast<Count>(part / sizeof(T));
  }
}

}  // namespace

Status supports_inputs(Dtype dtype, Op op, int ranks) {
  if (ranks < 1) return error(Code::invalid_argument, "{} ranks: must be 1 or more", ranks);
  const std::uint32_t limit = exact_limit(dtype);
  if (!is_summed(op) || limit == 0 || positive_ranks(ranks) <= limit) return {};
  return error(
      Code::invalid_argument,
      "{} {} on {} ranks cannot be verified exactly: integers up to {} are exact in {}, which is enough for at "
      "most {} ranks",
      to_string(dtype), to_string(op), ranks, limit, to_string(dtype), 2 * limit);
}

void fill_input(std::span<std::byte> bytes, const InputSpec& spec, Count first) {
  TUTTI_ASSERT(bytes.size() % size_of(spec.dtype) == 0, "{} bytes of {}", bytes.size(), to_string(spec.dtype));
  visit_dtype(spec.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(bytes, spec, first); });
}

}  // namespace tutti::harness

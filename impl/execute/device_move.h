// SPDX-License-Identifier: Apache-2.0
// What a team does with the elements of a MOVE. Each thread takes every n-th pack of 16 bytes, then every n-th element
// of what is left; where an address is no multiple of 16 all of it is. The arithmetic is that of the CPU kernels
// (impl/reduce/scalar.h).
#pragma once

#include <cstdint>

#include "impl/execute/device_machine.h"
#include "impl/reduce/scalar.h"

namespace tutti {

/// What one access of a thread reads or writes, whatever lies there.
template <class Element, int n>
struct alignas(n * sizeof(Element)) DevicePack {
  Element element[n];
};

/// The part of a MOVE that a thread works on: packs [0, count) from byte `first` on, every `threads`-th of them.
struct DevicePart {
  std::int64_t first = 0;
  std::int64_t count = 0;
  int thread = 0;
  int threads = 1;
};

[[nodiscard]] TUTTI_HOST_DEVICE inline bool are_aligned(const DeviceMove& move, std::uint64_t bytes) {
  std::uint64_t all = 0;
  for (int i = 0; i < move.destination_count; ++i) all |= reinterpret_cast<std::uint64_t>(move.destinations[i]);
  for (int i = 0; i < move.source_count; ++i) all |= reinterpret_cast<std::uint64_t>(move.sources[i]);
  return all % bytes == 0;
}

template <class Pack>
TUTTI_HOST_DEVICE void store_pack(const DeviceMove& move, std::int64_t first, std::int64_t at, const Pack& pack) {
  for (int to = 0; to < move.destination_count; ++to) {
    reinterpret_cast<Pack*>(move.destinations[to] + first)[at] = pack;
  }
}

/// Source 0 to every destination: every bit is kept.
template <class Element, int n>
TUTTI_HOST_DEVICE void copy_packs(const DeviceMove& move, const DevicePart& part) {
  using Pack = DevicePack<Element, n>;
  const auto* const source = reinterpret_cast<const Pack*>(move.sources[0] + part.first);
  for (std::int64_t at = part.thread; at < part.count; at += part.threads) {
    store_pack(move, part.first, at, source[at]);
  }
}

/// All sources, reduced by `E` (scalar::Elementwise) left to right, to every destination. `divides`: avg's last step.
template <class E, int n, bool divides>
TUTTI_HOST_DEVICE void reduce_packs(const DeviceMove& move, const DevicePart& part) {
  using Storage = typename E::Storage;
  using Pack = DevicePack<Storage, n>;
  const auto load = [&](int from, std::int64_t at) {
    Pack pack = reinterpret_cast<const Pack*>(move.sources[from] + part.first)[at];
    if (from == move.scaled) {
      Storage factor;
      __builtin_memcpy(&factor, &move.factor, sizeof factor);
      for (int e = 0; e < n; ++e) pack.element[e] = E::scale(pack.element[e], factor);
    }
    return pack;
  };
  for (std::int64_t at = part.thread; at < part.count; at += part.threads) {
    typename E::Accumulator total[n];
    Pack pack = load(0, at);
    for (int e = 0; e < n; ++e) total[e] = E::load(pack.element[e]);
    for (int from = 1; from < move.source_count; ++from) {
      pack = load(from, at);
      for (int e = 0; e < n; ++e) total[e] = E::combine(total[e], E::load(pack.element[e]));
    }
    for (int e = 0; e < n; ++e) {
      if constexpr (divides) total[e] = E::divide(total[e], move.ranks);
      pack.element[e] = E::store(total[e]);
    }
    store_pack(move, part.first, at, pack);
  }
}

/// A thread's part of a copy of elements of T.
template <class T>
TUTTI_HOST_DEVICE void copy_elements(const DeviceMove& move, int thread, int threads) {
  using Storage = typename scalar::Registers<T>::Storage;
  constexpr std::int64_t kPack = 16;
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t packs = are_aligned(move, kPack) ? move.bytes / kPack : 0;
  copy_packs<std::uint64_t, 2>(move, {.count = packs, .thread = thread, .threads = threads});
  const std::int64_t done = packs * kPack;
  copy_packs<Storage, 1>(move,
                         {.first = done, .count = (move.bytes - done) / kSize, .thread = thread, .threads = threads});
}

/// A thread's part of a reduction of elements of T.
template <class T, Op op, bool divides>
TUTTI_HOST_DEVICE void reduce_elements(const DeviceMove& move, int thread, int threads) {
  using E = scalar::Elementwise<T, op>;
  constexpr std::int64_t kPack = 16;
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t packs = are_aligned(move, kPack) ? move.bytes / kPack : 0;
  reduce_packs<E, kPack / kSize, divides>(move, {.count = packs, .thread = thread, .threads = threads});
  const std::int64_t done = packs * kPack;
  reduce_packs<E, 1, divides>(
      move, {.first = done, .count = (move.bytes - done) / kSize, .thread = thread, .threads = threads});
}

/// A thread's part of a MOVE. One source that is neither divided nor scaled is copied, which keeps the bits of a NaN;
/// truth is made 0 or 1.
/// Requires: addresses are multiples of T's size.
template <class T, Op op>
TUTTI_HOST_DEVICE void move_elements(const DeviceMove& move, int thread, int threads) {
  if constexpr (op != Op::none) {
    if constexpr (op == Op::avg) {
      if (move.is_final) return reduce_elements<T, op, true>(move, thread, threads);
    }
    const bool is_made_true = std::is_same_v<T, Boolean>;
    if (move.source_count > 1 || move.scaled >= 0 || is_made_true)
      return reduce_elements<T, op, false>(move, thread, threads);
  }
  copy_elements<T>(move, thread, threads);
}

/// move_elements of a dtype and op, for teams of the host.
using DeviceMoveFunction = void (*)(const DeviceMove& move, int thread, int threads);
/// Requires: op_exists.
[[nodiscard]] DeviceMoveFunction device_move_for(Dtype dtype, Op op);

}  // namespace tutti

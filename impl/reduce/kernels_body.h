// SPDX-License-Identifier: Apache-2.0
// The one text of all kernels. A translation unit defines TUTTI_ISA (the namespace, so that the linker never merges two
// instruction sets), TUTTI_VECTOR_BYTES (the register) and includes this once; `table` at the end is what it exports.
//
// The shape: a *group* of a few vectors is carried in registers through all sources, then written to all destinations.
// Groups of 4 where the number of sources is known to the compiler, else 8 registers of accumulators; single vectors
// for what is left of a group; a cascade of ever smaller vectors, down to one element, for what is left of a vector.
// Every load of a group comes before its first store, so a destination may be a source. Pointers that are known in
// number are copied into locals: vector stores alias everything, and the compiler would fetch the pointers again for
// each group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "impl/reduce/arithmetic.h"
#include "impl/reduce/kernels_isa.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifndef TUTTI_VECTOR_BYTES
#define TUTTI_VECTOR_BYTES 16
#endif

namespace tutti::TUTTI_ISA {

constexpr std::size_t kCacheLine = 64;

/// Pointers in a number that is known (copied) or, for 0, that is not (referred to).
template <class Pointer, int known>
struct Pointers {
  Pointer at_[known];
  [[gnu::always_inline]] inline Pointers(const Pointer* from, int /*count*/) {
    for (int i = 0; i < known; ++i) at_[i] = from[i];
  }
  [[gnu::always_inline]] static constexpr int count() { return known; }
  [[gnu::always_inline]] inline Pointer operator[](int i) const { return at_[i]; }
};
template <class Pointer>
struct Pointers<Pointer, 0> {
  const Pointer* from_;
  int count_;
  [[gnu::always_inline]] inline Pointers(const Pointer* from, int count) : from_(from), count_(count) {}
  [[gnu::always_inline]] inline int count() const { return count_; }
  [[gnu::always_inline]] inline Pointer operator[](int i) const { return from_[i]; }
};
template <int known>
using Sources = Pointers<const std::byte*, known>;
template <int known>
using Destinations = Pointers<std::byte*, known>;

/// A value anywhere in memory. Not memcpy, which GCC 12 takes through integer registers where a value has 16 bytes.
template <class Value>
struct Anywhere {
  typedef Value type __attribute__((aligned(1), may_alias));
};

template <class Value>
[[gnu::always_inline]] inline Value loaded(const std::byte* from) {
  return *reinterpret_cast<const typename Anywhere<Value>::type*>(from);
}

template <class Value>
[[gnu::always_inline]] inline void store_plain(std::byte* to, Value value) {
  *reinterpret_cast<typename Anywhere<Value>::type*>(to) = value;
}

/// Non-temporal, one register; `to` is aligned to it.
template <class Value>
[[gnu::always_inline]] inline void store_streaming(std::byte* to, Value value) {
  static_assert(sizeof(Value) == TUTTI_VECTOR_BYTES);
#if !defined(__x86_64__)
  store_plain(to, value);
#elif TUTTI_VECTOR_BYTES == 64
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, value));
#elif TUTTI_VECTOR_BYTES == 32
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, value));
#else
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, value));
#endif
}

/// What is done to each element: op over the sources, divided by `ranks` where it is final.
template <class T, Op op_, bool is_final_>
struct Rule {
  static constexpr Op op = op_;
  static constexpr bool is_final = is_final_;
  static constexpr int kElementBytes = sizeof(T);
  template <int bytes>
  using Of = Arithmetic<T, bytes>;
  /// Vectors in a group so that 8 registers hold its accumulators, and it fills cache lines.
  static constexpr int kFittingVectors =
      8 * TUTTI_VECTOR_BYTES / static_cast<int>(sizeof(typename Of<TUTTI_VECTOR_BYTES>::Accumulator));
  static constexpr int kLineVectors = static_cast<int>(kCacheLine) / TUTTI_VECTOR_BYTES;
  static constexpr int kManyVectors = kFittingVectors > kLineVectors ? kFittingVectors : kLineVectors;
};

/// `vectors` vectors of `width` bytes each, from `offset` bytes into every source on: what is to be stored, in
/// `stored`.
template <class R, int vectors, int width, class From, class Stored>
[[gnu::always_inline]] inline void reduce_group(const From& sources, std::size_t offset, int ranks, Stored* stored) {
  using A = typename R::template Of<width>;
  typename A::Accumulator accumulators[vectors];
  const std::byte* const first = sources[0] + offset;
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) accumulators[v] = A::load(loaded<Stored>(first + v * width));
  if constexpr (R::op != Op::none) {
    for (int s = 1; s < sources.count(); ++s) {
      const std::byte* const source = sources[s] + offset;
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        accumulators[v] = combined<A, R::op>(accumulators[v], A::load(loaded<Stored>(source + v * width)));
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) {
    if constexpr (R::is_final) accumulators[v] = A::divided(accumulators[v], ranks);
    stored[v] = A::store(accumulators[v]);
  }
}

template <class R, int vectors, int width, class From, class To>
[[gnu::always_inline]] inline void move_group(const From& sources, const To& destinations, std::size_t offset,
                                              int ranks) {
  typename R::template Of<width>::Storage stored[vectors];
  reduce_group<R, vectors, width>(sources, offset, ranks, stored);
  for (int d = 0; d < destinations.count(); ++d) {
    std::byte* const to = destinations[d] + offset;
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) store_plain(to + v * width, stored[v]);
  }
}

/// Less than 2 * `width` bytes: one vector of `width` if there are so many, then half of that, down to one element.
template <class R, int width, class From, class To>
[[gnu::always_inline]] inline void move_rest(const From& sources, const To& destinations, std::size_t offset,
                                             std::size_t bytes, int ranks) {
  if (bytes - offset >= width) {
    move_group<R, 1, width>(sources, destinations, offset, ranks);
    offset += width;
  }
  if constexpr (width > R::kElementBytes) move_rest<R, width / 2>(sources, destinations, offset, bytes, ranks);
}

/// The end of every kernel, from `offset` on, and all of a small one: less than one register.
template <class R>
[[gnu::noinline]] void move_tail(const KernelArguments& a, std::size_t offset) {
  const Sources<0> sources(a.sources, a.source_count);
  const Destinations<0> destinations(a.destinations, a.destination_count);
  move_rest<R, TUTTI_VECTOR_BYTES / 2>(sources, destinations, offset, a.bytes, a.ranks);
}

/// Any number of bytes from `offset` on, with plain stores; a count of 0 is one that the compiler does not know.
template <class R, int source_count, int destination_count>
[[gnu::noinline]] void move_plain(const KernelArguments& a, std::size_t offset) {
  constexpr int kVectors = source_count == 0 ? R::kManyVectors : 4;
  constexpr std::size_t kGroupBytes = kVectors * TUTTI_VECTOR_BYTES;
  const Sources<source_count> sources(a.sources, a.source_count);
  const Destinations<destination_count> destinations(a.destinations, a.destination_count);
  const std::size_t bytes = a.bytes;
  const int ranks = a.ranks;
  for (; bytes - offset >= kGroupBytes; offset += kGroupBytes) {
    move_group<R, kVectors, TUTTI_VECTOR_BYTES>(sources, destinations, offset, ranks);
  }
  for (; bytes - offset >= TUTTI_VECTOR_BYTES; offset += TUTTI_VECTOR_BYTES) {
    move_group<R, 1, TUTTI_VECTOR_BYTES>(sources, destinations, offset, ranks);
  }
  if (offset != bytes) move_tail<R>(a, offset);
}

/// Elements one by one until the first streamed destination starts a cache line; returns how many bytes that was. Where
/// it never will (it is not aligned to its elements) or the buffer ends first: none.
template <class R>
std::size_t move_head(const KernelArguments& a) {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(a.destinations[__builtin_ctzll(a.streamed)]) % kCacheLine;
  if (head % R::kElementBytes != 0 || head > a.bytes) return 0;
  const Sources<0> sources(a.sources, a.source_count);
  const Destinations<0> destinations(a.destinations, a.destination_count);
  std::size_t offset = 0;
  for (; offset < head; offset += R::kElementBytes) {
    move_group<R, 1, R::kElementBytes>(sources, destinations, offset, a.ranks);
  }
  return offset;
}

/// Streams whole cache lines to those streamed destinations that start one where the first of them does; plain stores
/// to the others.
template <class R>
[[gnu::noinline]] void move_streaming(const KernelArguments& a) {
  constexpr int kVectors = R::kManyVectors;
  constexpr std::size_t kGroupBytes = kVectors * TUTTI_VECTOR_BYTES;
  static_assert(kGroupBytes % kCacheLine == 0);
  const Sources<0> sources(a.sources, a.source_count);
  std::size_t offset = move_head<R>(a);
  for (; a.bytes - offset >= kGroupBytes; offset += kGroupBytes) {
    typename R::template Of<TUTTI_VECTOR_BYTES>::Storage stored[kVectors];
    reduce_group<R, kVectors, TUTTI_VECTOR_BYTES>(sources, offset, a.ranks, stored);
    for (int d = 0; d < a.destination_count; ++d) {
      std::byte* const to = a.destinations[d] + offset;
      const bool is_streamed = (a.streamed >> (d < 63 ? d : 63) & 1U) != 0;
      if (is_streamed && reinterpret_cast<std::uintptr_t>(to) % kCacheLine == 0) {
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) store_streaming(to + v * TUTTI_VECTOR_BYTES, stored[v]);
      } else {
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) store_plain(to + v * TUTTI_VECTOR_BYTES, stored[v]);
      }
    }
  }
  if (offset != a.bytes) move_plain<R, 0, 0>(a, offset);
#ifdef __x86_64__
  _mm_sfence();  // a release store does not order the streaming stores before it
#endif
}

template <class R, int source_count>
[[gnu::always_inline]] inline void move_to(const KernelArguments& a) {
  if (a.destination_count == 1) return move_plain<R, source_count, 1>(a, 0);
  if (a.destination_count == 2) return move_plain<R, source_count, 2>(a, 0);
  move_plain<R, source_count, 0>(a, 0);
}

/// Whether T and op are worth instances for the usual numbers of sources and destinations: what training and most
/// programs reduce. Each instance is code to compile, in three instruction sets.
template <class T, Op op>
constexpr bool is_frequent() {
  if (op == Op::none) return true;
  if (op == Op::sum) return sizeof(T) > 1;
  return (op == Op::min || op == Op::max) && std::is_same_v<T, float>;
}

/// Streaming and dividing wait for memory or the divider anyway: one instance for all counts.
template <class T, Op op, bool is_final>
[[gnu::always_inline]] inline void move(const KernelArguments& a) {
  using R = Rule<T, op, is_final>;
  if (a.bytes < TUTTI_VECTOR_BYTES) return a.bytes == 0 ? void() : move_tail<R>(a, 0);
  if (a.streamed != 0) return move_streaming<R>(a);
  if constexpr (is_final || !is_frequent<T, op>()) {
    move_plain<R, 0, 0>(a, 0);
  } else if constexpr (op == Op::none) {
    move_to<R, 1>(a);
  } else {
    switch (a.source_count) {
      case 2:
        return move_to<R, 2>(a);
      case 3:
        return move_to<R, 3>(a);
      case 4:
        return move_to<R, 4>(a);
      default:
        return move_to<R, 0>(a);
    }
  }
}

inline void copy_kernel(const KernelArguments& a) {
  if (a.destination_count == 1 && a.destinations[0] == a.sources[0]) return;
  move<Raw, Op::none, false>(a);
}

/// What T is reduced as, so that what gives the same bits is compiled once: integers wrap alike with and without a
/// sign, and bits are bits.
template <class T, Op op>
constexpr auto reduced_as() {
  if constexpr (domain_of(op) == OpDomain::integers) {
    return std::type_identity<Raw>{};
  } else if constexpr (std::is_integral_v<T> && (op == Op::sum || op == Op::prod)) {
    return std::type_identity<std::make_unsigned_t<T>>{};
  } else {
    return std::type_identity<T>{};
  }
}

template <class T, Op op>
void reduce_kernel(const KernelArguments& a) {
  if constexpr (op == Op::avg) {
    if (a.is_final) return move<T, Op::avg, true>(a);
  }
  if (a.source_count == 1) return copy_kernel(a);
  constexpr Op kOp = combining(op);
  move<typename decltype(reduced_as<T, kOp>())::type, kOp, false>(a);
}

template <class R>
[[gnu::always_inline]] inline void move_small(std::byte* destination, const std::byte* const* source_list,
                                              int source_count, std::size_t bytes) {
  constexpr std::size_t kWidth = 16;
  const Sources<0> sources(source_list, source_count);
  const Destinations<1> destinations(&destination, 1);
  std::size_t offset = 0;
  for (; bytes - offset >= kWidth; offset += kWidth) move_group<R, 1, kWidth>(sources, destinations, offset, 1);
  move_rest<R, kWidth / 2>(sources, destinations, offset, bytes, 1);
}

template <class T, Op op>
void reduce_small(std::byte* destination, const std::byte* const* source_list, int source_count, std::size_t bytes) {
  constexpr Op kOp = combining(op);
  // One source alone keeps every bit, which widening and narrowing does not.
  if (!std::is_arithmetic_v<T> && source_count == 1) {
    return move_small<Rule<Raw, Op::none, false>>(destination, source_list, source_count, bytes);
  }
  move_small<Rule<typename decltype(reduced_as<T, kOp>())::type, kOp, false>>(destination, source_list, source_count,
                                                                              bytes);
}

/// Null where the op does not exist for T; `small_kernel` too.
template <class T, Op op>
constexpr Kernel kernel() {
  if constexpr (domain_of(op) == OpDomain::numbers || std::is_integral_v<T>) {
    return reduce_kernel<T, op>;
  } else {
    return nullptr;
  }
}
template <class T, Op op>
constexpr SmallKernel small_kernel() {
  if constexpr (domain_of(op) == OpDomain::numbers || std::is_integral_v<T>) {
    return reduce_small<T, op>;
  } else {
    return nullptr;
  }
}

/// The kernels of every op for one dtype, in the order of the table of ops; `table` has them in the order of dtypes.
struct Row {
  Kernel by_op[kOps];
  SmallKernel small_by_op[kOps];
};
template <class T>
constexpr Row row() {
#define TUTTI_ROW(id, name, domain) kernel<T, Op::id>(),
#define TUTTI_SMALL_ROW(id, name, domain) small_kernel<T, Op::id>(),
  return {{TUTTI_OPS(TUTTI_ROW)}, {TUTTI_OPS(TUTTI_SMALL_ROW)}};
#undef TUTTI_ROW
#undef TUTTI_SMALL_ROW
}

constexpr KernelTable table(const char* isa) {
  KernelTable result = {.isa = isa, .copy = copy_kernel, .reduce = {}, .reduce_small = {}};
#define TUTTI_ROW(id, type, name) row<type>(),
  const Row rows[kDtypes] = {TUTTI_DTYPES(TUTTI_ROW)};
#undef TUTTI_ROW
  for (int d = 0; d < kDtypes; ++d) {
    for (int o = 0; o < kOps; ++o) {
      result.reduce[d][o] = rows[d].by_op[o];
      result.reduce_small[d][o] = rows[d].small_by_op[o];
    }
  }
  return result;
}

}  // namespace tutti::TUTTI_ISA

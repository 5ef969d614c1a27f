// SPDX-License-Identifier: Apache-2.0
// The one text of all kernels. A translation unit defines TUTTI_ISA and TUTTI_VECTOR_BYTES, the register, and includes
// this once; `table` at the end is what it exports. TUTTI_ISA is the namespace, so that the linker never merges two
// instruction sets.
//
// The shape: a *group* of a few vectors is carried in registers through all sources, then written to all destinations.
// A group has 4 vectors where the number of sources is known to the compiler, else 8 registers of accumulators. What is
// left of a group goes by single vectors. What is left of a vector goes by a cascade of ever smaller vectors, down to
// one element, or, where the rule is not frequent, 16 bytes at a time. Every load of a group comes before its first
// store, so a destination may be a source. Pointers that are known in number are copied into locals: vector stores
// alias everything, and the compiler would fetch the pointers again for each group.
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

/// Whether a rule is worth instances for the usual numbers of sources and destinations, and for few bytes. Those are
/// what training and most programs reduce; dividing waits for the divider anyway. Each instance is code to compile, in
/// three instruction sets, and all of them for every rule would take two thirds more time. Without them, a rule is
/// nearly as fast from 4 KiB on, and loses some nanoseconds of a call on 8 B.
template <class T, Op op, bool is_final>
constexpr bool is_frequent() {
  if (is_final) return false;
  if (op == Op::none) return true;
  if (op == Op::sum) return sizeof(T) > 1;
  return (op == Op::min || op == Op::max) && std::is_same_v<T, float>;
}

/// What is done to each element: op over the sources, divided by `ranks` where it is final.
template <class T, Op op_, bool is_final_>
struct Rule {
  static constexpr Op op = op_;
  static constexpr bool is_final = is_final_;
  static constexpr bool is_frequent = TUTTI_ISA::is_frequent<T, op, is_final>();
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

/// Less than 2 * `width` bytes: one vector of `width` if there are `width` bytes, then half of that, down to one
/// element.
template <class R, int width, class From, class To>
[[gnu::always_inline]] inline void move_rest(const From& sources, const To& destinations, std::size_t offset,
                                             std::size_t bytes, int ranks) {
  if (bytes - offset >= width) {
    move_group<R, 1, width>(sources, destinations, offset, ranks);
    offset += width;
  }
  if constexpr (width > R::kElementBytes) move_rest<R, width / 2>(sources, destinations, offset, bytes, ranks);
}

/// Bytes as two words: in registers, because what is stored in pieces is long in coming back as a vector.
struct Few {
  static constexpr std::size_t kBytes = 16;
  std::uint64_t words[2];
};

/// Less than 8 bytes, filled up with zeros.
[[gnu::always_inline]] inline std::uint64_t loaded_word(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = (bytes & 4U) != 0 ? loaded<std::uint32_t>(from) : 0;
  std::size_t done = bytes & 4U;
  if ((bytes & 2U) != 0) word |= std::uint64_t{loaded<std::uint16_t>(from + done)} << 8U * done;
  done += bytes & 2U;
  if ((bytes & 1U) != 0) word |= std::uint64_t{loaded<std::uint8_t>(from + done)} << 8U * done;
  return word;
}
[[gnu::always_inline]] inline void store_word(std::byte* to, std::uint64_t word, std::size_t bytes) {
  if ((bytes & 4U) != 0) store_plain(to, static_cast<std::uint32_t>(word));
  std::size_t done = bytes & 4U;
  if ((bytes & 2U) != 0) store_plain(to + done, static_cast<std::uint16_t>(word >> 8U * done));
  done += bytes & 2U;
  if ((bytes & 1U) != 0) store_plain(to + done, static_cast<std::uint8_t>(word >> 8U * done));
}

/// The same for less than 16.
[[gnu::noinline]] inline Few loaded_few(const std::byte* from, std::size_t bytes) {
  if (bytes < 8) return {{loaded_word(from, bytes), 0}};
  return {{loaded<std::uint64_t>(from), loaded_word(from + 8, bytes - 8)}};
}
[[gnu::noinline]] inline void store_few(std::byte* to, Few value, std::size_t bytes) {
  if (bytes < 8) return store_word(to, value.words[0], bytes);
  store_plain(to, value.words[0]);
  store_word(to + 8, value.words[1], bytes - 8);
}

/// The sources of less than 16 bytes from `offset` on: each in its turn in the one copy.
class FewSources {
 public:
  FewSources(const KernelArguments& a, std::size_t offset, std::size_t bytes) : a_(a), offset_(offset), bytes_(bytes) {}
  [[gnu::always_inline]] inline int count() const { return a_.source_count; }
  [[gnu::always_inline]] inline const std::byte* operator[](int i) const {
    copy_ = loaded_few(a_.sources[i] + offset_, bytes_);
    return reinterpret_cast<const std::byte*>(&copy_);
  }

 private:
  const KernelArguments& a_;
  std::size_t offset_;
  std::size_t bytes_;
  alignas(Few::kBytes) mutable Few copy_;
};

/// From `offset` to `end`, 16 bytes at a time: the same little code for every length.
template <class R>
[[gnu::noinline]] void move_few(const KernelArguments& a, std::size_t offset, std::size_t end) {
  constexpr std::size_t kWidth = Few::kBytes;
  const Sources<0> sources(a.sources, a.source_count);
  const Destinations<0> destinations(a.destinations, a.destination_count);
  for (; end - offset >= kWidth; offset += kWidth) move_group<R, 1, kWidth>(sources, destinations, offset, a.ranks);
  if (offset == end) return;
  typename R::template Of<kWidth>::Storage stored[1];
  reduce_group<R, 1, kWidth>(FewSources(a, offset, end - offset), 0, a.ranks, stored);
  const auto result = __builtin_bit_cast(Few, stored);
  for (int d = 0; d < a.destination_count; ++d) store_few(a.destinations[d] + offset, result, end - offset);
}

/// The end of every kernel, from `offset` on, and all of a small one: less than one register.
template <class R>
[[gnu::noinline]] void move_tail(const KernelArguments& a, std::size_t offset) {
  if constexpr (R::is_frequent) {
    const Sources<0> sources(a.sources, a.source_count);
    const Destinations<0> destinations(a.destinations, a.destination_count);
    move_rest<R, TUTTI_VECTOR_BYTES / 2>(sources, destinations, offset, a.bytes, a.ranks);
  } else {
    move_few<R>(a, offset, a.bytes);
  }
}

/// With plain stores.
template <class R, int source_count, int destination_count>
[[gnu::noinline]] void move_plain(const KernelArguments& a) {
  constexpr int kVectors = 4;
  constexpr std::size_t kGroupBytes = kVectors * TUTTI_VECTOR_BYTES;
  const Sources<source_count> sources(a.sources, a.source_count);
  const Destinations<destination_count> destinations(a.destinations, a.destination_count);
  const std::size_t bytes = a.bytes;
  const int ranks = a.ranks;
  std::size_t offset = 0;
  for (; bytes - offset >= kGroupBytes; offset += kGroupBytes) {
    move_group<R, kVectors, TUTTI_VECTOR_BYTES>(sources, destinations, offset, ranks);
  }
  for (; bytes - offset >= TUTTI_VECTOR_BYTES; offset += TUTTI_VECTOR_BYTES) {
    move_group<R, 1, TUTTI_VECTOR_BYTES>(sources, destinations, offset, ranks);
  }
  if (offset != bytes) move_tail<R>(a, offset);
}

/// What comes before the first streamed destination starts a cache line; returns how many bytes that was. Where it
/// never will (it is not aligned to its elements) or the buffer ends first: none.
template <class R>
std::size_t move_head(const KernelArguments& a) {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(a.destinations[__builtin_ctzll(a.streamed)]) % kCacheLine;
  if (head % R::kElementBytes != 0 || head > a.bytes) return 0;
  move_few<R>(a, 0, head);
  return head;
}

/// Any numbers of sources and destinations. Streams whole cache lines to those streamed destinations that start one
/// where the first of them does; plain stores to the others.
template <class R>
[[gnu::noinline]] void move_any(const KernelArguments& a) {
  constexpr int kVectors = R::kManyVectors;
  constexpr std::size_t kGroupBytes = kVectors * TUTTI_VECTOR_BYTES;
  static_assert(kGroupBytes % kCacheLine == 0);
  const Sources<0> sources(a.sources, a.source_count);
  const Destinations<0> destinations(a.destinations, a.destination_count);
  std::size_t offset = a.streamed == 0 ? 0 : move_head<R>(a);
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
  for (; a.bytes - offset >= TUTTI_VECTOR_BYTES; offset += TUTTI_VECTOR_BYTES) {
    move_group<R, 1, TUTTI_VECTOR_BYTES>(sources, destinations, offset, a.ranks);
  }
  if (offset != a.bytes) move_tail<R>(a, offset);
#ifdef __x86_64__
  if (a.streamed != 0) _mm_sfence();  // a release store does not order the streaming stores before it
#endif
}

template <class R, int source_count>
[[gnu::always_inline]] inline void move_from(const KernelArguments& a) {
  if (a.destination_count == 1) return move_plain<R, source_count, 1>(a);
  if (a.destination_count == 2) return move_plain<R, source_count, 2>(a);
  move_any<R>(a);
}

/// Streaming waits for memory anyway: one instance for all counts.
template <class T, Op op, bool is_final>
[[gnu::always_inline]] inline void move(const KernelArguments& a) {
  using R = Rule<T, op, is_final>;
  if (a.bytes < TUTTI_VECTOR_BYTES) return a.bytes == 0 ? void() : move_tail<R>(a, 0);
  if constexpr (!R::is_frequent) {
    move_any<R>(a);
  } else {
    if (a.streamed != 0) return move_any<R>(a);
    if constexpr (op == Op::none) {
      move_from<R, 1>(a);
    } else {
      if (a.source_count == 2) return move_from<R, 2>(a);
      if (a.source_count == 3) return move_from<R, 3>(a);
      if (a.source_count == 4) return move_from<R, 4>(a);
      move_any<R>(a);
    }
  }
}

inline void copy_kernel(const KernelArguments& a) {
  if (a.destination_count == 1 && a.destinations[0] == a.sources[0]) return;
  move<Raw, Op::none, false>(a);
}

/// By what T is combined, so that what gives the same bits is compiled once: truth has an or and an and.
template <class T, Op op>
constexpr Op combined_by() {
  if (!std::is_same_v<T, Boolean>) return combining(op);
  return op == Op::min || op == Op::band ? Op::band : Op::bor;
}

/// What T is reduced as, for the same reason: integers wrap alike with and without a sign, and bits are bits.
template <class T, Op op>
constexpr auto reduced_as() {
  if constexpr (std::is_same_v<T, Boolean>) {
    return std::type_identity<Boolean>{};
  } else if constexpr (domain_of(op) == OpDomain::integers) {
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
  // One source alone keeps every bit, which widening and narrowing does not. Truth is made 0 or 1 all the same.
  if (!std::is_same_v<T, Boolean> && a.source_count == 1) return copy_kernel(a);
  constexpr Op kOp = combined_by<T, op>();
  move<typename decltype(reduced_as<T, kOp>())::type, kOp, false>(a);
}

template <class R>
[[gnu::always_inline]] inline void move_small(std::byte* destination, const std::byte* const* source_list,
                                              int source_count, std::size_t bytes) {
  if constexpr (R::is_frequent) {
    constexpr std::size_t kWidth = 16;
    const Sources<0> sources(source_list, source_count);
    const Destinations<1> destinations(&destination, 1);
    std::size_t offset = 0;
    for (; bytes - offset >= kWidth; offset += kWidth) move_group<R, 1, kWidth>(sources, destinations, offset, 1);
    move_rest<R, kWidth / 2>(sources, destinations, offset, bytes, 1);
  } else {
    const KernelArguments a{.destinations = &destination,
                            .destination_count = 1,
                            .sources = source_list,
                            .source_count = source_count,
                            .bytes = bytes};
    move_few<R>(a, 0, bytes);
  }
}

template <class T, Op op>
void reduce_small(std::byte* destination, const std::byte* const* source_list, int source_count, std::size_t bytes) {
  constexpr Op kOp = combined_by<T, op>();
  // As above: integers and truth are stored as they were loaded.
  if (!std::is_arithmetic_v<T> && source_count == 1) {
    return move_small<Rule<Raw, Op::none, false>>(destination, source_list, source_count, bytes);
  }
  move_small<Rule<typename decltype(reduced_as<T, kOp>())::type, kOp, false>>(destination, source_list, source_count,
                                                                              bytes);
}

/// Null where the op does not exist for T; `small_kernel` too.
template <class T, Op op>
constexpr Kernel kernel() {
  if constexpr (op_exists_for<T>(op)) {
    return reduce_kernel<T, op>;
  } else {
    return nullptr;
  }
}
template <class T, Op op>
constexpr SmallKernel small_kernel() {
  if constexpr (op_exists_for<T>(op)) {
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

// SPDX-License-Identifier: Apache-2.0
// The verifier's loops as a device runs them, on a GPU or on teams of host threads: one text for both. Values and
// arithmetic are those of the host (input_values.h, special_values.h, accumulation.h), so the bits are.
//
// Threads need no other thread: each takes every n-th element. What several find goes into words by atomic operations
// of `Words`: add(word, value), least(word, value), most(word, value).
#pragma once

#include <cstdint>
#include <type_traits>

#include "harness/verify/accumulation.h"
#include "harness/verify/device_work.h"
#include "harness/verify/guard.h"
#include "harness/verify/input_values.h"
#include "harness/verify/special_values.h"

namespace tutti::harness::verify {

/// A thread of a launch. `index` and `count`: among all threads; of `teams` each has `threads`.
struct DeviceThread {
  int team = 0, teams = 1;
  int thread = 0, threads = 1;
  [[nodiscard]] TUTTI_HOST_DEVICE std::int64_t index() const {
    return static_cast<std::int64_t>(team) * threads + thread;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::int64_t count() const { return static_cast<std::int64_t>(teams) * threads; }
};

/// What inputs of T are made of: integers of one width are filled alike.
template <class T>
struct InputOf {
  using Type = T;
};
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, Boolean>) struct InputOf<T> {
  using Type = std::make_unsigned_t<T>;
};

/// The bits of an element.
template <std::size_t bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::Type;

/// Element `i` at `at`, which may be no multiple of its size.
template <class B>
TUTTI_HOST_DEVICE B load_bits(const std::byte* at, std::int64_t i) {
  const std::byte* const there = at + i * static_cast<std::int64_t>(sizeof(B));
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(B) == 0) return *reinterpret_cast<const B*>(there);
  B bits = 0;
  for (unsigned byte = 0; byte < sizeof(B); ++byte) {
    bits = static_cast<B>(bits | static_cast<B>(static_cast<B>(static_cast<std::uint8_t>(there[byte])) << (8 * byte)));
  }
  return bits;
}
template <class B>
TUTTI_HOST_DEVICE void store_bits(std::byte* at, std::int64_t i, B bits) {
  std::byte* const there = at + i * static_cast<std::int64_t>(sizeof(B));
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(B) == 0) {
    *reinterpret_cast<B*>(there) = bits;
    return;
  }
  for (unsigned byte = 0; byte < sizeof(B); ++byte) {
    there[byte] = static_cast<std::byte>(static_cast<std::uint8_t>(static_cast<std::uint64_t>(bits) >> (8 * byte)));
  }
}

// Inputs

/// Element `index` of exact values, as fill_input has it. T: unsigned, or a float.
template <class T, Op op>
TUTTI_HOST_DEVICE T exact_value(std::uint32_t index, const Stream& stream) {
  if constexpr (std::is_same_v<T, Boolean>) {
    return truth<op>(index, stream);
  } else if constexpr (std::is_same_v<T, std::uint8_t> && (op == Op::none || op == Op::sum)) {
    // Four bytes from one hash.
    const auto byte = static_cast<std::uint8_t>(hash(index / 4, stream.own) >> (8 * (index % 4)));
    return op == Op::none ? byte : without_zero(byte);
  } else if constexpr (op == Op::none || op == Op::min || op == Op::max) {
    return arbitrary<T>(index, stream);
  } else if constexpr (op == Op::sum || op == Op::avg) {
    // The usual case apart: a hash less for each element.
    if (sizeof(T) > 1 && stream.free == stream.ranks) return summand<T, Sharing::all_free>(index, stream);
    return summand<T, Sharing::by_role>(index, stream);
  } else if constexpr (op == Op::premul_sum) {
    return before_factor<T>(index, stream);
  } else if constexpr (op == Op::prod) {
    return factor<T>(index, stream);
  } else {
    return bits<T, op>(index, stream);
  }
}

/// The same of random values. Requires: a float that the op rounds.
template <class T, Op op>
TUTTI_HOST_DEVICE T random_value(std::uint32_t index, const Stream& stream) {
  if constexpr (op == Op::prod) {
    return random_factor<T>(index, stream);
  } else {
    return random_summand<T>(index, stream);
  }
}

/// A thread's part of an input. T: an element type of the table.
template <class T, Op op>
TUTTI_HOST_DEVICE void fill_elements(const FillWork& work, const DeviceThread& me) {
  using Input = typename InputOf<T>::Type;
  const auto fill = [&](auto value) {
    for (std::int64_t i = me.index(); i < work.elements; i += me.count()) {
      const Input element = value(work.first + static_cast<std::uint32_t>(i));
      store_bits(work.at, i, __builtin_bit_cast(Bits<T>, element));
    }
  };
  if constexpr (!std::is_integral_v<T>) {
    if (work.kind == ValueKind::special) {
      const auto& table = *static_cast<const SpecialTable<Input>*>(work.table);
      return fill([&](std::uint32_t index) { return special_value(index, work.stream, table); });
    }
    if (work.kind == ValueKind::random) {
      return fill([&](std::uint32_t index) { return random_value<Input, op>(index, work.stream); });
    }
  }
  fill([&](std::uint32_t index) { return exact_value<Input, op>(index, work.stream); });
}

// Poison and guards

TUTTI_HOST_DEVICE inline void fill_poison_parts(const PoisonWork& work, const DeviceThread& me) {
  const auto byte_of = [&work](std::int64_t i) {
    return static_cast<std::byte>(static_cast<std::uint8_t>(work.word >> (8 * (i % 2))));
  };
  const std::uint64_t eight = work.word * std::uint64_t{0x0001000100010001};
  constexpr std::int64_t kWord = sizeof(std::uint64_t);
  // Short parts, of which there are many, go to a team each.
  for (std::int32_t p = me.team; p < work.count; p += me.teams) {
    const PoisonPart& part = work.parts[p];
    const std::int64_t words = part.bytes / kWord;
    for (std::int64_t i = me.thread; i < words; i += me.threads) store_bits(part.at, i, eight);
    for (std::int64_t i = words * kWord + me.thread; i < part.bytes; i += me.threads) part.at[i] = byte_of(i);
  }
}

/// Calls `f(i, guard byte)` for every byte of a zone that is the thread's.
template <class F>
TUTTI_HOST_DEVICE void for_each_guard_byte(const GuardPart& part, const DeviceThread& me, F&& f) {
  // guard_byte of each, without a division for each.
  const std::uint32_t period = kGuardPeriod;
  const auto place_of = [](std::int64_t offset) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(offset) * kGuardStep % kGuardPeriod);
  };
  const std::uint32_t step = place_of(me.count());
  std::uint32_t place = place_of(part.offset + me.index());
  for (std::int64_t i = me.index(); i < part.bytes; i += me.count()) {
    f(i, guard_at(place));
    place += step;
    if (place >= period) place -= period;
  }
}

TUTTI_HOST_DEVICE inline void write_guard_parts(const GuardWork& work, const DeviceThread& me) {
  for (std::int32_t p = 0; p < work.count; ++p) {
    const GuardPart& part = work.parts[p];
    for_each_guard_byte(part, me, [&part](std::int64_t i, std::byte guard) { part.at[i] = guard; });
  }
}

template <class Words>
TUTTI_HOST_DEVICE void compare_guard_parts(const GuardWork& work, const DeviceThread& me) {
  for (std::int32_t p = 0; p < work.count; ++p) {
    const GuardPart& part = work.parts[p];
    for_each_guard_byte(part, me, [&](std::int64_t i, std::byte guard) {
      if (part.at[i] != guard) Words::least(work.damage, static_cast<std::uint64_t>(part.offset + i));
    });
  }
}

// Triads

/// What a thread moves at a time.
struct alignas(16) TriadWords {
  std::uint32_t words[4];
};

TUTTI_HOST_DEVICE inline void make_triad(const TriadWork& work, const DeviceThread& me) {
  const std::int64_t count = work.bytes / static_cast<std::int64_t>(sizeof(TriadWords));
  auto* const to = reinterpret_cast<TriadWords*>(work.to);
  const auto* const first = reinterpret_cast<const TriadWords*>(work.first);
  const auto* const second = reinterpret_cast<const TriadWords*>(work.second);
  for (std::int64_t i = me.index(); i < count; i += me.count()) {
    TriadWords sum = first[i];
    const TriadWords other = second[i];
    for (int word = 0; word < 4; ++word) sum.words[word] += kTriadFactor * other.words[word];
    to[i] = sum;
  }
}

// Comparison

template <class T>
[[nodiscard]] TUTTI_HOST_DEVICE bool is_nan_of(Bits<T> bits) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    const auto value = Accumulation<T>::load(__builtin_bit_cast(T, bits));
    return value != value;
  }
}

/// Whether what is wrong of the element is the poison: of one that was written in part, not all of its bytes.
template <class B>
[[nodiscard]] TUTTI_HOST_DEVICE bool holds_poison(B actual, B expected, B poison) {
  for (unsigned byte = 0; byte < sizeof(B); ++byte) {
    const auto mask = static_cast<B>(B{0xff} << (8 * byte));
    if (((actual ^ poison) & mask) != 0 && ((actual ^ expected) & mask) != 0) return false;
  }
  return true;
}

/// Element `i` of the source of a piece.
template <class T, Op op>
TUTTI_HOST_DEVICE T source_value(const CompareWork& work, const CompareSource& source, std::int64_t i) {
  using Input = typename InputOf<T>::Type;
  const Stream& stream = work.streams[source.stream];
  const std::uint32_t index = source.first + static_cast<std::uint32_t>(i);
  if constexpr (!std::is_integral_v<T>) {
    if (work.kind == ValueKind::special) {
      return special_value(index, stream, *static_cast<const SpecialTable<T>*>(work.table));
    }
    if (work.kind == ValueKind::random) return random_value<T, op>(index, stream);
  }
  return __builtin_bit_cast(T, exact_value<Input, op>(index, stream));
}

/// What element `i` of a piece should be: the oracle's loop over all ranks, in its order.
template <class T, Op op>
TUTTI_HOST_DEVICE Bits<T> expected_bits(const CompareWork& work, const ComparePiece& piece, std::int64_t i) {
  const CompareSource* const sources = work.sources + piece.first_source;
  T value = source_value<T, op>(work, sources[0], i);
  if constexpr (op != Op::none) {
    if (piece.expectation == Expectation::reduced) {
      const auto contributed = [&](T element, const CompareSource& source) {
        if constexpr (op != Op::premul_sum) return element;
        return scaled(element, factor_of(static_cast<int>(work.streams[source.stream].rank)));
      };
      auto total = Accumulation<T>::load(contributed(value, sources[0]));
      for (std::int32_t s = 1; s < piece.sources; ++s) {
        total = combine<T, op>(total, contributed(source_value<T, op>(work, sources[s], i), sources[s]));
      }
      value = finish<T>(total, op, work.ranks);
    }
  }
  return __builtin_bit_cast(Bits<T>, value);
}

template <class T, class Words>
TUTTI_HOST_DEVICE void compare_members(const CompareWork& work, const ComparePiece& piece, std::int64_t i,
                                       Bits<T> bits) {
  const bool is_any_nan = piece.is_any_nan_right && is_nan_of<T>(bits);
  // The NaN that a GPU makes is positive, and may be the poison's bits; that of 8 bits is one and the same everywhere.
  if (is_any_nan && sizeof(T) > 1) bits = static_cast<Bits<T>>(bits | Bits<T>{1} << (8 * sizeof(T) - 1));
  for (std::int32_t m = 0; m < piece.members; ++m) {
    const CompareMember& member = work.members[piece.first_member + m];
    const Bits<T> actual = load_bits<Bits<T>>(member.at, i);
    const auto index = static_cast<std::uint64_t>(member.index + i);
    const auto poison = static_cast<Bits<T>>(work.poison[index % 2]);
    const Bits<T> expected = piece.expectation == Expectation::poison ? poison : bits;
    if (actual == expected || (is_any_nan && is_nan_of<T>(actual) && actual != poison)) continue;
    CompareRecord& record = work.records[member.record];
    Words::add(&record.wrong, 1);
    Words::least(&record.first_bad, index);
    Words::most(&record.last_bad, index);
    if (holds_poison(actual, expected, poison)) Words::add(&record.poisoned, 1);
  }
}

/// A thread's part of a comparison: chunks go to teams in turn, their elements to the threads of the team.
template <class T, Op op, class Words>
TUTTI_HOST_DEVICE void compare_elements(const CompareWork& work, const DeviceThread& me) {
  const ComparePiece* piece = work.pieces;
  constexpr std::int64_t kChunk = CompareWork::kChunk;
  for (std::int64_t chunk = me.team; chunk < work.chunks; chunk += me.teams) {
    while (chunk >= piece->first_chunk + (piece->elements + kChunk - 1) / kChunk) ++piece;
    const std::int64_t begin = (chunk - piece->first_chunk) * kChunk;
    const std::int64_t end = begin + kChunk < piece->elements ? begin + kChunk : piece->elements;
    for (std::int64_t i = begin + me.thread; i < end; i += me.threads) {
      const Bits<T> bits =
          piece->expectation == Expectation::poison ? Bits<T>{0} : expected_bits<T, op>(work, *piece, i);
      compare_members<T, Words>(work, *piece, i, bits);
    }
  }
}

}  // namespace tutti::harness::verify

// SPDX-License-Identifier: Apache-2.0
// What a device is asked to do for the verifier: fill inputs, write poison and guards, look at guards, and compare. All
// of it is plain words, one layout for the host and the device. device_text.h is the text that does it.
//
// A comparison is a list of pieces. A piece is a stretch of elements that some outputs should have alike: what they
// should be is computed once and held against all of them. So one pass judges all ranks of a device, and what it leaves
// is a few words for each of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/verify/input_values.h"

namespace tutti::harness::verify {

/// The kinds of an input's values: those of Values (harness/cases/conditions.h), where random ones are asked of an op
/// that rounds them.
enum class ValueKind : std::uint8_t { exact, random, special };

/// Elements of one input, from `first` on, all with the same upper half of the index.
struct FillWork {
  std::byte* at = nullptr;
  std::int64_t elements = 0;
  std::uint32_t first = 0;
  ValueKind kind = ValueKind::exact;
  Stream stream = {};
  const void* table = nullptr;  ///< SpecialTable of the dtype and op, where the values are special
};

/// Bytes that get the poison, from its first byte on.
struct PoisonPart {
  std::byte* at = nullptr;
  std::int64_t bytes = 0;
};
struct PoisonWork {
  const PoisonPart* parts = nullptr;
  std::int32_t count = 0;
  std::uint16_t word = 0;  ///< poison_word
};

/// Part of a guard zone.
struct GuardPart {
  std::byte* at = nullptr;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  ///< of its first byte: what the guard is there depends on it
};
/// Two zones at most: those of one buffer.
struct GuardWork {
  GuardPart parts[2];
  std::int32_t count = 0;
  std::uint64_t* damage = nullptr;  ///< least offset of a byte that is not the guard's; kNone where all are
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
};

/// What the elements of a piece should be.
enum class Expectation : std::uint8_t {
  reduced,  ///< all sources, combined by the op
  copied,   ///< the only source, bit by bit
  poison,   ///< as the output was before
};

struct ComparePiece {
  std::int64_t first_chunk = 0;  ///< in the whole comparison
  std::int64_t elements = 0;
  std::int32_t first_source = 0, sources = 0;
  std::int32_t first_member = 0, members = 0;
  Expectation expectation = Expectation::copied;
  bool is_any_nan_right = false;  ///< where one is expected: any but the poison
};
/// A stretch of one rank's input.
struct CompareSource {
  std::int32_t stream = 0;  ///< which of the comparison's
  std::uint32_t first = 0;  ///< lower half of the index
};
/// A stretch of one rank's output.
struct CompareMember {
  const std::byte* at = nullptr;
  std::int64_t index = 0;   ///< of its first element, in the whole buffer
  std::int32_t record = 0;  ///< of the rank
};
/// What is wrong with one rank's output.
struct CompareRecord {
  std::uint64_t wrong = 0;
  std::uint64_t first_bad = ~std::uint64_t{0};
  std::uint64_t last_bad = 0;
  std::uint64_t poisoned = 0;  ///< wrong elements that still hold the poison, or part of it
};
struct CompareWork {
  static constexpr std::int64_t kChunk = 4096;  ///< elements of a piece that a team takes at a time
  const ComparePiece* pieces = nullptr;
  const CompareSource* sources = nullptr;
  const CompareMember* members = nullptr;
  const Stream* streams = nullptr;
  CompareRecord* records = nullptr;
  const void* table = nullptr;  ///< as of FillWork
  std::int64_t chunks = 0;
  std::uint64_t poison[2] = {};  ///< bits of elements with an even and an odd index
  std::int32_t ranks = 1;        ///< by which avg divides
  ValueKind kind = ValueKind::exact;
};

/// Each 4-byte word of `to` becomes that of `first` and kTriadFactor times that of `second`, modulo 2^32: how fast a
/// device moves bytes that it reads from two places.
struct TriadWork {
  std::byte* to = nullptr;
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;
  std::int64_t bytes = 0;  ///< of each of them, a multiple of 16, at which all three begin
};
inline constexpr std::uint32_t kTriadFactor = 3;

}  // namespace tutti::harness::verify

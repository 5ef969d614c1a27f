// SPDX-License-Identifier: Apache-2.0
// From units to bytes: where each unit of a block begins, in the user's buffer and in the dense mirror in scratch.
//
// A block of n elements in N units: every unit has ceil(n / N) elements rounded up to a cache line. So two ranks never
// share a line of an aligned buffer. The last units take what is left and may be empty. A shorter segment never has a
// longer unit, so a tail fits wherever its full segments fit.
//
// Blocks are equal and equally far apart, or, in a v form, a list of them says the place and the length of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "impl/collective/blocks.h"
#include "impl/schedule/schedule.h"

namespace tutti {

/// Bytes [offset, offset + bytes).
struct Piece {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// A list of pieces without memory of its own as long as it is short, as most are.
class Pieces {
 public:
  Pieces() = default;
  Pieces(std::initializer_list<Piece> list) {
    for (const Piece& piece : list) push_back(piece);
  }

  [[nodiscard]] std::size_t size() const { return many_.empty() ? few_count_ : many_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Piece* begin() { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] Piece* end() { return begin() + size(); }
  [[nodiscard]] const Piece* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] const Piece* end() const { return begin() + size(); }
  [[nodiscard]] const Piece& operator[](std::size_t index) const { return begin()[index]; }
  [[nodiscard]] const Piece& back() const { return end()[-1]; }

  void push_back(const Piece& piece) {
    if (many_.empty() && few_count_ < few_.size()) {
      few_[few_count_++] = piece;
    } else {
      if (many_.empty()) many_.assign(few_.begin(), few_.end());
      many_.push_back(piece);
    }
  }
  /// Makes the last piece longer where `piece` begins at its end; leaves out an empty one.
  void append(const Piece& piece) {
    if (piece.bytes == 0) return;
    if (!empty() && back().offset + back().bytes == piece.offset) {
      end()[-1].bytes += piece.bytes;
    } else {
      push_back(piece);
    }
  }

 private:
  std::array<Piece, 2> few_;
  std::size_t few_count_ = 0;
  std::vector<Piece> many_;  ///< all of them, once they are more than few
};

[[nodiscard]] inline std::int64_t round_up_to_line(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class UnitTable {
 public:
  struct Layout {
    int units_per_block;
    Count segment;  ///< elements of each block in this segment
    Count block;    ///< elements of a whole block: the distance of blocks in the user's buffer
    std::int64_t element_bytes;
  };
  explicit UnitTable(Layout layout) : layout_(layout), unit_elements_(unit_elements(layout.segment)) {}

  /// Bytes from the start of a block to part `part` in [0, units_per_block].
  [[nodiscard]] std::int64_t part_offset(int part) const {
    return std::min(part * unit_elements_, layout_.segment) * layout_.element_bytes;
  }
  [[nodiscard]] std::int64_t largest_unit_bytes() const { return part_offset(1); }
  [[nodiscard]] std::int64_t segment_bytes() const { return layout_.segment * layout_.element_bytes; }
  [[nodiscard]] std::int64_t user_stride() const { return layout_.block * layout_.element_bytes; }
  /// Distance of blocks in a mirror, which holds this segment only.
  [[nodiscard]] std::int64_t mirror_stride() const { return round_up_to_line(segment_bytes()); }

  /// The bytes of `set` in a space of `blocks` blocks, `stride` bytes apart, in the set's order; neighbours are merged
  /// and empty pieces left out.
  [[nodiscard]] Pieces pieces(const UnitSet& set, int blocks, std::int64_t stride) const {
    Pieces result;
    const bool is_dense = stride == segment_bytes();
    for_runs(set, blocks, [&](int first, int last) {
      while (first < last) {
        const int block = first / layout_.units_per_block;
        const int end = is_dense ? last : std::min(last, (block + 1) * layout_.units_per_block);
        const std::int64_t bytes = offset_of(end, segment_bytes()) - offset_of(first, segment_bytes());
        result.append({.offset = offset_of(first, stride), .bytes = bytes});
        first = end;
      }
    });
    return result;
  }

  /// Bytes of all pieces of `set`.
  [[nodiscard]] std::int64_t bytes(const UnitSet& set, int blocks) const {
    std::int64_t sum = 0;
    for_runs(set, blocks,
             [&](int first, int last) { sum += offset_of(last, segment_bytes()) - offset_of(first, segment_bytes()); });
    return sum;
  }

  /// The bytes of `set` in a buffer of these blocks, as above.
  [[nodiscard]] Pieces pieces(const UnitSet& set, std::span<const Block> blocks) const {
    Pieces result;
    for_units(set, static_cast<int>(blocks.size()), [&](int block, int part) {
      const Block& place = blocks[static_cast<std::size_t>(block)];
      const Piece piece = part_of(place.bytes, part);
      result.append({.offset = place.offset + piece.offset, .bytes = piece.bytes});
    });
    return result;
  }
  /// Bytes of all pieces of `set` in `blocks` blocks of which `bytes_of(block)` says the length.
  template <class BytesOf>
  [[nodiscard]] std::int64_t bytes(const UnitSet& set, int blocks, BytesOf bytes_of) const {
    std::int64_t sum = 0;
    for_units(set, blocks, [&](int block, int part) { sum += part_of(bytes_of(block), part).bytes; });
    return sum;
  }

 private:
  /// Elements of all units but the last of a block of `block` elements.
  [[nodiscard]] Count unit_elements(Count block) const {
    const Count per_line = std::max<Count>(1, 64 / layout_.element_bytes);
    const Count even = (block + layout_.units_per_block - 1) / layout_.units_per_block;
    return (even + per_line - 1) / per_line * per_line;
  }
  [[nodiscard]] std::int64_t part_offset(int part, Count block) const {
    return std::min(part * unit_elements(block), block) * layout_.element_bytes;
  }
  /// Where unit `index` begins if blocks are `stride` bytes apart.
  [[nodiscard]] std::int64_t offset_of(int index, std::int64_t stride) const {
    if (layout_.units_per_block == 1) return index * stride;
    return index / layout_.units_per_block * stride + part_offset(index % layout_.units_per_block);
  }
  /// Part `part` of a block of `block_bytes` bytes, from the block's first byte.
  [[nodiscard]] Piece part_of(std::int64_t block_bytes, int part) const {
    if (layout_.units_per_block == 1) return {.offset = 0, .bytes = block_bytes};
    const Count block = block_bytes / layout_.element_bytes;
    const std::int64_t begin = part_offset(part, block);
    return {.offset = begin, .bytes = part_offset(part + 1, block) - begin};
  }
  /// Calls `f(block, part)` for the units of `set` in its order.
  template <class F>
  void for_units(const UnitSet& set, int blocks, F f) const {
    const int total = blocks * layout_.units_per_block;
    for (int j = 0; total > 0 && j < set.repeat; ++j) {
      for (int i = 0; i < set.length; ++i) {
        const int index = (set.start + j * set.stride + i) % total;
        f(index / layout_.units_per_block, index % layout_.units_per_block);
      }
    }
  }
  /// Calls `f(first, last)` for runs of units [first, last) one after the other, in the order of `set`.
  template <class F>
  void for_runs(const UnitSet& set, int blocks, F f) const {
    const int total = blocks * layout_.units_per_block;
    for (int j = 0; total > 0 && j < set.repeat; ++j) {
      int first = (set.start + j * set.stride) % total;
      for (int rest = set.length; rest > 0; first = 0) {
        const int n = std::min(rest, total - first);
        f(first, first + n);
        rest -= n;
      }
    }
  }

  Layout layout_;
  Count unit_elements_;  ///< of all units but a block's last ones, in this segment
};

}  // namespace tutti

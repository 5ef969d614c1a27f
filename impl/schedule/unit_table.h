// SPDX-License-Identifier: Apache-2.0
// From units to bytes: where each unit of a block begins, in the user's buffer and in the dense mirror in scratch.
//
// A block of n elements in N units: every unit has ceil(n / N) elements rounded up to a cache line, so that two ranks
// never share a line of an aligned buffer; the last ones take what is left and may be empty. A shorter segment never
// has a longer unit, so a tail fits wherever its full segments fit.
//
// Blocks are equal and equally far apart, or, in a v form, a list of them says the place and the length of each.
#pragma once

#include <algorithm>
#include <cstdint>
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

[[nodiscard]] inline std::int64_t round_up_to_line(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class UnitTable {
 public:
  struct Layout {
    int units_per_block;
    Count segment;  ///< elements of each block in this segment
    Count block;    ///< elements of a whole block: the distance of blocks in the user's buffer
    std::int64_t element_bytes;
  };
  explicit UnitTable(Layout layout) : layout_(layout) {}

  /// Bytes from the start of a block to part `part` in [0, units_per_block].
  [[nodiscard]] std::int64_t part_offset(int part) const { return part_offset(part, layout_.segment); }
  [[nodiscard]] std::int64_t largest_unit_bytes() const { return part_offset(1); }
  [[nodiscard]] std::int64_t segment_bytes() const { return layout_.segment * layout_.element_bytes; }
  [[nodiscard]] std::int64_t user_stride() const { return layout_.block * layout_.element_bytes; }
  /// Distance of blocks in a mirror, which holds this segment only.
  [[nodiscard]] std::int64_t mirror_stride() const { return round_up_to_line(segment_bytes()); }

  /// The bytes of `set` in a space of `blocks` blocks, `stride` bytes apart, in the set's order; neighbours are merged
  /// and empty pieces left out.
  [[nodiscard]] std::vector<Piece> pieces(const UnitSet& set, int blocks, std::int64_t stride) const {
    std::vector<Piece> result;
    const int total = blocks * layout_.units_per_block;
    if (total == 0) return result;
    for (int j = 0; j < set.repeat; ++j) {
      for (int i = 0; i < set.length; ++i) append(result, unit_piece((set.start + j * set.stride + i) % total, stride));
    }
    return result;
  }

  /// Bytes of all pieces of `set`.
  [[nodiscard]] std::int64_t bytes(const UnitSet& set, int blocks) const {
    const int total = blocks * layout_.units_per_block;
    if (total == 0) return 0;
    std::int64_t sum = 0;
    for (int j = 0; j < set.repeat; ++j) {
      for (int i = 0; i < set.length; ++i) sum += unit_piece((set.start + j * set.stride + i) % total, 0).bytes;
    }
    return sum;
  }

  /// The bytes of `set` in a buffer of these blocks, as above.
  [[nodiscard]] std::vector<Piece> pieces(const UnitSet& set, std::span<const Block> blocks) const {
    std::vector<Piece> result;
    for_units(set, static_cast<int>(blocks.size()), [&](int block, int part) {
      const Block& place = blocks[static_cast<std::size_t>(block)];
      const Piece piece = part_of(place.bytes, part);
      append(result, {.offset = place.offset + piece.offset, .bytes = piece.bytes});
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

  static void append(std::vector<Piece>& pieces, Piece piece) {
    if (piece.bytes == 0) return;
    if (!pieces.empty() && pieces.back().offset + pieces.back().bytes == piece.offset) {
      pieces.back().bytes += piece.bytes;
    } else {
      pieces.push_back(piece);
    }
  }

 private:
  /// Elements of all units but the last of a block of so many.
  [[nodiscard]] Count unit_elements(Count block) const {
    const Count per_line = std::max<Count>(1, 64 / layout_.element_bytes);
    const Count even = (block + layout_.units_per_block - 1) / layout_.units_per_block;
    return (even + per_line - 1) / per_line * per_line;
  }
  [[nodiscard]] std::int64_t part_offset(int part, Count block) const {
    return std::min(part * unit_elements(block), block) * layout_.element_bytes;
  }
  /// Part `part` of a block of so many bytes, from the block's first byte.
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
  [[nodiscard]] Piece unit_piece(int index, std::int64_t stride) const {
    const int block = index / layout_.units_per_block;
    const int part = index % layout_.units_per_block;
    const std::int64_t begin = part_offset(part);
    return {.offset = block * stride + begin, .bytes = part_offset(part + 1) - begin};
  }

  Layout layout_;
};

}  // namespace tutti

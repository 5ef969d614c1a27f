// SPDX-License-Identifier: Apache-2.0
// From units to bytes: where each unit of a block begins, in the user's buffer and in the dense mirror in scratch.
//
// A block of n elements in N units: every unit has ceil(n / N) elements rounded up to a cache line, so that two ranks
// never share a line of an aligned buffer; the last ones take what is left and may be empty. A shorter segment never
// has a longer unit, so a tail fits wherever its full segments fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

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
  [[nodiscard]] std::int64_t part_offset(int part) const {
    return std::min(part * unit_elements(), layout_.segment) * layout_.element_bytes;
  }
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

  static void append(std::vector<Piece>& pieces, Piece piece) {
    if (piece.bytes == 0) return;
    if (!pieces.empty() && pieces.back().offset + pieces.back().bytes == piece.offset) {
      pieces.back().bytes += piece.bytes;
    } else {
      pieces.push_back(piece);
    }
  }

 private:
  [[nodiscard]] Count unit_elements() const {
    const Count per_line = std::max<Count>(1, 64 / layout_.element_bytes);
    const Count even = (layout_.segment + layout_.units_per_block - 1) / layout_.units_per_block;
    return (even + per_line - 1) / per_line * per_line;
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

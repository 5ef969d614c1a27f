// SPDX-License-Identifier: Apache-2.0
// Where the units of a space lie, and the bytes of sets of them one after the other. This is read off the rules that
// schedule.h, bind.h and unit_table.h state, without the code of binding, so that each shows the other's mistakes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "impl/collective/blocks.h"
#include "impl/schedule/schedule.h"

namespace tutti {

[[nodiscard]] inline std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// A user's buffer, a mirror of it, or a schedule's scratch, cut into units.
struct UnitPlaces {
  std::int64_t units = 0;
  int per_block = 1;
  std::int64_t element_bytes = 1;
  std::int64_t begin = 0;        ///< of the first block
  std::int64_t stride = 0;       ///< from one block to the next
  std::int64_t block_bytes = 0;  ///< of each block
  std::int64_t unit_bytes = 0;   ///< of each unit but a block's last ones
  bool is_listed = false;        ///< a v form's: the four above are then unused
  std::span<const Block> blocks = {};
  std::span<const std::int64_t> lengths = {};  ///< instead of `blocks` where only these are known, of a peer

  /// All units of a block but the last ones are equal, whole cache lines, and as short as that allows.
  [[nodiscard]] std::int64_t unit_bytes_of(std::int64_t bytes) const {
    const std::int64_t per_line = std::max<std::int64_t>(1, 64 / element_bytes);
    const std::int64_t elements = (bytes / element_bytes + per_block - 1) / per_block;
    return (elements + per_line - 1) / per_line * per_line * element_bytes;
  }

  [[nodiscard]] Block unit(std::int64_t index) const {
    const std::int64_t block = index / per_block;
    const std::int64_t part = index % per_block;
    if (!is_listed) return part_of(begin + block * stride, block_bytes, unit_bytes, part);
    const auto at = static_cast<std::size_t>(block);
    const Block whole = blocks.empty() ? Block{.offset = 0, .bytes = lengths[at]} : blocks[at];
    return part_of(whole.offset, whole.bytes, unit_bytes_of(whole.bytes), part);
  }

 private:
  [[nodiscard]] static Block part_of(std::int64_t offset, std::int64_t bytes, std::int64_t unit, std::int64_t part) {
    const std::int64_t first = std::min(part * unit, bytes);
    return {.offset = offset + first, .bytes = std::min(first + unit, bytes) - first};
  }
};

/// The bytes of sets of units, from the first to the last. The sets live as long as it does.
class UnitBytes {
 public:
  UnitBytes() = default;
  UnitBytes(const UnitPlaces& places, std::span<const UnitSet> sets) : places_(places), sets_(sets) {}

  /// The next bytes that lie together, at most `most`; 0 bytes at the end.
  [[nodiscard]] Block next(std::int64_t most) {
    while (rest_.bytes == 0) {
      if (!find_unit()) return {};
    }
    const Block found{.offset = rest_.offset, .bytes = std::min(most, rest_.bytes)};
    rest_.offset += found.bytes;
    rest_.bytes -= found.bytes;
    return found;
  }

  /// Whether the next `bytes` bytes are these; goes behind them.
  [[nodiscard]] bool take(std::int64_t offset, std::int64_t bytes) {
    while (bytes > 0) {
      const Block found = next(bytes);
      if (found.bytes == 0 || found.offset != offset) return false;
      offset += found.bytes;
      bytes -= found.bytes;
    }
    return true;
  }

  /// Of what is left.
  [[nodiscard]] std::int64_t total() const {
    std::int64_t sum = 0;
    for (UnitBytes rest = *this;;) {
      const Block found = rest.next(INT64_MAX);
      if (found.bytes == 0) return sum;
      sum += found.bytes;
    }
  }

 private:
  /// Goes to the next unit; false where there is none.
  [[nodiscard]] bool find_unit() {
    for (; set_ < sets_.size() && places_.units > 0; ++set_, repeat_ = 0) {
      const UnitSet& set = sets_[set_];
      for (; repeat_ < set.repeat && set.length > 0; ++repeat_, unit_ = 0) {
        if (unit_ == set.length) continue;
        const std::int64_t index = set.start + static_cast<std::int64_t>(repeat_) * set.stride + unit_++;
        rest_ = places_.unit(index % places_.units);
        return true;
      }
    }
    return false;
  }

  UnitPlaces places_;
  std::span<const UnitSet> sets_;
  std::size_t set_ = 0;
  int repeat_ = 0;
  int unit_ = 0;  ///< of this repeat, the next one
  Block rest_;    ///< of the present unit
};

/// Whether both are the same bytes, where the first ones lie `shift` bytes further on.
[[nodiscard]] inline bool are_same_bytes(UnitBytes one, UnitBytes other, std::int64_t shift) {
  for (;;) {
    const Block found = one.next(INT64_MAX);
    if (found.bytes == 0) return other.next(1).bytes == 0;
    if (!other.take(found.offset + shift, found.bytes)) return false;
  }
}

}  // namespace tutti

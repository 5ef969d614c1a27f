// SPDX-License-Identifier: Apache-2.0
// How a schedule is run, if that is not left to those who bind and run it. It changes times, and no result.
//
//   two_shot+64K+streamed    two_shot, in segments of at most 64 KiB of a block, whose stores go past the caches
//
// What follows an algorithm's name is its tuning. The parts may come in any order; an id has them in the order above.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

/// Stores into the staging memory of private buffers, and into shared buffers.
enum class Stores : std::uint8_t {
  tried,        ///< staging: by trial, again and again (store_choice.h); shared buffers: by the size of the cache
  plain,        ///< through the caches
  streamed,     ///< past them
  single_copy,  ///< private buffers are not staged: peers read and write them where they lie, if they can; else tried
};
[[nodiscard]] std::string_view to_string(Stores stores);

struct Tuning {
  std::int64_t segment_bytes = 0;  ///< of a block, at most; 0: the largest that fits
  Stores stores = Stores::tried;

  bool operator==(const Tuning&) const = default;
};

inline constexpr std::int64_t kLeastSegmentBytes = 64;
inline constexpr std::int64_t kMostSegmentBytes = std::int64_t{1} << 30;
inline constexpr char kTuningMark = '+';  ///< begins each part

/// "+64K+streamed"; empty if nothing is fixed.
[[nodiscard]] std::string to_text(const Tuning& tuning);
/// What to_text writes, its parts in any order. Errors: invalid_argument naming the part, what there may be and the
/// nearest right one.
[[nodiscard]] Result<Tuning> tuning_from(std::string_view text);
/// Bytes of a segment: a whole number, also with K, M or G, from 64 to 1G, or 0. Errors: invalid_argument.
[[nodiscard]] Result<std::int64_t> segment_from(std::string_view text);
/// The nearest or the right name. Errors: invalid_argument naming all.
[[nodiscard]] Result<Stores> stores_from(std::string_view text);

/// The name before its tuning.
[[nodiscard]] constexpr std::string_view without_tuning(std::string_view name) {
  return name.substr(0, name.find(kTuningMark));
}
/// The tuning behind the name, with its mark.
[[nodiscard]] constexpr std::string_view tuning_behind(std::string_view name) {
  return name.substr(without_tuning(name).size());
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Budget says which cells can still begin before `--budget` is over. It learns from one cell how long the next one
// takes at the least.
//
// A cell has a share of the budget. Beyond its share it fills buffers, warms up and verifies. That time does not shrink
// with the share, and it grows with the cell's buffers. Budget foresees it for the next cell of the same kind.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

class Budget {
 public:
  /// `end_ns`: CLOCK_MONOTONIC by which the sweep should be over; 0: no budget.
  explicit Budget(std::int64_t end_ns) : end_ns_(end_ns) {}

  /// A cell of fewer bytes, all ranks' buffers together, takes some tenths of a second at the most. It may begin a
  /// little later than the end, so that the start of the ranks, and a machine that is busy, cost nobody a row.
  static constexpr double kShortBytes = 256 << 20;
  static constexpr std::int64_t kLaterNs = 10'000'000'000;

  /// Whether a cell with `bytes` bytes of buffers may begin now. Errors: unavailable where the budget is over, or less
  /// is left of it than the cell takes at the least.
  [[nodiscard]] Status may_begin(const Cell& cell, double bytes, std::int64_t now_ns) const;
  /// The cell begins, and has `share_ns` of the budget.
  void begin(const Cell& cell, double bytes, std::int64_t share_ns, std::int64_t now_ns);
  /// It has ended, if one had begun.
  void end(std::int64_t now_ns);

 private:
  struct Begun {
    Cell cell;
    double bytes = 0;
    std::int64_t share_ns = 0;
    std::int64_t begin_ns = 0;
    std::int64_t beyond_ns = 0;  ///< its share, once it has ended
    bool has_ended = false;
  };
  std::int64_t end_ns_;
  std::optional<Begun> last_;
};

}  // namespace tutti::harness::measure

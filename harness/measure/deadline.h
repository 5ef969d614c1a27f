// SPDX-License-Identifier: Apache-2.0
// Deadline: the end of a wait for other ranks. The time for which the whole job stood still does not count
// (Board::stood_ns). It passes only once it has been seen for kSureAfter: the ranks of a job that was stopped and
// continued do not go on in one instant, and the process that counts how long they stood may be the last one.
#pragma once

#include <cstdint>

#include "harness/board/board.h"

namespace tutti::harness::measure {

class Deadline {
 public:
  static constexpr std::int64_t kSureAfterNs = 300'000'000;

  Deadline(const Board& board, std::int64_t end_ns) : board_(board) { begin_anew(end_ns); }

  void begin_anew(std::int64_t end_ns) {
    end_ns_ = end_ns;
    stood_before_ns_ = stood_ns();
    seen_ns_ = 0;
  }
  /// Asked now and then while the wait lasts, with readings of one clock.
  [[nodiscard]] bool has_passed(std::int64_t now_ns) {
    if (now_ns < end_ns_ + stood_ns() - stood_before_ns_) return false;
    if (seen_ns_ == 0) seen_ns_ = now_ns;
    return now_ns - seen_ns_ >= kSureAfterNs;
  }

 private:
  [[nodiscard]] std::int64_t stood_ns() const { return board_.stood_ns().load(std::memory_order_relaxed); }

  Board board_;
  std::int64_t end_ns_ = 0;
  std::int64_t stood_before_ns_ = 0;  ///< for how long the job had stood when the wait began
  std::int64_t seen_ns_ = 0;          ///< when it was first seen to have passed; 0: it was not
};

}  // namespace tutti::harness::measure

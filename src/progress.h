// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: what is being measured and how much is left. On a terminal one line that is overwritten;
// elsewhere a line now and then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/cases/case.h"

namespace tutti::program {

/// "42 s", "5 min 03 s".
[[nodiscard]] std::string duration_text(std::int64_t ns);

class Progress {
 public:
  /// `end_ns`: CLOCK_MONOTONIC by which the sweep should be over; 0: no budget.
  explicit Progress(std::int64_t end_ns);
  void begin(const harness::Case& one, std::size_t index, std::size_t of);
  /// `text` with what is left, of which the share `done` in [0, 1] is over; elsewhere than on a terminal for the first
  /// time after a while. May be called as often as one likes.
  void show(std::string_view text, double done);
  /// Before something else is printed.
  void clear();

 private:
  void print(std::string_view text, std::int64_t left_ns);

  bool is_terminal_;
  bool is_shown_ = false;
  std::int64_t start_ns_;
  std::int64_t end_ns_;
  std::int64_t last_ns_ = 0;
};

}  // namespace tutti::program

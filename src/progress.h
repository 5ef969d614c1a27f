// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: cells done, the one that is measured, the time left, and the worst news so far. On a terminal it
// is one line that is overwritten; elsewhere a line a minute.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "harness/record/record.h"

namespace tutti::program {

/// "42 s", "5 min 03 s".
[[nodiscard]] std::string duration_text(std::int64_t ns);

class Progress {
 public:
  /// `end_ns`: CLOCK_MONOTONIC by which the sweep should be over; 0: no budget.
  explicit Progress(std::int64_t end_ns);
  void begin(const harness::Case& one, std::size_t index, std::size_t of);
  /// What a cell gave: wrong, failed and noisy rows are told from now on.
  void add(std::span<const harness::Row> rows);
  /// A stage begins: show() estimates what is left of this one.
  void begin_stage();
  /// `text` with what is left of the stage, of which the share `done` in [0, 1] is over; elsewhere than on a terminal
  /// for the first time after a while. May be called as often as one likes.
  void show(std::string_view text, double done);
  /// Before something else is printed.
  void clear();

 private:
  void print(std::string_view text, std::int64_t left_ns);

  [[nodiscard]] std::string news() const;
  /// The time of a cell; 0 if none is done.
  [[nodiscard]] std::int64_t each_ns() const;
  /// What `cells` cells will take of the budget.
  [[nodiscard]] std::int64_t left_of_budget_ns(std::int64_t cells) const;

  bool is_terminal_;
  int wrong_ = 0;
  int failed_ = 0;
  int noisy_ = 0;
  bool is_shown_ = false;
  std::int64_t start_ns_;
  std::int64_t stage_ns_;
  std::int64_t end_ns_;
  std::int64_t last_ns_ = 0;
  std::vector<std::int64_t> begun_ns_;  ///< of each cell
};

}  // namespace tutti::program

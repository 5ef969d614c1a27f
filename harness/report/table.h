// SPDX-License-Identifier: Apache-2.0
// The table that people read while a sweep runs: a block per piece of work with its heading, one line per cell as the
// cell finishes. Two backends stand side by side, with the ratio of their times, where there is room. Otherwise, and
// with more rows in a cell (several algorithms, three backends), they stand below each other. Text only: the caller
// prints it.
//
//   # all_reduce float sum, P=2 processes over shm, out of place, private buffers, isolated
//   # measured with cache cold, skew 50 us (times are from the late rank's entry on)        (where that is asked for)
//
// Columns:
// - size [bytes] and count [elements]: as in nccl-tests
// - time: median [us]
// - ci: half-width of the median's 95 % interval [% of the median], with ~ where it is noisy; ' between both where the
//   time is near the floor
// - algbw, busbw [1e9 bytes/s]
// - limit: the share of the machine's limit that was reached, with ! where somebody was faster
// - ratio: our time / their time, where the launch has one reference
// - `-` stands for "not measured"
//
// Of a contention (record column `groups`) a line has the times of one group alone and together, and its slowdown.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/expand.h"
#include "harness/record/record.h"

namespace tutti::harness::report {

/// Our time / their time, where the two can be compared.
using RatioOf = std::function<std::optional<double>(const Row& ours, const Row& theirs)>;
/// That of two results that are right, of one launch.
[[nodiscard]] std::optional<double> ratio_within_a_launch(const Row& ours, const Row& theirs);

/// The room that a table has.
struct TableLayout {
  std::optional<std::size_t> width = {};  ///< in columns of text; empty: as wide as it is
  bool names_starter = false;             ///< blocks are of several starters
  bool has_settings = false;              ///< a system has (cases/settings.h)
  std::size_t longest_backend = 0;        ///< of the names that will come; 0: unknown, and a long one moves its line
  std::size_t longest_algorithm = 0;      ///< the same
};

class Table {
 public:
  /// With `shows_accuracy` a line below each row says how exact and reproducible its results were, where that is known.
  explicit Table(RatioOf ratio = ratio_within_a_launch, bool shows_accuracy = false)
      : ratio_(std::move(ratio)), shows_accuracy_(shows_accuracy) {}

  /// Called before the first cell. Where the width is not enough for all columns, those go that others tell too: the
  /// count, the bandwidths, the share of the limit, then the algorithm. Where a cell has several rows of one backend
  /// the backend goes in its place: a reference then has its name there. At last goes the ratio.
  void lay_out(const TableLayout& layout) { layout_ = layout; }

  /// The lines of one finished cell (all its rows, at least one), with a block's heading where a new one begins. Where
  /// overlap, or the time of each rank, was measured, a line says it.
  /// Whatever is not ok says why on a line of its own, each reason once per block.
  [[nodiscard]] std::string cell(std::span<const Row> rows);

  /// What was verified, how the ratios came out, to each reference and to the best one of each cell, and what was left
  /// out. A call without a byte (fewer bytes asked for
  /// than an element has) shows its ratio, but the mean is of those that do what the collective is for. Nor is it of
  /// those with a ci above 100 %.
  [[nodiscard]] std::string footer(std::span<const LeftOut> left_out) const;

  /// The lines of `text` within the width: broken between words.
  [[nodiscard]] std::string fitted(std::string_view text) const;

  [[nodiscard]] std::int64_t rows_with(Verdict verdict) const;

 private:
  /// Ratios of ours to one reference: how many, how many above 1, and the sum of their logarithms.
  struct Ratios {
    std::int64_t cells = 0;
    std::int64_t slower = 0;
    std::int64_t unknown = 0;  ///< of a time whose interval is wider than twice the time: in no mean
    double log_sum = 0;

    void add(double ratio);
    [[nodiscard]] std::string line(std::string_view of_whom) const;
  };

  /// As cell, for the rows of a contention.
  [[nodiscard]] std::string contention(std::span<const Row> rows);
  [[nodiscard]] std::string reasons(std::span<const Row> rows);
  void count(std::span<const Row> rows);

  RatioOf ratio_;
  TableLayout layout_;
  bool shows_accuracy_;
  std::string heading_;                          ///< of the block that is open
  std::string conditions_;                       ///< of it, a line; see unusual.h
  std::set<std::string> told_;                   ///< reasons given in it
  std::map<std::string, std::string> starters_;  ///< by cell: the first that ran it
  std::int64_t cells_ = 0;
  std::int64_t noisy_ = 0;  ///< rows with that mark
  std::int64_t near_floor_ = 0;
  std::int64_t limit_too_low_ = 0;
  std::int64_t late_starts_ = 0;
  std::map<std::string, std::int64_t> late_ranks_;  ///< rows with that mark, by the rank that came last
  std::int64_t fewer_iterations_ = 0;
  std::int64_t from_formula_ = 0;
  std::int64_t flat_on_hosts_ = 0;
  std::map<std::string, std::set<std::string>> backends_by_memory_;  ///< of cells that have several kinds
  std::vector<std::pair<double, std::string>> alike_;                ///< autocorrelation and case, where it is high
  std::int64_t disturbed_ = 0;
  std::string disturbances_;  ///< of all rows together
  std::map<Verdict, std::int64_t> verdicts_;
  std::map<std::string, Ratios> ratios_;  ///< by reference
  std::set<std::string> references_;      ///< of these ratios, without twins
  /// By cell and own algorithm: the largest ratio, which is that to the best reference.
  std::map<std::string, double> worst_;
  std::vector<std::pair<std::string, std::int64_t>> skipped_;  ///< reason, rows
};

}  // namespace tutti::harness::report

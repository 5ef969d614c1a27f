// SPDX-License-Identifier: Apache-2.0
// Several launches of one sweep. The launch is the unit of replication: what differs from one start of the ranks to the
// next stays as it is within one. Examples are where memory lies and which ranks share a cache. A cell's time is the
// median of its launches' medians. An interval is that of the launches, which needs at least six. A ratio is the median
// of the ratios within each launch. Launches of another starter are another population: they are never joined.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/record.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::record {

/// What the cases of one cell have in common: the id without its second part, backend and algorithm.
[[nodiscard]] std::string cell_of_case(std::string_view case_id);

/// Whether a ratio of the two is told: ours are compared with references, and every backend with its twin.
[[nodiscard]] bool are_compared(const Row& row, const Row& other);

class Launches {
 public:
  /// `cells`: what cell_of_case says of each, in the order in which they are to be told.
  explicit Launches(std::vector<std::string> cells) : order_(std::move(cells)) {}

  /// The rows of one cell of one launch.
  void add(std::span<const Row> rows);

  /// One row per case and starter, as far as there are rows: of cells that differ in their size alone, starter by
  /// starter. The verdict is that of what was measured; a reason says of how many launches.
  [[nodiscard]] std::vector<std::vector<Row>> cells() const;
  /// Of the times of two cases of one cell under one starter, in each launch that has both right.
  [[nodiscard]] Summary ratios(const Row& ours, const Row& theirs) const;
  /// Their median.
  [[nodiscard]] std::optional<double> ratio(const Row& ours, const Row& theirs) const;
  /// How far the launches lie apart, how sure each is of itself, and how sure the ratios are: a line for each cell, of
  /// many cells for the five whose launches lie furthest apart.
  /// With a twin beside its backend (case.h) also in how many cells the interval of their ratio contains 1.
  [[nodiscard]] std::string spread() const;

 private:
  /// A case in the launches of one starter: they are no launches of the case under another one.
  struct Key {
    std::string case_id;
    std::string starter;
    auto operator<=>(const Key&) const = default;
  };
  [[nodiscard]] static Key key_of(const Row& row) { return {row.case_id, row.starter}; }
  /// Of one cell under one starter, in the order of their first row.
  using Cases = std::vector<Key>;
  [[nodiscard]] std::vector<Cases> cases_by_starter() const;  ///< as `cells`

  [[nodiscard]] const std::vector<Row>& launches_of(const Row& row) const;
  [[nodiscard]] static double share_between(const std::vector<Row>& launches);
  [[nodiscard]] std::string spread_of_case(const std::vector<Row>& launches) const;
  [[nodiscard]] Row joined(const std::vector<Row>& launches) const;

  std::vector<std::string> order_;
  std::vector<std::string> starters_;                          ///< in the order of their first row
  std::map<std::string, std::map<std::string, Cases>> cases_;  ///< by cell and starter
  std::map<Key, std::vector<Row>> rows_;
};

}  // namespace tutti::harness::record

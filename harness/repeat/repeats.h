// SPDX-License-Identifier: Apache-2.0
// Repeats: the results of the same calls on the same input, from several calls, launches and systems, bit by bit. A
// system is a backend with its algorithm.
//
// Must be equal: all results of one system for one cell, whatever the call and the launch. A schedule fixes the order
// of its reductions, so tutti promises that for each of its algorithms. MPI recommends it of every library for the
// same call on the same number of ranks (MPI 4.1, section 6.9.1), and this instrument asks for it. Must be equal too:
// results of two systems if nothing is rounded.
// May differ: float sums, products and means of two systems, which add in orders of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/repeat/result_message.h"
#include "impl/types/dtype.h"

namespace tutti::harness::repeat {

/// The first place in which two results differ.
struct Differing {
  std::int64_t element = 0;
  int bit = 0;                ///< the lowest that differs, from 0
  std::uint64_t mine = 0;     ///< bits of the element
  std::uint64_t other = 0;    ///< and in the other result
  std::int64_t elements = 0;  ///< that differ
  bool operator==(const Differing&) const = default;
};
/// Empty: they are the same bits. Where one is shorter its end is the first place, and its bits there are 0.
[[nodiscard]] std::optional<Differing> first_difference(std::span<const std::byte> mine,
                                                        std::span<const std::byte> other, Dtype dtype);

/// A difference, with the call that has it.
struct Difference {
  int launch = 1;
  int call = 0;
  int rank = 0;
  Differing place;
};

/// What was found of one system in one cell.
struct OfSystem {
  std::string name;  ///< `tutti.ring`, or `openmpi`
  std::string case_id;
  std::set<int> launches;
  int calls = 0;                         ///< in each launch, at most
  std::int64_t results = 0;              ///< that were compared with its first ones
  std::int64_t differ = 0;               ///< of these
  std::optional<Difference> first = {};  ///< from its own first result; it must be equal
  std::string other = {};                ///< the system that it is compared with; empty: it is the first one
  std::optional<Difference> from_other = {};
};
struct OfCell {
  std::string cell;  ///< id without backend and algorithm
  Dtype dtype = Dtype::f32;
  bool may_differ = false;  ///< results of two systems
  std::vector<OfSystem> systems;
};

class Repeats {
 public:
  /// `order`: the cells as they are to be told (cell_of_case); others come after them.
  explicit Repeats(std::vector<std::string> order = {}) : order_(std::move(order)) {}

  /// Errors: invalid_argument for a case that is none.
  Status add(CallResult result);
  /// In their order; of each the systems in the order of their first results.
  [[nodiscard]] std::vector<OfCell> cells() const;
  /// Bytes of the results that are kept.
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  struct Kept {
    OfSystem found;
    std::map<int, std::vector<std::byte>> first;  ///< by rank
  };
  struct Cell {
    OfCell found;
    std::vector<Kept> systems;
  };

  std::vector<std::string> order_;
  std::vector<Cell> cells_;
  std::size_t kept_bytes_ = 0;
};

/// Results of calls that must be equal and are not.
[[nodiscard]] std::int64_t count_wrong(const std::vector<OfCell>& cells);

/// What is printed of a cell: a line that names it, then a line for each system, or one for all if nothing differs.
[[nodiscard]] std::string text_of(const OfCell& cell);
/// The whole of it as JSON. `command`: as it was typed.
[[nodiscard]] std::string repeats_json(const std::vector<OfCell>& cells, const std::string& command,
                                       std::uint64_t seed);

}  // namespace tutti::harness::repeat

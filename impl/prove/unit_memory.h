// SPDX-License-Identifier: Apache-2.0
// What the buffers of all ranks hold, in units. Memory goes with what is
// written: the user's buffers of a rank are kept from the first store into them
// on. Before, an input holds what it is, and an output nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "impl/prove/rank_arcs.h"
#include "impl/prove/steps.h"

namespace tutti::steps {

class UnitMemory {
 public:
  UnitMemory(const Schedule& schedule, const Form& form);

  [[nodiscard]] int units_of(int rank, Space space) const {
    return space == Space::input    ? input_blocks(schedule_.problem, rank) * per_block_
           : space == Space::output ? output_blocks(schedule_.problem, rank) * per_block_
                                    : schedule_.shape.scratch_units;
  }
  /// Requires: 0 <= unit < units_of(rank, space), here and below.
  [[nodiscard]] Sum read(int rank, Space space, int unit) const;
  void write(int rank, Space space, int unit, const Sum& value);
  /// The sum of the same unit over ranks that all have the space; none where it
  /// is not known as a whole: the ranks are then read one by one.
  [[nodiscard]] std::optional<Sum> sum_over(RankArc ranks, Space space, int unit);

 private:
  [[nodiscard]] std::size_t begin_of(int rank, Space space) const {
    return form_.is_in_place ? static_cast<std::size_t>(begin_in_place(schedule_.problem, per_block_, rank, space)) : 0;
  }
  [[nodiscard]] int units_of_user(int rank) const;
  /// The user's buffers of `rank`, for a store.
  std::vector<Sum>& user(int rank);

  const Schedule& schedule_;
  Form form_;
  int ranks_;
  int per_block_;
  std::vector<std::vector<Sum>> users_;  ///< by rank: the output, in place both;
                                         ///< empty before the first store
  std::vector<int> stored_;              ///< the ranks whose buffers are not empty, rising
  std::vector<Sum> scratch_;             ///< by rank and unit
  /// Of units of scratch that were summed over ranks.
  struct Sums {
    explicit Sums(int ranks) : sums(ranks), finals(ranks), unwritten(ranks), others(ranks) {}
    void change(int rank, const Sum& value, int by);

    RankSums<std::uint64_t> sums;
    RankSums<int> finals;
    RankSums<int> unwritten;  ///< ranks where nothing was written
    RankSums<int> others;     ///< ranks where something else was than what comes of
                              ///< their own input
  };
  std::unordered_map<int, Sums> of_scratch_;
};

/// Bytes that the values and the accesses take which are kept of the buffers of
/// all ranks at most.
[[nodiscard]] std::int64_t bytes_of_memory(const Schedule& schedule);

}  // namespace tutti::steps

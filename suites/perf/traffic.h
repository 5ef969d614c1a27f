// SPDX-License-Identifier: Apache-2.0
// What alltoallv_perf sends from each rank to each: a share that grows with the distance, or what the matrix of a file
// says, as the NCCL_TESTS_ALLTOALLV_* variables have it. Every chunk is a multiple of 16 bytes, rounded down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cases/counts.h"
#include "impl/types/dtype.h"
#include "impl/types/status.h"

namespace tutti::perf {

class Traffic {
 public:
  /// Of `ranks` ranks; a matrix may have more, and these are its first.
  /// Errors: invalid_argument naming the variable, or the file and its line, the value and what is right.
  [[nodiscard]] static Result<Traffic> from_environment(int ranks);

  [[nodiscard]] bool has_matrix() const { return !matrix_.empty(); }
  /// The most bytes that a rank of the matrix sends or receives; 0 without one.
  [[nodiscard]] std::int64_t most_of_matrix() const;
  /// One line, the same in all processes that move the same.
  [[nodiscard]] std::string name() const;

  /// Bytes between two ranks where each rank sends `total` to all, before rounding; a matrix knows its own.
  [[nodiscard]] std::int64_t bytes(int from, int to, std::int64_t total) const;
  /// For a case. In place, where a rank must send to each what it gets from it, a pair's counts are their mean.
  [[nodiscard]] harness::Counts counts(Dtype dtype, std::int64_t total, bool is_in_place) const;
  /// With _PRINT_SUMMARY: a line on the whole and one on each rank of an operation that takes so long.
  [[nodiscard]] std::vector<std::string> summary(std::int64_t total, double time_us) const;

 private:
  Status read_matrix(const std::string& file);
  [[nodiscard]] std::int64_t sent(int rank, std::int64_t total) const;
  [[nodiscard]] std::int64_t received(int rank, std::int64_t total) const;

  int ranks_ = 0;
  double spread_ = 1;  ///< 0: the same to every rank; 1: in proportion to the distance, nothing to itself
  double scale_ = 1;
  std::vector<std::int64_t> matrix_;  ///< bytes of [from][to]
  bool has_summary_ = false;
};

}  // namespace tutti::perf

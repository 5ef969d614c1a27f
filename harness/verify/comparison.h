// SPDX-License-Identifier: Apache-2.0
// What a check counts while it goes through a buffer: elements compared, wrong ones, the first of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/verify/check.h"
#include "harness/verify/diagnose.h"

namespace tutti::harness::verify {

/// Counts differing elements and keeps the first ones, chunk after chunk.
class Comparison {
 public:
  explicit Comparison(const Operation& operation)
      : dtype_(operation.dtype),
        is_any_nan_right_(operation.is_any_nan_right()),
        poison_{poison_bits(dtype_, operation.salt, 0), poison_bits(dtype_, operation.salt, 1)} {}

  /// Compares elements [first, ...) of the buffer, bit for bit: for a NaN, where the operation says so, any other will
  /// do but the poison.
  void compare(Count first, std::span<const std::byte> expected, std::span<const std::byte> actual);
  /// The same for what is to be as it was: every bit.
  void compare_bits(Count first, std::span<const std::byte> expected, std::span<const std::byte> actual) {
    is_any_nan_right_ = false;
    compare(first, expected, actual);
  }
  /// For code that compares by other means: add_checked counts elements, add_wrong takes a wrong one and returns
  /// whether it is the first.
  void add_checked(Count elements) { result_.checked += elements; }
  bool add_wrong(const WrongElement& element);

  [[nodiscard]] CheckResult& result() { return result_; }
  /// For what a device has counted: `result` and the number of poisoned elements are its, of which this comparison has
  /// seen the first ones.
  void take_counts(const CheckResult& result, Count poisoned);
  /// Whether enough wrong elements were seen for a diagnosis.
  [[nodiscard]] bool has_seen_enough() const { return wrong_.size() >= WrongOutput::kMost; }

  /// The result, where an element is wrong with the likely cause.
  [[nodiscard]] CheckResult judged(const Operation& operation, int rank, const FetchOutput& output);
  [[nodiscard]] CheckResult judged(const Operation& operation, const RankBuffer& output) {
    return judged(operation, output.rank, [&output] { return output.bytes; });
  }

 private:
  [[nodiscard]] bool is_right(const WrongElement& element) const;
  [[nodiscard]] bool is_poison(const WrongElement& element) const {
    return element.actual == poison_[element.index % 2];
  }
  /// Whether what is wrong of the element is the poison: of one that was written in part, not all of its bytes.
  [[nodiscard]] bool holds_poison(const WrongElement& element) const;

  Dtype dtype_;
  bool is_any_nan_right_;
  std::uint64_t poison_[2];  // of elements with an even and an odd index
  CheckResult result_;
  std::vector<WrongElement> wrong_;
  Count poisoned_ = 0;
};

}  // namespace tutti::harness::verify

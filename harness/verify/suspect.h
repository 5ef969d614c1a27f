// SPDX-License-Identifier: Apache-2.0
// The wrong elements of one output block, and what else could have been there. There is one hypothesis per function,
// each a sentence where it predicts every sample, or empty.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "harness/verify/diagnose.h"

namespace tutti::harness::verify {

/// Slots and generations may hold data of so many operations back. Channels between few ranks are deep (domain.h).
[[nodiscard]] constexpr int oldest_of(int ranks) { return ranks <= 16 ? 64 : 8; }

template <class T>
T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

class Suspect {
 public:
  Suspect(const Operation& operation, int rank, const WrongOutput& wrong_output);

  [[nodiscard]] int block() const { return block_; }
  /// One wrong element among many.
  [[nodiscard]] bool is_lonely() const;

  [[nodiscard]] std::string stale() const;
  [[nodiscard]] std::string contribution() const;  ///< contributions.cc
  [[nodiscard]] std::string contribution_roundly() const;
  [[nodiscard]] std::string other_prefix() const;  ///< contributions.cc
  [[nodiscard]] std::string undivided() const;
  [[nodiscard]] std::string one_input() const;
  [[nodiscard]] std::string other_count() const;
  [[nodiscard]] std::string other_root() const;
  [[nodiscard]] std::string other_block() const;
  [[nodiscard]] std::string shifted() const;
  [[nodiscard]] std::string swapped_parts() const;
  [[nodiscard]] std::string constant() const;
  [[nodiscard]] std::string narrow() const;
  [[nodiscard]] std::string flipped() const;             ///< in the result
  [[nodiscard]] std::string flipped_on_the_way() const;  ///< contributions.cc
  [[nodiscard]] std::string lost() const;

 private:
  /// Whether `predict(element of the block)` is what every sample holds.
  template <class Predict>
  [[nodiscard]] bool is_explained_by(Predict predict) const {
    return std::all_of(samples_.begin(), samples_.end(),
                       [&](const WrongElement& sample) { return predict(sample.index) == sample.actual; });
  }
  /// Whether there are enough samples: one cause among many that explains them all is then no coincidence.
  [[nodiscard]] bool is_telling() const;
  /// How many operations back a hypothesis may look.
  [[nodiscard]] int oldest() const;
  /// The input block that is reduced to the suspect one.
  [[nodiscard]] int reduced_block() const { return origin().block; }
  [[nodiscard]] Origin origin() const { return origin_of(operation_.problem, rank_, block_); }
  [[nodiscard]] std::uint64_t expected(const Operation& operation, int block, Count element) const;
  [[nodiscard]] std::uint64_t input(const Operation& operation, int rank, Count element) const;
  [[nodiscard]] bool holds_input(const Origin& origin) const;
  [[nodiscard]] bool is_shifted_by(Count shift) const;
  /// Whether the output holds at `index` what belongs to element `element` of block `block`; false where nobody knows.
  [[nodiscard]] bool output_holds(Count index, int block, Count element) const;
  /// Where element `i` of an input block of `rank` lies in its buffer.
  [[nodiscard]] Count element_of(int rank, int block, Count i) const {
    return operation_.input_place(rank, block).first + i;
  }

  /// The inputs of the samples, and what becomes of them where ranks contribute otherwise.
  template <class T>
  class Columns;
  template <class T>
  [[nodiscard]] std::string contribution_of(bool roundly) const;
  template <class T>
  [[nodiscard]] std::string other_prefix_of() const;
  template <class T>
  [[nodiscard]] std::string flipped_on_the_way_of() const;

  const Operation& operation_;
  int rank_;
  const WrongOutput& wrong_output_;
  int block_ = 0;
  Place place_;                        // of the block
  std::vector<WrongElement> samples_;  // indices within the block
};

}  // namespace tutti::harness::verify

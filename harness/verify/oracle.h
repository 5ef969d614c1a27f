// SPDX-License-Identifier: Apache-2.0
// The oracle: what an operation must leave in an output. A straight loop over all inputs in rank order, computed in
// chunks from the inputs' definition; it shares no arithmetic with the collectives that it judges. Which inputs make up
// which output is read from impl/collective.
//
// Of random values that are rounded it gives what rank order and its own roundings come to. What is allowed is within a
// bound of the exact result (rounding.h).
//
// avg: the exact sum, divided by P in float (double: in double) and rounded once to the dtype; integers: the wrapped
// sum, divided and truncated towards zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/cases/counts.h"
#include "harness/verify/inputs.h"
#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::harness::verify {

/// One operation on inputs of this module.
struct Operation {
  Problem problem;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  Count count = 0;  ///< elements per block; unused in a v form
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;
  Values values = Values::exact;
  std::shared_ptr<const CellBlocks> blocks = nullptr;  ///< of a v form

  /// Where a block of the input (output) of `rank` lies in its buffer.
  [[nodiscard]] Place input_place(int rank, int block) const {
    return blocks != nullptr ? blocks->input(rank, block) : Place{.first = block * count, .count = count};
  }
  [[nodiscard]] Place output_place(int rank, int block) const {
    return blocks != nullptr ? blocks->output(rank, block) : Place{.first = block * count, .count = count};
  }
  /// Elements of the whole buffer, gaps included.
  [[nodiscard]] Count input_elements(int rank) const {
    return blocks != nullptr ? blocks->input_elements(rank) : input_blocks(problem, rank) * count;
  }
  [[nodiscard]] Count output_elements(int rank) const {
    return blocks != nullptr ? blocks->output_elements(rank) : output_blocks(problem, rank) * count;
  }
  /// In place: the input's first element less the output's; 0 where the rank has only one of the two.
  [[nodiscard]] Count shift_in_place(int rank) const;
  /// Whether the result of more than one order of reduction is right, and any within a bound.
  [[nodiscard]] bool is_rounded() const { return harness::is_rounded(values, dtype, op); }
  /// Whether any NaN is right where one is expected: not where every bit is kept.
  [[nodiscard]] bool is_any_nan_right() const { return values == Values::special && op != Op::none && !is_copy(); }
  /// Whether results are inputs, bit for bit: also of a reduction on one rank that needs no arithmetic.
  [[nodiscard]] bool is_copy() const { return is_copy_of(problem.ranks); }
  /// Whether a result to which `ranks` ranks contribute is one rank's input.
  [[nodiscard]] bool is_copy_of(int ranks) const {
    return op == Op::none || (ranks == 1 && op != Op::avg && op != Op::premul_sum);
  }
};

/// The input of `rank`; element indices count from the start of its input buffer.
[[nodiscard]] InputSpec input_of(const Operation& operation, int rank);

/// Elements from `first` of output block `block` of `rank`.
struct BlockPart {
  int rank = 0;
  int block = 0;
  Count first = 0;
};

/// Writes the expected elements [part.first, part.first + bytes.size() / size_of(dtype)) into `bytes`.
/// Cost: P inputs where the op reduces, else one.
void fill_expected(std::span<std::byte> bytes, const Operation& operation, const BlockPart& part);

/// fill_expected for many ranks of one process. A block reduced for all of them is the same, and is computed once while
/// it is at most 4 MiB. One per thread.
class Oracle {
 public:
  static constexpr Count kChunk = 4096;  ///< elements

  explicit Oracle(Operation operation) : operation_(std::move(operation)) {}

  [[nodiscard]] const Operation& operation() const { return operation_; }
  /// The expected elements of [part.first, part.first + elements), valid until the next call.
  /// Requires: part.first is a multiple of kChunk, elements <= kChunk, within the block.
  [[nodiscard]] std::span<const std::byte> expect(const BlockPart& part, Count elements);

 private:
  std::span<const std::byte> remembered(const BlockPart& part, const Origin& origin, Count elements);

  Operation operation_;
  std::vector<std::byte> chunk_;
  std::vector<std::byte> block_;      // of the block that is remembered
  std::vector<bool> is_known_;        // per chunk of block_
  std::optional<Origin> remembered_;  // what was reduced
};

}  // namespace tutti::harness::verify

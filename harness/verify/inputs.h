// SPDX-License-Identifier: Apache-2.0
// Inputs of a verified operation: element i of rank r is a pure function of (seed, salt, r, i), so that any rank can
// compute any other rank's input, and the salt of a refill makes the data of the refill before it wrong.
//
// What is reduced by sum or avg is exact in every order and grouping, so that results are compared bit for bit:
//   float, bfloat16  non-zero integers; ranks 2k and 2k+1 have opposite signs in every element (which of them is
//                    positive is random), and magnitudes are at most the power of two with which half of the ranks
//                    reach 2^24 (float) or 2^8 (bfloat16): no subset of the ranks sums to more than the significand
//                    holds.
//   int32            every value but 0; sums wrap.
// Each contribution changes each element, so one element is enough to see a missing or doubled rank. For max, and where
// nothing is reduced, values are arbitrary and finite; for max the ranks' values of one element are distinct (as far as
// the dtype's bits go).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti::harness {

struct InputSpec {
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int ranks = 1;
  int rank = 0;
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;  ///< number of the refill
};

/// Whether inputs exist for which the result does not depend on the order of the reduction.
/// Errors: invalid_argument with the numbers (bfloat16 sum and avg beyond 512 ranks).
[[nodiscard]] Status supports_inputs(Dtype dtype, Op op, int ranks);

/// Fills `bytes` with elements [first, first + bytes.size() / size_of(dtype)) of the input. Any alignment.
/// Requires: supports_inputs; a whole number of elements.
void fill_input(std::span<std::byte> bytes, const InputSpec& spec, Count first = 0);

}  // namespace tutti::harness

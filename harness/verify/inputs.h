// SPDX-License-Identifier: Apache-2.0
// Inputs of a verified operation. Element i of rank r is a pure function of (seed, salt, r, i): so any rank can compute
// any other rank's input. The salt of a refill makes the data of the refill before it wrong.
//
// What is reduced is exact in every order and grouping, on any number of ranks, so that results are compared bit for
// bit. Every rank contributes to every element, unless it says otherwise here.
//
// - sum and avg of floats: non-zero integers. No subset of the ranks adds up to more than is exact. Those of f8e4m3 and
//   f8e5m2 are times 1, 2, 4 or 8, the same on all ranks. The signs are random as far as that allows: the more ranks,
//   the more of them are pairs of opposite signs, and the smaller the magnitudes. More than 15 values of f8e5m2, 31 of
//   f8e4m3, 511 of bfloat16 or 4095 of half cannot be added exactly. (One value more could, in pairs whose sum is
//   always 0.) Of more ranks, only this number have a value in an element and the others have 0. Those are other ranks
//   in each element, and again others in the next refill. In passes_of refills with consecutive salts every rank has
//   contributed to every element.
// - sum and avg of integers: every value but 0; sums wrap. avg of 8 bits is mostly 0 where P is in the hundreds.
// - premul_sum: every input times its rank's factor (factor_of, a power of two) is as for sum.
// - prod of floats: powers of two other than 1, with a product that is a normal number for every subset of the ranks.
//   In each element one rank has a mantissa as well. Where there are not enough exponents for all ranks (from f8e4m3:
//   12, half and f8e5m2: 28, bfloat16 and float: 252), the others have -1, in each element other ranks.
// - prod of integers: odd numbers other than 1, so that products do not end at 0.
// - band, bor, bxor: random bits; of band as many are 0, of bor as many are 1, as one in P, so that single ranks show.
// - min and max: finite values, distinct among as many ranks as the bits allow (8-bit floats: 64, 8-bit integers: 256).
//
// So one element is enough to see a missing or doubled rank of sum, prod and avg (unless quotients round to the same),
// a few of the others. Where nothing is reduced, values are arbitrary and finite. Each refill has other values.
//
// Two other kinds of values, of floats only:
// - random: sum, avg and premul_sum add values of either sign from 1/16 to below 1. prod multiplies values from 1/2 to
//   below 2, of 8 ranks in each element, of 8-bit floats of 4 ranks; the others have 1 or -1. What comes of them is
//   rounded (rounding.h).
// - special: see special_values.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/cases/conditions.h"
#include "harness/verify/factor.h"
#include "impl/collective/collective.h"
#include "impl/reduce/scale.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti::harness::verify {

struct InputSpec {
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int ranks = 1;
  int rank = 0;
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;  ///< number of the refill
  Values values = Values::exact;
};

/// What premul_sum multiplies `rank`'s input by (factor_of), as an element of `dtype`.
[[nodiscard]] Factor factor_element(Dtype dtype, int rank);

/// Errors: invalid_argument where the op does not exist for the dtype, or there are no ranks.
[[nodiscard]] Status supports_inputs(Dtype dtype, Op op, int ranks);

/// Whether the results of these inputs are rounded: random floats that are added or multiplied.
[[nodiscard]] bool is_rounded(Values values, Dtype dtype, Op op);
/// Ranks that contribute to each element of exact values: all, but where their sum would not be exact.
[[nodiscard]] int contributors_of(Dtype dtype, Op op, int ranks);
/// The number of refills with consecutive salts in which every rank contributes to every element at least once.
[[nodiscard]] int passes_of(Dtype dtype, Op op, int ranks);

/// Fills `bytes` with elements [first, first + bytes.size() / size_of(dtype)) of the input. Any alignment.
/// Requires: supports_inputs; a whole number of elements.
void fill_input(std::span<std::byte> bytes, const InputSpec& spec, Count first = 0);

}  // namespace tutti::harness::verify

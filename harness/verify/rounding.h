// SPDX-License-Identifier: Apache-2.0
// Results that are rounded: what random values come to exactly, how far from that a result may be, and how far it is.
//
// The reference adds (multiplies) in double-double, 106 bits, by error-free transformations: more than a long double
// has on any machine, and the same on all.
//
// The bound. A sum of P values takes P-1 additions, whatever their order and grouping, and no value passes through
// more than P-1 of them. With the model fl(a + b) = (a + b)(1 + d), |d| <= u, the error is at most
//
//   ((1 + u)^k - 1) * sum |x|,   k = P-1   (<= gamma_k = k u / (1 - k u) where k u < 1:
//                                           N. J. Higham, Accuracy and Stability of Numerical Algorithms, 4.2 and 3.1)
//
// avg divides by P: k = P, and the whole over P. A product of values, n of which are not 1 or -1: k = n-1, times the
// product. u = 2^-24 of float and 2^-53 of double. Of 8 and 16 bits each addition is one in float and one rounding on a
// store, at most: 1 + u = (1 + 2^-24)(1 + 2^-b). There b = 11 of half, 8 of bfloat16, 4 of f8e4m3, 3 of f8e5m2. For avg
// half of the least subnormal is added. What premul_sum adds are its products as rounded. The reference's own error, P
// * 2^-100 of the magnitudes, is part of the bound. P is the number of ranks that contribute: of a scan those up to the
// rank.
//
// A bound for every order says little where few bits meet many ranks. It is above the sum of all magnitudes from 7
// ranks on of f8e5m2, from 13 of f8e4m3, and from 180 of bfloat16. Exact values are then what shows an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "harness/verify/check.h"
#include "harness/verify/oracle.h"

namespace tutti::harness::verify {

/// What one element should be. The exact value is high + low.
struct Reference {
  double high = 0;
  double low = 0;
  double bound = 0;  ///< of the error that any order of correctly rounded operations may have
};
/// Of the elements [part.first, ...). Requires: operation.is_rounded(), a reduced block.
void fill_reference(std::span<Reference> references, const Operation& operation, const BlockPart& part);

/// How far results are from the exact ones, in units in the last place of the exact ones. Such a unit is the distance
/// from one number of the type to the next, at that magnitude.
struct Accuracy {
  Count elements = 0;
  double max_ulp = 0;
  double sum_ulp = 0;

  void add(const Accuracy& other);
  [[nodiscard]] double mean_ulp() const { return elements == 0 ? 0 : sum_ulp / static_cast<double>(elements); }
};

/// As verify_output, within the bound. `accuracy`, where not null, gets the errors; `most` elements of each block at
/// most are looked at, in chunks spread evenly over it.
[[nodiscard]] CheckResult verify_rounded(const Operation& operation, const RankBuffer& output,
                                         Accuracy* accuracy = nullptr, Count most = std::numeric_limits<Count>::max());

}  // namespace tutti::harness::verify

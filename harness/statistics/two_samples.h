// SPDX-License-Identifier: Apache-2.0
// Statistics of two lists of measurements that nothing pairs, such as the launches of two runs. shift_between says how
// far one lies above the other and how sure that is. It assumes only that both are distributed alike but for the shift.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/floors.h"

namespace tutti::harness::statistics {

/// P(U <= most), where U counts the pairs of one value of each list in which the first is larger, and both lists are of
/// one distribution (Mann & Whitney 1947, Ann. Math. Stat. 18:50). Counted exactly while neither list has more than 50
/// values, beyond that its normal approximation.
[[nodiscard]] double mann_whitney_probability(std::int64_t first, std::int64_t second, std::int64_t most);

struct Shift {
  double middle = 0;                  ///< the median of all differences of a value of each list
  std::optional<double> low = {};     ///< the narrowest interval of such differences that covers what was asked for;
  std::optional<double> high = {};    ///< empty where so few values cannot: below 5 of each for 99 %
  std::optional<double> covers = {};  ///< with this probability, exactly
};
/// mine - other: Hodges & Lehmann's estimate (1963, Ann. Math. Stat. 34:598) and the interval that inverts the test
/// (Hollander & Wolfe, Nonparametric Statistical Methods, section 4.3). Values are finite, at least one of each
/// (asserted).
[[nodiscard]] Shift shift_between(std::span<const double> mine, std::span<const double> other, double confidence);

}  // namespace tutti::harness::statistics

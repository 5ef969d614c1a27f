// SPDX-License-Identifier: Apache-2.0
// Statistics of pairs of measurements, each pair as the logarithm of its ratio. middle_of_pairs says where the middle
// of these differences lies and how sure that is. It assumes no more of their distribution than that it is symmetric.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/floors.h"

namespace tutti::harness::statistics {

/// P(T <= most), where T is the sum of those ranks 1..n that belong to positive pairs, each as likely as not (Wilcoxon
/// 1945, Biometrics 1:80). Counted exactly up to 100 pairs, beyond that its normal approximation.
[[nodiscard]] double signed_rank_probability(std::int64_t pairs, std::int64_t most);

struct MiddleOfPairs {
  std::int64_t pairs = 0;
  double middle = 0;                  ///< the median of all means of two differences, or of one with itself
  std::optional<double> low = {};     ///< the narrowest interval of such means that covers what was asked for;
  std::optional<double> high = {};    ///< empty where so few pairs cannot: below 6 for 95 %
  std::optional<double> covers = {};  ///< with this probability, exactly
};
/// Hodges & Lehmann's estimate (1963, Ann. Math. Stat. 34:598) and the interval that inverts the signed-rank test
/// (Hollander & Wolfe, Nonparametric Statistical Methods, section 3.3). Differences are finite (asserted), at least
/// one.
[[nodiscard]] MiddleOfPairs middle_of_pairs(std::span<const double> differences, double confidence = 0.95);

}  // namespace tutti::harness::statistics

// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/statistics/paired.h"
#include "harness/statistics/statistics.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

// Fractions of a limit, from a simulation of clusters with one fault and with none.
constexpr double kFarFromSlow = 0.6;
constexpr double kFarFromFast = 0.5;
constexpr double kWellAgain = 0.5;
constexpr double kEasyConfidence = 0.95;  // a pass needs no more

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "PASS";
    case Verdict::fail:
      return "FAIL";
    case Verdict::suspect:
      return "SUSPECT";
    case Verdict::undecided:
      return "UNDECIDED";
    case Verdict::untested:
      return "UNTESTED";
    case Verdict::error:
      return "ERROR";
    case Verdict::skipped:
      return "SKIPPED";
  }
  return "?";
}

std::string_view to_string(Part part) {
  switch (part) {
    case Part::none:
      return "none";
    case Part::node:
      return "node";
    case Part::nic:
      return "nic";
    case Part::nic_out:
      return "nic-out";
    case Part::nic_in:
      return "nic-in";
  }
  return "?";
}

double margin_of(const Limits& limits) { return std::log1p(-limits.margin); }

Judgement judge(const std::vector<std::vector<double>>& visits, const Limits& limits, double level_error) {
  TUTTI_ASSERT(limits.margin > 0 && limits.margin < 1 && limits.too_fast > 0, "margin {}, too fast {}", limits.margin,
               limits.too_fast);
  const double slow = margin_of(limits);
  const double fast = std::log1p(limits.too_fast);
  std::vector<double> all, medians;
  for (const std::vector<double>& visit : visits) {
    if (visit.empty()) continue;
    all.insert(all.end(), visit.begin(), visit.end());
    medians.push_back(median_of(visit));
  }
  if (medians.empty()) return {};

  MiddleOfPairs strict = middle_of_pairs(all, limits.confidence);
  constexpr double kQuantile = 3.29;  // of a normal distribution, for 99.9 %
  const auto widened = [&](double bound) { return std::hypot(bound - strict.middle, kQuantile * level_error); };
  if (strict.low) strict.low = strict.middle - widened(*strict.low);
  if (strict.high) strict.high = strict.middle + widened(*strict.high);
  Judgement result{.verdict = Verdict::undecided, .middle = strict.middle, .low = strict.low, .high = strict.high};
  const auto [least, most] = std::ranges::minmax(medians);
  const auto beyond = std::ranges::count_if(medians, [slow](double one) { return one < slow; });
  if (medians.size() >= 2 && beyond >= 2 && 4 * beyond >= 3 * std::ssize(medians) && strict.high &&
      *strict.high < slow) {
    result.verdict = Verdict::fail;
    return result;
  }
  if (medians.size() >= 2 && least > fast && strict.low && *strict.low > fast) {
    result.verdict = Verdict::fail;
    result.is_fast = true;
    return result;
  }
  const bool is_far = least > slow * kFarFromSlow && strict.middle < fast * kFarFromFast;
  const MiddleOfPairs easy = middle_of_pairs(all, kEasyConfidence);
  const bool is_between = easy.low && *easy.low > slow && *easy.high < fast;
  if ((medians.size() == 1 && is_far) || is_between) {
    result.verdict = Verdict::pass;
  } else if (beyond >= 2 && most > slow * kWellAgain) {
    result.verdict = Verdict::suspect;
  }
  return result;
}

Part slow_part(const Directions& node, const Limits& limits) {
  const auto fails = [](const Judgement& one) { return one.verdict == Verdict::fail && !one.is_fast; };
  const double joins = margin_of(limits) * kIsBothWays;
  const bool out = fails(node.out), in = fails(node.in);
  if (!out && !in) return Part::none;
  const bool are_both = (out || node.out.middle < joins) && (in || node.in.middle < joins);
  if (are_both) return node.is_slow_alone ? Part::node : Part::nic;
  return out ? Part::nic_out : Part::nic_in;
}

}  // namespace tutti::harness::accept

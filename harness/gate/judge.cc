// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "harness/statistics/paired.h"
#include "harness/statistics/statistics.h"
#include "harness/text/counted.h"
#include "impl/types/names.h"

namespace tutti::harness::gate {
namespace {

constexpr std::int64_t kLargeBytes = std::int64_t{1} << 20;
constexpr double kFloorOfLarge = 0.05;
constexpr double kFloorOfSmall = 0.10;
constexpr double kFloorUs = 0.5;

/// An interval against the floors.
struct Interval : LogInterval {
  double floor = 0;        ///< see gate_floor
  double limit_above = 0;  ///< the floor as a logarithm
  double limit_below = 0;  ///< where as much is gained

  [[nodiscard]] Opinion opinion() const {
    if (low > limit_above) return Opinion::slower;
    if (high < limit_below) return Opinion::faster;
    if (low < limit_below || high > limit_above) return Opinion::undecided;
    return floor > kMostFloor ? Opinion::too_short : Opinion::same;
  }
};

double share_floor(std::int64_t bytes) { return bytes >= kLargeBytes ? kFloorOfLarge : kFloorOfSmall; }

/// The logarithm of the ratio below which the share and the time gained are more than the floors.
double limit_below(std::int64_t bytes, double other_us, double operations) {
  const double floor_us = kFloorUs / operations;
  if (other_us <= floor_us) return -std::numeric_limits<double>::infinity();
  return std::min(-std::log1p(share_floor(bytes)), std::log1p(-floor_us / other_us));
}

/// In a sample: the median, since a launch that was disturbed has fewer.
double operations_of(const Evidence& evidence) {
  return evidence.operations.empty() ? 1 : std::max(1.0, *summarise(evidence.operations).median);
}

/// What a recorded side of few launches does not tell: how far its launches lie apart. Taken from this side's.
double spread_of_launches(const Evidence& evidence) {
  const int recorded = evidence.recorded_launches;
  if (recorded == 0 || recorded >= kLeastSamplesForInterval || evidence.this_us.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(evidence.this_us);
  return std::log(most / least) / 2;
}

Interval against_floors(const Evidence& evidence, const LogInterval& interval) {
  const double other_us = *summarise(evidence.other_us).median;
  const double operations = operations_of(evidence);
  const double floor = gate_floor(evidence.bytes, other_us, operations);
  return {interval, floor, std::log1p(floor), limit_below(evidence.bytes, other_us, operations)};
}

std::optional<Interval> interval_of(const Evidence& evidence, std::span<const double> log_ratios) {
  if (log_ratios.empty()) return std::nullopt;
  const MiddleOfPairs middle = middle_of_pairs(log_ratios, kGateConfidence);
  if (!middle.low) return std::nullopt;
  const double spread = spread_of_launches(evidence);
  return against_floors(evidence, {.middle = middle.middle,
                                   .low = *middle.low - evidence.doubt_above - spread,
                                   .high = *middle.high + evidence.doubt_below + spread});
}

/// What holds whatever the times say; empty where only they decide.
std::optional<Judgement> verdict_without_times(const Evidence& evidence) {
  if (!evidence.wrong.empty()) return Judgement{.opinion = Opinion::wrong, .reason = evidence.wrong};
  if (!evidence.counters.empty()) return Judgement{.opinion = Opinion::slower, .reason = evidence.counters};
  if (!evidence.missing.empty()) return Judgement{.opinion = Opinion::missing, .reason = evidence.missing};
  if (!evidence.invalid.empty()) return Judgement{.opinion = Opinion::invalid, .reason = evidence.invalid};
  return std::nullopt;
}

/// What is told and not judged stands behind every reason: it may be what explains it.
Judgement with_note(Judgement judgement, const Evidence& evidence) {
  if (evidence.note.empty()) return judgement;
  judgement.reason += judgement.reason.empty() ? evidence.note : "; " + evidence.note;
  return judgement;
}

Judgement with_numbers(Judgement judgement, const Interval& interval) {
  judgement.ratio = std::exp(interval.middle);
  judgement.low = std::exp(interval.low);
  judgement.high = std::exp(interval.high);
  judgement.floor = interval.floor;
  return judgement;
}

/// Too few pairs for an interval.
Judgement without_interval(const Evidence& evidence) {
  const std::size_t paired = 2 * evidence.log_ratios.size();
  const std::size_t alone = evidence.waiting_mine.size() + evidence.waiting_other.size();
  if (alone > paired) {
    return {
        .opinion = Opinion::invalid,
        .reason = fmt::format("{} of {} launches saw a state of the machine, by the round trip of a cache line, that "
                              "no launch of the other side did",
                              alone, alone + paired)};
  }
  return {.opinion = Opinion::undecided,
          .reason = fmt::format("{} of {}, too few for an interval of {:.0f} %{}{}",
                                counted(evidence.log_ratios.size(), "pair"), evidence.pairs_of, 100 * kGateConfidence,
                                evidence.untimed.empty() ? "" : "; ", evidence.untimed)};
}

Judgement judge_against_floors(const Evidence& evidence, const Interval& interval, std::string_view of) {
  Judgement judgement{.opinion = interval.opinion(), .reason = {}};
  if (judgement.opinion == Opinion::undecided) {
    judgement.reason = fmt::format("the interval of {} crosses the floor of {:.1f} %", of, 100 * interval.floor);
  } else if (judgement.opinion == Opinion::too_short) {
    judgement.reason =
        fmt::format("the floor, {:.3f} us, is more than {:.0f} % of the time; {}", kFloorUs / operations_of(evidence),
                    100 * kMostFloor, "it is less of more bytes, or in the cadence streaming");
  }
  return with_numbers(std::move(judgement), interval);
}

/// What the pairs before the confirmation say, without the note.
Judgement judge_pairs(const Evidence& evidence) {
  const auto interval = interval_of(evidence, evidence.log_ratios);
  if (auto certain = verdict_without_times(evidence)) {
    return interval ? with_numbers(*std::move(certain), *interval) : *std::move(certain);
  }
  if (!interval) return without_interval(evidence);
  return judge_against_floors(evidence, *interval, fmt::format("{} pairs", evidence.log_ratios.size()));
}

/// What is slower by its pairs, once those of the confirmation are asked.
Judgement judge_confirmation(Judgement judgement, const Evidence& evidence) {
  const auto again = interval_of(evidence, evidence.confirmation);
  if (again && again->opinion() == Opinion::slower) {
    judgement.reason = fmt::format("confirmed by {} pairs of fresh {}, ratio {:.3f}", evidence.confirmation.size(),
                                   evidence.pairs_of, std::exp(again->middle));
    return judgement;
  }
  judgement.opinion = Opinion::undecided;
  judgement.reason = again ? fmt::format("slower in {} pairs, and not in {} more: ratio {:.3f} ({:.3f} to {:.3f})",
                                         evidence.log_ratios.size(), evidence.confirmation.size(),
                                         std::exp(again->middle), std::exp(again->low), std::exp(again->high))
                           : fmt::format("slower in {} pairs, not confirmed: {} more", evidence.log_ratios.size(),
                                         evidence.confirmation.size());
  return judgement;
}

}  // namespace

std::string_view to_string(Opinion opinion) {
  switch (opinion) {
    case Opinion::same:
      return "same";
    case Opinion::faster:
      return "faster";
    case Opinion::too_short:
      return "too short";
    case Opinion::undecided:
      return "undecided";
    case Opinion::invalid:
      return "invalid";
    case Opinion::missing:
      return "missing";
    case Opinion::slower:
      return "slower";
    case Opinion::wrong:
      return "wrong";
  }
  return "unknown";
}

std::span<const Opinion> all_opinions() {
  static constexpr std::array kOpinions{Opinion::same,    Opinion::faster,  Opinion::too_short, Opinion::undecided,
                                        Opinion::invalid, Opinion::missing, Opinion::slower,    Opinion::wrong};
  return kOpinions;
}

double gate_floor(std::int64_t bytes, double other_us, double operations) {
  return std::max(share_floor(bytes), kFloorUs / operations / other_us);
}

Judgement judge_interval(const Evidence& evidence, const LogInterval& interval, std::string_view of) {
  return judge_against_floors(evidence, against_floors(evidence, interval), of);
}

Judgement judge(const Evidence& evidence) { return with_note(judge_pairs(evidence), evidence); }

bool is_open(const Evidence& evidence) {
  if (verdict_without_times(evidence)) return false;
  const auto interval = interval_of(evidence, evidence.log_ratios);
  return !interval || interval->opinion() == Opinion::undecided;
}

std::optional<Opinion> confirmed_opinion(const Evidence& evidence) {
  const auto interval = interval_of(evidence, evidence.confirmation);
  return interval ? std::optional(interval->opinion()) : std::nullopt;
}

Judgement judge_finally(const Evidence& evidence) {
  Judgement judgement = judge_pairs(evidence);
  const bool is_to_confirm = judgement.opinion == Opinion::slower && evidence.counters.empty();
  return with_note(is_to_confirm ? judge_confirmation(std::move(judgement), evidence) : std::move(judgement), evidence);
}

Judgement judge_unfinished(const Evidence& evidence, const std::string& why) {
  Judgement judgement = judge_pairs(evidence);
  if (!verdict_without_times(evidence)) {
    judgement.opinion = Opinion::undecided;
    judgement.reason = why;
  }
  return with_note(std::move(judgement), evidence);
}

std::string disturbance_text(const Evidence& evidence) {
  if (evidence.disturbed_rows == 0) return {};
  return fmt::format("{} of {} {} disturbed: {}", evidence.disturbed_rows, counted(evidence.rows, "row"),
                     evidence.rows == 1 ? "was" : "were", shown(evidence.disturbed));
}

}  // namespace tutti::harness::gate

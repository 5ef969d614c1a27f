// SPDX-License-Identifier: Apache-2.0
#include "src/accept_outcomes.h"

#include <cmath>
#include <optional>
#include <string>

namespace tutti::program {

namespace accept = harness::accept;

bool is_skipped(const harness::Row& row) { return row.verdict == harness::Verdict::skipped; }

accept::Outcome outcome_of(const harness::Row& row, const accept::Test& test) {
  if (row.verdict == harness::Verdict::wrong) return {.ending = accept::Ending::wrong, .detail = row.reason};
  if (row.verdict != harness::Verdict::ok || !row.time_median || *row.time_median <= 0) {
    return {.ending = accept::Ending::failed, .detail = row.reason.empty() ? "nothing was measured" : row.reason};
  }
  constexpr double kPerSecond = 1e6;  // a time is in us
  constexpr double kGigabytes = 1e9;
  double speed = row.busbw ? *row.busbw * kGigabytes : static_cast<double>(row.bytes) * kPerSecond / *row.time_median;
  if (test.measure == accept::Measure::latency) speed = 2 * kPerSecond / *row.time_median;
  accept::Outcome outcome{.log_speed = std::log(speed)};
  if (row.time_ci_low && row.time_ci_high && *row.time_ci_low > 0) {  // a long time is a low speed
    outcome.low = outcome.log_speed - std::log(*row.time_ci_high / *row.time_median);
    outcome.high = outcome.log_speed - std::log(*row.time_ci_low / *row.time_median);
  }
  return outcome;
}

accept::Outcome outcome_of(const Result<harness::SoakResult>& soak, double seconds) {
  if (!soak.is_ok()) return {.ending = accept::Ending::failed, .detail = std::string(soak.status().message())};
  const harness::SoakResult& result = soak.value();
  if (result.wrong > 0) return {.ending = accept::Ending::wrong, .detail = result.first_wrong};
  const auto verified = static_cast<double>(result.verified + result.barriers);
  if (verified == 0) return {.ending = accept::Ending::failed, .detail = "nothing was verified"};
  return {.log_speed = std::log(verified / seconds)};
}

accept::Outcome outcome_of(const Result<harness::TrainRow>& trained) {
  if (!trained.is_ok()) return {.ending = accept::Ending::failed, .detail = std::string(trained.status().message())};
  const harness::TrainRow& row = trained.value();
  if (!row.skipped.empty()) return {.ending = accept::Ending::failed, .detail = row.skipped};
  if (row.wrong > 0) return {.ending = accept::Ending::wrong, .detail = row.reason};
  if (row.step_us <= 0) return {.ending = accept::Ending::failed, .detail = "no step was timed"};
  constexpr double kPerSecond = 1e6;
  return {.log_speed = std::log(kPerSecond / row.step_us)};
}

void take_mean(accept::Outcome& outcome, const harness::Row& row, double mean_us) {
  if (outcome.ending != accept::Ending::measured || mean_us <= 0) return;
  outcome.log_speed += std::log(*row.time_median / mean_us);
  outcome.low = outcome.high = std::nullopt;  // they are of the median
}

void add_members(accept::Outcome& outcome, const std::vector<double>& rank_us, std::int64_t bytes) {
  constexpr double kPerSecond = 1e6;
  for (const double time : rank_us) {
    if (time <= 0) return outcome.members.clear();
    outcome.members.push_back(std::log(static_cast<double>(bytes) * kPerSecond / time));
  }
}

accept::Ending ending_of(const harness::Outcome& outcome) {
  switch (outcome.how) {
    case harness::Ending::interrupted:
      return accept::Ending::interrupted;
    case harness::Ending::hung:
    case harness::Ending::stopped:
    case harness::Ending::never_connected:
      return accept::Ending::hung;
    default:
      return accept::Ending::failed;
  }
}

}  // namespace tutti::program

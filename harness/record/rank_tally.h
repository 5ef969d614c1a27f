// SPDX-License-Identifier: Apache-2.0
// What the samples of a run show of each rank: how often it came last and what that cost the others, how often it ended
// last, and what it took beside the other ranks. The ranks send it per case; their launcher adds it up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/samples.h"
#include "harness/statistics/log_histogram.h"
#include "impl/embed/stragglers.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

/// Times in microseconds.
struct RankTally {
  embed::Arrivals came;             ///< of all samples
  std::vector<LogHistogram> waits;  ///< by rank, of samples to which it came last: what another rank waited for it
  embed::Arrivals ended;            ///< of samples whose ranks all do the same: the rank that ended last "came" last
  std::vector<double> own_us = {};  ///< of these, by rank: what it took from its own arrival to its own end
  double middle_us = 0;             ///< of these: the median of what the ranks took, added up

  /// Counts samples that lay in the state of their row; late ones count too. Ranks that are within `apart_us` came, or
  /// ended, together. `are_alike`: all ranks of the collective do the same.
  void add(std::span<const Sample> samples, double apart_us, bool are_alike);
  /// Counts operations back to back, which ranks began together: a rank comes to the next one when its last one has
  /// ended. `each_us[rank][operation]` is what an operation took there.
  void add_stream(std::span<const std::vector<double>> each_us, double apart_us, bool are_alike);
  /// Errors: invalid_argument if it has another number of ranks.
  Status add(const RankTally& other);

  [[nodiscard]] std::string json() const;
  /// Errors: invalid_argument naming what is wrong in it.
  [[nodiscard]] static Result<RankTally> from_json(std::string_view text);

 private:
  struct Times {
    std::span<const double> came_us;  ///< by rank
    std::span<const double> took_us;  ///< by rank, from then on
    double all_us = 0;
    double apart_us = 0;
  };
  void count(const Times& times, bool are_alike);
};

/// A rank, as the table and the files have it.
struct RankResult {
  int rank = 0;
  std::string host = {};
  std::int64_t samples = 0;
  std::int64_t came_last = 0;
  double waited_us = 0;     ///< by another rank, all samples together
  double waited_share = 0;  ///< of the time of all samples
  double median_us = 0;     ///< what another rank waited, of the samples to which it came last; 0: there are none
  double p95_us = 0;        ///< of these, what 95 % do not exceed
  std::int64_t ended_samples = 0;
  std::int64_t ended_last = 0;
  double own_ratio = 0;  ///< what it took / the median of all ranks; 0: no sample tells
  bool is_late = false;  ///< a straggler by its arrivals
  bool is_slow = false;  ///< a straggler by its ends
};
/// A rank is slow if it ends last too often, and the others have ended before half of the time: the shape of an
/// algorithm alone makes a rank end a third later than the mean of the others at most.
inline constexpr double kSlowShare = 0.5;
/// Worst first: stragglers, then by what others waited. `hosts` by rank; may be empty.
[[nodiscard]] std::vector<RankResult> rank_results(const RankTally& tally, std::span<const std::string> hosts);

}  // namespace tutti::harness::record

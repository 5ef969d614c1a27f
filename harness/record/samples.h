// SPDX-License-Identifier: Apache-2.0
// Every timed sample of every case, as CSV: what the rows sum up. No sample is left out, but some do not count, and say
// so. A rank came late to them, or their block does not count: it was repeated because the machine changed its state,
// or lay in another state than the cell's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/text/file.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

/// One sample on all ranks. Durations are of one operation, where a sample is a loop of several: the loop's, divided by
/// their number.
struct Sample {
  double global_us =
      0;  ///< from the earliest arrival to the latest end: what the row's times are made of, but with --skew
  double last_arrival_us = 0;  ///< from the latest arrival to the latest end; below 0 where ranks end before it
  double skew_us = 0;          ///< from the earliest arrival to the latest, not divided
  int arrived_last = 0;        ///< rank
  int finished_last = 0;
  int operations = 1;                        ///< in it: what durations were divided by; a file does not have it
  std::optional<double> stream_us = {};      ///< of the slowest rank by its stream's clock; empty without streams
  std::vector<double> rank_us = {};          ///< from its own arrival to its own end, by rank
  std::vector<double> rank_arrived_us = {};  ///< from the earliest arrival to its own, by rank, not divided
  std::optional<double> late_us = {};  ///< from the announced instant to the latest arrival, without what --skew asks
                                       ///< for; empty where no instant was announced
  bool is_valid = true;                ///< no rank came late to it
  int block = 0;                       ///< the samples of a block were taken one after the other
  bool is_of_state = true;             ///< its block counts: it lay in the machine's state that the row is of
};

[[nodiscard]] std::string samples_header();
/// Whose samples they are.
struct SampledLaunch {
  std::string case_id = {};
  std::int64_t launch = 1;
  std::string starter = {};  ///< as a row's; empty: a file of an earlier build does not say
};
/// One line per sample, each with its end; `rank_us` and `rank_arrived_us` are one field each, their numbers separated
/// by spaces.
[[nodiscard]] std::string samples_lines(const SampledLaunch& of, std::span<const Sample> samples);

/// The samples of a case in one launch.
struct SampledCase : SampledLaunch {
  std::vector<Sample> samples = {};
};
/// In the order in which they stand there. Errors: invalid_argument naming the line and the column.
[[nodiscard]] Result<std::vector<SampledCase>> samples_from_csv(std::string_view text);
/// Whether a CSV's first line is that of samples.
[[nodiscard]] bool are_samples(std::string_view text);

class SamplesFile {
 public:
  /// Creates or replaces the file, or takes stdout where it is `-`, and writes the header: called before anything is
  /// measured. Errors: invalid_argument naming the path and the reason.
  [[nodiscard]] static Result<SamplesFile> open(std::string path);
  /// Appends what samples_lines gave and hands it to the operating system. Errors: invalid_argument naming the path and
  /// the reason; the file then ends with the case before.
  Status write(std::string_view lines) { return file_.append(lines); }

 private:
  explicit SamplesFile(LineFile file) : file_(std::move(file)) {}

  LineFile file_;
};

}  // namespace tutti::harness::record

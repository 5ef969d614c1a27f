// SPDX-License-Identifier: Apache-2.0
// What trainings came to, as people and programs read it: a table, CSV, JSON, and one page with the curves of the loss.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/train/train.h"

namespace tutti::harness::train {

/// What the rows of one job have in common.
struct TrainJob {
  int ranks = 1;
  std::string ranks_as;
  std::string transport;
  std::string buffers;
  std::string images;  ///< where they are from: "drawn from seed 1", or a folder
  std::int64_t learned = 0;
  std::int64_t batch = 0;  ///< of all ranks together
  std::int64_t epochs = 0;
  std::int64_t bucket_bytes = 0;

  bool operator==(const TrainJob&) const = default;
};

/// A row and its job.
struct TrainResult {
  TrainJob job;
  TrainRow row;
};

/// What a record says beside its rows.
struct TrainRecord {
  std::string machine_json;
  std::string command;
  std::string started;  ///< as utc_now
  std::string version;
  std::uint64_t seed = 1;
  std::vector<TrainResult> results;
  std::string diagnosis = {};  ///< of a job that ended early
};

/// `ok`, `wrong` or `skipped`.
[[nodiscard]] std::string_view verdict_of(const TrainRow& row);
/// Lines above a job's rows; each begins with '#'.
[[nodiscard]] std::string heading_of(const TrainJob& job);
[[nodiscard]] std::string line_of(const TrainRow& row);
/// Lines below the rows of a job: the loss by epoch, and what is wrong.
[[nodiscard]] std::string ending_of(const std::vector<TrainRow>& rows);

[[nodiscard]] std::string csv_head();
[[nodiscard]] std::string csv_line(const TrainResult& result);
[[nodiscard]] std::string json_of(const TrainRecord& record);
/// Needs no other file.
[[nodiscard]] std::string page_of(const TrainRecord& record);

}  // namespace tutti::harness::train

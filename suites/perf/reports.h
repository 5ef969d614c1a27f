// SPDX-License-Identifier: Apache-2.0
// Where rank 0 writes: the table on stdout (stderr where a file is `-`), tutti's rows to --csv and --json, nccl-tests'
// JSON to -J, rccl-tests' results to -x.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/record/csv.h"
#include "harness/record/rank_tally.h"
#include "harness/record/row_stamp.h"
#include "harness/report/json.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "suites/perf/rccl_results.h"
#include "suites/perf/split.h"
#include "suites/perf/walk.h"

namespace tutti::perf {

struct RunFacts {
  std::string command;
  std::string version;
  std::string backend;
  std::string split;  ///< the variable and its value; empty: none was set
  std::vector<Device> devices;
  std::vector<int> group_sizes;
  bool has_rows = true;
  int nccl_version = 0;  ///< 22809 is 2.28.9; 0: it is not measured
};

class Reports {
 public:
  /// Creates the files that were asked for. Errors: invalid_argument naming the file.
  [[nodiscard]] static Result<Reports> open(const Program& program, const Settings& settings, RunFacts facts);

  /// Everything before the first row; `reduced_to` where -e was cut. Errors: invalid_argument: it cannot be printed.
  Status print_opening(std::optional<std::int64_t> reduced_to);
  /// A file that cannot be written stops nothing: conclude() says it. Errors: as print_opening.
  Status add(const Report& report);
  /// How long it took to begin, for --json.
  void add_init(const WalkResult& result);
  /// The last word if it does not come to a trailer.
  void give_up();
  /// What the operations showed of the ranks: for --json, and for the trailer if one is a straggler.
  void add_ranks(const harness::RankTally& tally);
  /// The trailer. Errors: invalid_argument: an output that could not be written.
  Status conclude(const Trailer& trailer, const MemoryUse& memory);

 private:
  Reports(const Program& program, const Settings& settings, RunFacts facts)
      : program_(program), settings_(settings), facts_(std::move(facts)) {}
  [[nodiscard]] nlohmann::ordered_json compatible_head() const;
  void write_compatible_row(const TableRow& one);
  Status write_compatible();
  void note(Status status);

  const Program& program_;
  const Settings& settings_;
  RunFacts facts_;
  std::string stragglers_;  ///< lines
  harness::RowStamp stamp_{harness::describe_machine()};
  harness::Console console_;
  Status failure_;  ///< the first file that could not be written
  std::optional<harness::CsvFile> csv_;
  std::optional<harness::JsonFile> json_;
  std::optional<RcclResults> rccl_;
  std::optional<harness::OutputFile> compatible_file_;
  nlohmann::ordered_json compatible_;
};

}  // namespace tutti::perf

// SPDX-License-Identifier: Apache-2.0
// What rccl-tests writes with -Z json or -Z csv: a record for each row and placement. There a rank is a process.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "harness/text/output_file.h"
#include "impl/types/status.h"
#include "suites/perf/programs.h"
#include "suites/perf/split.h"
#include "suites/perf/walk.h"

namespace tutti::perf {

class RcclResults {
 public:
  /// Creates the file that -x names. Errors: invalid_argument naming it.
  [[nodiscard]] static Result<RcclResults> open(const Program& program, const Settings& settings,
                                                std::span<const Device> devices);
  /// Both placements of a row; the file is complete at any time, if it can be replaced. Errors: as open.
  [[nodiscard]] Status add(const TableRow& row);
  [[nodiscard]] Status write();

 private:
  RcclResults(harness::OutputFile file, bool is_csv) : file_(std::move(file)), is_csv_(is_csv) {}
  void add(const TableRow& row, const Measurement& one, bool is_in_place, int cycle);

  harness::OutputFile file_;
  bool is_csv_;
  std::string name_;
  std::size_t nodes_ = 1, processes_ = 1, ranks_of_process_ = 1;
  std::map<std::tuple<std::int64_t, std::string, std::string, int>, int> cycles_;  ///< rows of one kind
  nlohmann::ordered_json records_ = nlohmann::ordered_json::array();
};

}  // namespace tutti::perf

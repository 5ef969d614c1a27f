// SPDX-License-Identifier: Apache-2.0
// Results that were kept in files: rows of a run, a check or a gate, samples, and what a gate or a comparison found.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/record.h"
#include "harness/record/samples.h"
#include "impl/types/status.h"

namespace tutti::harness::report {

struct ResultFile {
  enum class Kind { rows, samples, judged };

  std::string file;  ///< as the user named it
  Kind kind = Kind::rows;
  std::vector<Row> rows = {};
  std::vector<SampledCase> samples = {};
  std::string document = "{}";  ///< the JSON without its rows, as text; of a CSV it is empty
};

/// `file`: the name that messages have. Errors: invalid_argument naming the file and what is wrong in it: it is empty,
/// damaged, no result of tutti, or of a schema that this build does not know.
[[nodiscard]] Result<ResultFile> result_from_text(const std::string& file, std::string_view text);
/// Errors: as result_from_text; invalid_argument where the file cannot be read.
[[nodiscard]] Result<ResultFile> read_result(const std::string& path);

/// The fingerprint of the machine of the first row that names one, on several hosts of the most ranks; empty: none
/// does.
[[nodiscard]] std::string machine_of(const ResultFile& result);
/// When it began, as UTC text that sorts by time: of a CSV, when its first row was finished. Empty where it is not
/// said.
[[nodiscard]] std::string start_of(const ResultFile& result);
/// That all rows are of one machine, and those on several hosts of the same ones. Errors: invalid_argument naming two
/// files, or two cases, and their machines.
[[nodiscard]] Status check_one_machine(std::span<const ResultFile> results);

}  // namespace tutti::harness::report

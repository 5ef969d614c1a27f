// SPDX-License-Identifier: Apache-2.0
// Rows as CSV (RFC 4180, lines end with LF). There is one line per row, flushed at once, so that whatever ends a run
// leaves every finished row in the file.
#pragma once

#include <string>
#include <utility>

#include "harness/record/record.h"
#include "harness/text/file.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

/// `text` as one field, in quotes where it needs them.
[[nodiscard]] std::string csv_field(const std::string& text);
/// The names of the columns, without a line end.
[[nodiscard]] std::string csv_header();
/// The fields of `row` in the order of the columns, without a line end.
[[nodiscard]] std::string csv_row(const Row& row);

class CsvFile {
 public:
  /// Creates or replaces the file, or takes stdout where it is `-`, and writes the header: called before anything is
  /// measured. Errors: invalid_argument naming the path and the reason.
  [[nodiscard]] static Result<CsvFile> open(std::string path);

  /// Appends one line and hands it to the operating system. Errors: invalid_argument naming the path and the reason;
  /// the file then ends with the row before.
  Status write(const Row& row) { return file_.append(csv_row(row) + "\n"); }

 private:
  explicit CsvFile(LineFile file) : file_(std::move(file)) {}

  LineFile file_;
};

}  // namespace tutti::harness::record

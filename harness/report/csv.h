// SPDX-License-Identifier: Apache-2.0
// Rows as CSV (RFC 4180, lines end with LF): one line per row, flushed at once, so that whatever ends a run leaves
// every finished row in the file.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "harness/report/record.h"
#include "impl/types/status.h"

namespace tutti::harness {

/// `text` as one field, in quotes where it needs them.
[[nodiscard]] std::string csv_field(const std::string& text);
/// The names of the columns, without a line end.
[[nodiscard]] std::string csv_header();
/// The fields of `row` in the order of the columns, without a line end.
[[nodiscard]] std::string csv_row(const Row& row);

class CsvFile {
 public:
  /// Creates or replaces the file and writes the header: called before anything is measured.
  /// Errors: invalid_argument naming the path and the reason.
  [[nodiscard]] static Result<CsvFile> open(std::string path);

  /// Appends one line and hands it to the operating system. Errors: io naming the path and the reason.
  Status write(const Row& row);

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  CsvFile(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  Status write_line(Code code, const std::string& line);

  std::string path_;
  File file_;
};

}  // namespace tutti::harness

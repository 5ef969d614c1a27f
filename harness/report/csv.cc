// SPDX-License-Identifier: Apache-2.0
#include "harness/report/csv.h"

#include <cerrno>

#include "harness/report/file.h"

namespace tutti::harness {
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string csv_header() {
  std::string line;
  for (const Column& column : columns()) {
    if (!line.empty()) line += ',';
    line += column.name;
  }
  return line;
}

std::string csv_row(const Row& row) {
  std::string line;
  for (const Column& column : columns()) {
    if (&column != &columns().front()) line += ',';
    line += csv_field(field_text(row, column).value_or(""));
  }
  return line;
}

Result<CsvFile> CsvFile::open(std::string path) {
  File file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) return cannot_write(Code::invalid_argument, path, errno);
  CsvFile csv(std::move(path), std::move(file));
  TUTTI_RETURN_IF_ERROR(csv.write_line(Code::invalid_argument, csv_header()));
  return csv;
}

Status CsvFile::write(const Row& row) { return write_line(Code::io, csv_row(row)); }

Status CsvFile::write_line(Code code, const std::string& line) {
  const bool is_written = std::fwrite((line + '\n').data(), 1, line.size() + 1, file_.get()) == line.size() + 1;
  if (is_written && std::fflush(file_.get()) == 0) return {};
  return cannot_write(code, path_, errno);
}

}  // namespace tutti::harness

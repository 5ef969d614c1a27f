// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv.h"

#include <utility>

namespace tutti::harness::record {
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
  TUTTI_ASSIGN_OR_RETURN(LineFile file, LineFile::open(std::move(path)));
  TUTTI_RETURN_IF_ERROR(file.append(csv_header() + "\n"));
  return CsvFile(std::move(file));
}

}  // namespace tutti::harness::record

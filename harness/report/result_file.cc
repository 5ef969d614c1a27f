// SPDX-License-Identifier: Apache-2.0
#include "harness/report/result_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/record/csv_reader.h"
#include "harness/record/row_json.h"
#include "harness/report/json.h"
#include "harness/report/result_shape.h"
#include "harness/text/json_reader.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"

namespace tutti::harness::report {
namespace {

using Document = nlohmann::ordered_json;

Status check_schema(const Document& document) {
  const auto version = document.find("schema_version");
  if (version == document.end()) {
    return error(Code::invalid_argument, "it has no schema_version: this is no JSON of tutti");
  }
  const auto number = whole_number(*version);
  if (number && *number >= 1 && *number <= kSchemaVersion) return {};
  return error(Code::invalid_argument, "schema_version is {}: this build reads {}; the tutti that wrote it reads it",
               shown(version->dump()), kSchemaVersion);
}

Result<ResultFile> from_json(std::string_view text) {
  auto document = parse_json<Document>(text);
  if (!document.is_object()) return error(Code::invalid_argument, "it is damaged: it begins as JSON and is none");
  TUTTI_RETURN_IF_ERROR(check_schema(document));
  TUTTI_RETURN_IF_ERROR(check_shape(document));
  ResultFile result;
  if (document.contains("cells") && document["cells"].is_array() && document.contains("kind") &&
      document["kind"].is_string()) {
    result.kind = ResultFile::Kind::judged;
  } else if (!document.contains("rows") || !document["rows"].is_array()) {
    return error(Code::invalid_argument, "it has neither rows nor judged cells: this is no result of tutti");
  } else {
    for (const Document& one : document["rows"]) {
      auto row = row_from_json(one.dump());
      if (!row.is_ok()) {
        return error(row.status().code(), "row {}: {}", result.rows.size() + 1, row.status().message());
      }
      result.rows.push_back(std::move(row).value());
    }
    document.erase("rows");
  }
  result.document = document.dump(-1, ' ', false, Document::error_handler_t::replace);
  return result;
}

Result<ResultFile> from_text(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return error(Code::invalid_argument, "it is empty");
  if (text[begin] == '{') return from_json(text);
  ResultFile result;
  if (are_samples(text)) {
    result.kind = ResultFile::Kind::samples;
    TUTTI_ASSIGN_OR_RETURN(result.samples, samples_from_csv(text));
  } else {
    TUTTI_ASSIGN_OR_RETURN(result.rows, rows_from_csv(text));
  }
  return result;
}

}  // namespace

Result<ResultFile> result_from_text(const std::string& file, std::string_view text) {
  auto result = from_text(text);
  if (!result.is_ok()) return error(result.status().code(), "'{}': {}", file, result.status().message());
  result.value().file = file;
  return result;
}

Result<ResultFile> read_result(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInResult));
  return result_from_text(path, text);
}

std::string machine_of(const ResultFile& result) {
  const Row* named = nullptr;
  for (const Row& row : result.rows) {
    const bool is_of_more = named == nullptr || (!hosts_text(row).empty() && row.ranks > named->ranks);
    if (!row.machine.empty() && is_of_more) named = &row;
  }
  return named == nullptr ? "" : named->machine;
}

std::string start_of(const ResultFile& result) {
  const auto document = parse_json<Document>(result.document);
  if (document.is_object() && document.contains("started") && document["started"].is_string()) {
    return document["started"].get<std::string>();
  }
  std::string first;
  for (const Row& row : result.rows) {
    if (!row.timestamp.empty() && (first.empty() || row.timestamp < first)) first = row.timestamp;
  }
  return first;
}

Status check_one_machine(std::span<const ResultFile> results) {
  struct Seen {
    std::string machine;
    const ResultFile* first = nullptr;
  };
  std::map<std::pair<std::string, std::int64_t>, Seen> by_place;  // fewer ranks may be on fewer of the hosts
  for (const ResultFile& result : results) {
    for (const Row& row : result.rows) {
      const std::string hosts = hosts_text(row);
      auto& [machine, first] = by_place[{hosts, hosts.empty() ? 0 : row.ranks}];
      if (row.machine.empty() || row.machine == machine) continue;
      if (machine.empty()) {
        machine = row.machine;
        first = &result;
        continue;
      }
      return error(Code::invalid_argument,
                   "'{}' is of the machine '{}', and '{}' of '{}': times of two machines are not compared; make a page "
                   "of each",
                   result.file, shown(row.machine), first->file, shown(machine));
    }
  }
  return {};
}

}  // namespace tutti::harness::report

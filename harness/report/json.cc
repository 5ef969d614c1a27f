// SPDX-License-Identifier: Apache-2.0
#include "harness/report/json.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/report/file.h"
#include "harness/report/json_reader.h"
#include "harness/report/streams.h"
#include "impl/types/names.h"

namespace tutti::harness {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Stores a JSON value in a field, by the field's type; false if the value is of another.
struct SetFromJson {
  Row& row;
  const Json& value;

  bool operator()(std::string Row::*member) const {
    if (value.is_string()) row.*member = value.get<std::string>();
    return value.is_string();
  }
  bool operator()(std::int64_t Row::*member) const {
    const auto number = whole_number(value);
    if (number) row.*member = *number;
    return number.has_value();
  }
  bool operator()(std::optional<std::int64_t> Row::*member) const {
    row.*member = whole_number(value);
    return (row.*member).has_value() || value.is_null();
  }
  bool operator()(std::optional<double> Row::*member) const {
    if (value.is_number()) row.*member = value.get<double>();
    return value.is_number() || value.is_null();
  }
  bool operator()(Verdict Row::*member) const {
    if (!value.is_string()) return false;
    const auto verdicts = all_verdicts();
    const auto same = std::ranges::find(verdicts, value.get<std::string>(), [](Verdict v) { return to_string(v); });
    if (same == verdicts.end()) return false;
    row.*member = *same;
    return true;
  }
};

}  // namespace

std::string row_to_json(const Row& row) {
  std::string text;
  for (const Column& column : columns()) {
    const auto field = field_text(row, column);
    text += fmt::format("{}\"{}\":{}", text.empty() ? "{" : ",", column.name,
                        !field             ? "null"
                        : column.is_text() ? dump(*field)
                                           : *field);
  }
  return text + "}";
}

Result<Row> row_from_json(std::string_view text) {
  const Json object = parse_json<Json>(text);
  if (!object.is_object()) return error(Code::invalid_argument, "a row must be a JSON object, not '{}'", shown(text));
  Row row;
  for (const Column& column : columns()) {
    const auto entry = object.find(std::string(column.name));
    if (entry == object.end() && is_appended(column)) continue;  // an older writer
    if (entry == object.end()) return error(Code::invalid_argument, "a row without its column '{}'", column.name);
    if (std::visit(SetFromJson{row, *entry}, column.member)) continue;
    return error(Code::invalid_argument, "column '{}' of a row cannot be {}", column.name, shown(dump(*entry)));
  }
  return row;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Result<JsonFile> JsonFile::open(std::string path, RunInfo info) {
  JsonFile file(std::move(path), std::move(info));
  TUTTI_RETURN_IF_ERROR(file.is_on_stdout() ? check_stdout() : file.put());
  return file;
}

Status JsonFile::write(std::span<const Row> rows) {
  for (const Row& row : rows) rows_ += (rows_.empty() ? "\n    " : ",\n    ") + row_to_json(row);
  return put();
}

Status JsonFile::set_measurement(const std::string& key, double value) {
  info_.measurement[key] = value;
  return put();
}

Status JsonFile::set_version(const std::string& key, const std::string& text) {
  info_.versions[key] = text;
  return put();
}

Status JsonFile::set_bound(const std::string& key, const std::string& json_text) {
  info_.bound[key] = json_text;
  return put();
}

Status JsonFile::finish() {
  is_finished_ = true;
  return put();
}

Status JsonFile::end() const {
  if (!is_on_stdout()) return {};
  Console console;
  console.print(document());
  return console.failure();
}

bool JsonFile::is_on_stdout() const { return path_ == kStdoutPath; }

Status JsonFile::put() const { return is_on_stdout() ? Status() : replace_file(path_, document()); }

std::string JsonFile::document() const {
  Json left_out = Json::array();
  for (const LeftOut& item : info_.left_out) left_out.push_back({{"cells", item.cells}, {"reason", item.reason}});
  const Json machine = Json::parse(info_.machine_json, nullptr, false);
  TUTTI_ASSERT(machine.is_object(), "the machine is not a JSON object: {}", info_.machine_json);
  Json bound = Json::object();
  for (const auto& [ranks, cores] : info_.bound) bound[ranks] = Json::parse(cores, nullptr, false);
  return fmt::format(
      "{{\n  \"schema_version\": {},\n  \"machine\": {},\n  \"versions\": {},\n  \"command\": {},\n  \"seed\": {},\n"
      "  \"started\": {},\n  \"measurement\": {},\n  \"bound\": {},\n  \"environment\": {},\n  \"left_out\": {},\n  "
      "\"finished\": {},\n  \"rows\": [{}\n  ]\n}}\n",
      kSchemaVersion, dump(machine), dump(info_.versions), dump(info_.command), info_.seed, dump(info_.started),
      dump(info_.measurement), dump(bound), dump(info_.environment), dump(left_out), is_finished_, rows_);
}

}  // namespace tutti::harness

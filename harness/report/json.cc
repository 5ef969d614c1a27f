// SPDX-License-Identifier: Apache-2.0
#include "harness/report/json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/record/row_json.h"
#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"

namespace tutti::harness::report {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return json_text(value); }

}  // namespace

Result<JsonFile> JsonFile::open(std::string path, RunInfo info) {
  JsonFile file(std::move(path), std::move(info));
  if (file.is_on_stdout()) {
    TUTTI_RETURN_IF_ERROR(check_stdout());
  } else if (!file.path_.empty()) {
    TUTTI_ASSIGN_OR_RETURN(file.file_, OutputFile::open(file.path_, 0));
    TUTTI_RETURN_IF_ERROR(file.put());
  }
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

Status JsonFile::set_machines(std::vector<std::pair<std::string, std::string>> machines) {
  if (machines.size() < info_.machines.size()) return {};
  info_.machine_json = machines.front().second;
  info_.machines = std::move(machines);
  return put();
}

Status JsonFile::leave_out(LeftOut item) {
  info_.left_out.push_back(std::move(item));
  return put();
}

Status JsonFile::set_bound(const std::string& key, const std::string& json_text) {
  info_.bound[key] = json_text;
  return put();
}

Status JsonFile::set_ranks(const std::string& key, const std::string& json_text) {
  info_.ranks[key] = json_text;
  return put();
}

Status JsonFile::add_diagnosis(const FailedJob& diagnosis) {
  diagnoses_ += (diagnoses_.empty() ? "\n    " : ",\n    ") + diagnosis.json();
  return put();
}

Status JsonFile::finish() {
  is_finished_ = true;
  return put();
}

Status JsonFile::end() {
  if (file_ && !file_->is_replaceable()) return file_->replace(text());
  if (!is_on_stdout()) return {};
  Console console;
  console.print(text());
  return console.failure();
}

bool JsonFile::is_on_stdout() const { return path_ == kStdoutPath; }

Status JsonFile::put() { return file_ && file_->is_replaceable() ? file_->replace(text()) : Status(); }

std::string JsonFile::text() const {
  Json left_out = Json::array();
  for (const LeftOut& item : info_.left_out) left_out.push_back({{"cells", item.cells}, {"reason", item.reason}});
  const Json machine = Json::parse(info_.machine_json, nullptr, false);
  TUTTI_ASSERT(machine.is_object(), "the machine is not a JSON object: {}", info_.machine_json);
  Json machines = Json::array();
  for (const auto& [host, description] : info_.machines) {
    machines.push_back({{"host", host}});
    machines.back().update(Json::parse(description, nullptr, false));
  }
  const std::string of_hosts = machines.empty() ? "" : fmt::format("  \"machines\": {},\n", dump(machines));
  Json bound = Json::object();
  for (const auto& [ranks, cores] : info_.bound) bound[ranks] = Json::parse(cores, nullptr, false);
  Json ranks = Json::object();
  for (const auto& [number, list] : info_.ranks) ranks[number] = Json::parse(list, nullptr, false);
  return fmt::format(
      "{{\n  \"schema_version\": {},\n  \"machine\": {},\n{}  \"versions\": {},\n  \"command\": {},\n  \"seed\": {},\n"
      "  \"started\": {},\n  \"measurement\": {},\n  \"bound\": {},\n  \"ranks\": {},\n  \"environment\": {},\n  "
      "\"table\": {},\n  "
      "\"left_out\": {},\n  "
      "\"diagnoses\": [{}],\n  "
      "\"finished\": {},\n  \"rows\": [{}\n  ]\n}}\n",
      kSchemaVersion, dump(machine), of_hosts, dump(info_.versions), dump(info_.command), info_.seed,
      dump(info_.started), dump(info_.measurement), dump(bound), dump(ranks), dump(info_.environment),
      dump(info_.table), dump(left_out), diagnoses_, is_finished_, rows_);
}

}  // namespace tutti::harness::report

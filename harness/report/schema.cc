// SPDX-License-Identifier: Apache-2.0
#include "harness/report/schema.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/record/record.h"
#include "harness/report/json.h"

namespace tutti::harness::report {
namespace {

using Json = nlohmann::ordered_json;

Json row_property(const Column& column) {
  const char* type = column.is_text() ? "string" : column.is_integer() ? "integer" : "number";
  Json property;
  property["description"] =
      column.unit.empty() ? std::string(column.description) : fmt::format("{} [{}]", column.description, column.unit);
  property["type"] = column.may_be_empty() ? Json::array({type, "null"}) : Json(type);
  if (std::holds_alternative<Verdict Row::*>(column.member)) {
    for (const Verdict verdict : all_verdicts()) property["enum"].push_back(to_string(verdict));
  }
  return property;
}

/// An object that has exactly these keys, or these and others.
Json object_of(Json properties, bool is_closed) {
  Json object{{"type", "object"}, {"required", Json::array()}};
  for (const auto& [name, property] : properties.items()) object["required"].push_back(name);
  object["properties"] = std::move(properties);
  if (is_closed) object["additionalProperties"] = false;
  return object;
}

/// Rows without the columns that were appended later are older, and valid.
Json row_schema() {
  Json first = Json::object(), appended = Json::object();
  for (const Column& column : columns()) {
    (is_appended(column) ? appended : first)[std::string(column.name)] = row_property(column);
  }
  Json row = object_of(std::move(first), true);
  row["properties"].update(appended);
  return row;
}

Json map_of(const char* description, const char* type) {
  return {{"description", description}, {"type", "object"}, {"additionalProperties", {{"type", type}}}};
}

}  // namespace

std::string schema_json() {
  const Json text{{"type", "string"}};
  const Json whole{{"type", "integer"}, {"minimum", 0}};
  Json machine = object_of({{"cpu_model", text},
                            {"cores_allowed", whole},
                            {"cores_online", whole},
                            {"caches", {{"type", "array"}}},
                            {"memory_bytes", whole},
                            {"kernel", text},
                            {"compiler", text},
                            {"build_type", text},
                            {"commit", text}},
                           false);
  machine["properties"]["hostname"] = text;  // appended later
  const Json left_out = object_of({{"cells", whole}, {"reason", text}}, true);
  Json document = object_of(
      {{"schema_version", {{"const", kSchemaVersion}}},
       {"machine", machine},
       {"versions", map_of("of tutti and of each backend", "string")},
       {"command", text},
       {"seed", whole},
       {"finished",
        {{"type", "boolean"},
         {"description",
          "false: the sweep is under way, was interrupted or failed, and cells are missing; not in older records"}}},
       {"started", {{"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}}},
       {"measurement", map_of("facts of the instrument, units in the names", "number")},
       {"left_out", {{"description", "cells asked for and not run"}, {"type", "array"}, {"items", left_out}}},
       {"rows", {{"type", "array"}, {"items", row_schema()}}}},
      true);
  // Appended later: documents without it are older, and valid.
  Json of_host = machine;
  of_host["properties"]["host"] = text;
  of_host["required"].push_back("host");
  document["properties"]["machines"] = {
      {"description", "of ranks on several hosts: each host's machine, in their order; `machine` is the first one"},
      {"type", "array"},
      {"items", of_host}};
  document["properties"]["bound"] = {
      {"description", "the cores that each rank may run on, by number of ranks"},
      {"type", "object"},
      {"additionalProperties", {{"type", "array"}, {"items", {{"type", "array"}, {"items", whole}}}}}};
  Json rank = object_of({{"rank", whole},
                         {"host", text},
                         {"samples", whole},
                         {"came_last", whole},
                         {"waited_us", {{"type", "number"}}},
                         {"waited_share", {{"type", "number"}}},
                         {"ended_samples", whole},
                         {"ended_last", whole},
                         {"own_ratio", {{"type", {"number", "null"}}}},
                         {"comes_late", {{"type", "boolean"}}},
                         {"ends_late", {{"type", "boolean"}}}},
                        true);
  for (const char* key : {"waited_median_us", "waited_p95_us"})  // appended later
    rank["properties"][key] = {{"type", {"number", "null"}}};
  document["properties"]["ranks"] = {{"description",
                                      "by number of ranks, worst first: samples to which a rank came last and what "
                                      "another rank waited for it (all together, of the time, median and 95th "
                                      "percentile of these samples), samples that it ended last, its own time / the "
                                      "median, and whether it is a straggler"},
                                     {"type", "object"},
                                     {"additionalProperties", {{"type", "array"}, {"items", std::move(rank)}}}};
  const Json number_or_null{{"type", {"integer", "null"}}};
  const Json place = object_of({{"rank", number_or_null},
                                {"operation", number_or_null},
                                {"step", number_or_null},
                                {"peer", number_or_null},
                                {"bytes", number_or_null}},
                               true);
  Json diagnosis = place;
  for (const char* key : {"message", "how", "host", "collective", "cell"}) {
    diagnosis["properties"][key] = text;
    diagnosis["required"].push_back(key);
  }
  diagnosis["properties"]["waiting"] = {
      {"description", "ranks that wait in an own communicator"}, {"type", "array"}, {"items", place}};
  document["properties"]["diagnoses"] = {
      {"description", "why a job of the run failed: the rank, its host, the operation and step, whom it waits for"},
      {"type", "array"},
      {"items", diagnosis}};
  document["properties"]["environment"] = map_of(
      "settings of communication libraries in the environment of the run; what may be a secret is redacted", "string");
  document["properties"]["table"] =
      map_of("name and hash of the selection table by which `auto` chooses algorithms", "string");
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "tutti results"},
              {"description", "An empty field is null: not measured. Generated from the columns in record.cc."}};
  schema.update(document);
  return schema.dump(2) + "\n";
}

std::string columns_markdown() {
  std::string table = "| column | unit | meaning |\n| --- | --- | --- |\n";
  for (const Column& column : columns()) {
    table += fmt::format("| `{}` | {} | {} |\n", column.name, column.unit, column.description);
  }
  return table;
}

}  // namespace tutti::harness::report

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/row_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"
#include "impl/types/names.h"
#include "impl/types/printable.h"

namespace tutti::harness::record {
namespace {

using RowJson = nlohmann::ordered_json;

std::string dump_row(const RowJson& value) { return value.dump(-1, ' ', false, RowJson::error_handler_t::replace); }

/// Stores a JSON value in a field, by the field's type; false if the value is of another.
struct SetFromJson {
  Row& row;
  const RowJson& value;

  bool operator()(std::string Row::*member) const {
    if (value.is_string()) row.*member = printable(value.get<std::string>());
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
  bool operator()(const Condition* condition) const {
    const bool is_text = condition->column.type == ConditionColumn::Type::text;
    if (value.is_null()) return !is_text;
    if (value.is_string() != is_text) return false;
    return set_field(row, *condition, is_text ? value.get<std::string>() : value.dump());
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
                        : column.is_text() ? dump_row(*field)
                                           : *field);
  }
  return text + "}";
}

Result<Row> row_from_json(std::string_view text) {
  const RowJson object = parse_json<RowJson>(text);
  if (!object.is_object()) return error(Code::invalid_argument, "a row must be a JSON object, not '{}'", shown(text));
  Row row;
  for (const Column& column : columns()) {
    const auto entry = object.find(std::string(column.name));
    if (entry == object.end() && is_appended(column)) continue;  // an older writer
    if (entry == object.end()) return error(Code::invalid_argument, "a row without its column '{}'", column.name);
    if (std::visit(SetFromJson{row, *entry}, column.member)) continue;
    return error(Code::invalid_argument, "column '{}' of a row cannot be {}", column.name, shown(dump_row(*entry)));
  }
  return row;
}

}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv_reader.h"

#include <algorithm>

#include "harness/text/file.h"
#include "harness/text/number.h"
#include "impl/types/names.h"

namespace tutti::harness::record {
namespace {

struct Record {
  int line = 0;  ///< in which it begins, from 1
  std::vector<std::string> fields;
};

/// Takes a text apart as RFC 4180 has it: quoted fields may hold separators, line ends, and quotes written twice.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool is_at_end() const { return place_ == text_.size(); }

  Result<Record> next() {
    Record record{.line = line_};
    for (;;) {
      TUTTI_ASSIGN_OR_RETURN(std::string one, field());
      record.fields.push_back(std::move(one));
      if (is_at_end()) return error(Code::invalid_argument, "line {} is not complete", record.line);
      if (take() == '\n') return record;
    }
  }

 private:
  /// Up to the separator or line end, which is next then.
  Result<std::string> field() {
    std::string field;
    if (is_at_end() || text_[place_] != '"') {
      while (!is_at_end() && text_[place_] != ',' && text_[place_] != '\n') field += take();
      if (field.ends_with('\r')) field.pop_back();  // an editor's line end
      return field;
    }
    const int begin = line_;
    take();
    for (;;) {
      if (is_at_end()) return error(Code::invalid_argument, "line {}: a quote is not closed", begin);
      const char c = take();
      const bool is_quote_again = c == '"' && !is_at_end() && text_[place_] == '"';
      if (c == '"' && !is_quote_again) break;
      field += is_quote_again ? take() : c;
    }
    if (!is_at_end() && text_[place_] == '\r') take();
    if (is_at_end() || text_[place_] == ',' || text_[place_] == '\n') return field;
    return error(Code::invalid_argument, "line {}: '{}' follows a closing quote", line_,
                 shown(text_.substr(place_, 1)));
  }

  char take() {
    const char c = text_[place_++];
    if (c == '\n') ++line_;
    return c;
  }

  std::string_view text_;
  std::size_t place_ = 0;
  int line_ = 1;
};

/// Stores a field, by the column's type; false if the text is no value of that type.
struct SetFromText {
  Row& row;
  const std::string& text;

  bool operator()(std::string Row::*member) const {
    row.*member = text;
    return true;
  }
  bool operator()(std::int64_t Row::*member) const {
    const auto number = number_in<std::int64_t>(text);
    if (number) row.*member = *number;
    return number.has_value();
  }
  bool operator()(std::optional<std::int64_t> Row::*member) const {
    row.*member = number_in<std::int64_t>(text);
    return (row.*member).has_value() || text.empty();
  }
  bool operator()(std::optional<double> Row::*member) const {
    row.*member = number_in<double>(text);
    return (row.*member).has_value() || text.empty();
  }
  bool operator()(const Condition* condition) const { return set_field(row, *condition, text); }
  bool operator()(Verdict Row::*member) const {
    const auto verdicts = all_verdicts();
    const auto same = std::ranges::find(verdicts, text, [](Verdict verdict) { return to_string(verdict); });
    if (same != verdicts.end()) row.*member = *same;
    return same != verdicts.end();
  }
};

const Column* column_of(std::string_view name) {
  const auto all = columns();
  const auto same = std::ranges::find(all, name, &Column::name);
  return same == all.end() ? nullptr : &*same;
}

}  // namespace

Result<std::vector<Row>> rows_from_csv(std::string_view text) {
  if (text.empty()) return error(Code::invalid_argument, "it is empty: the first line names the columns");
  Reader reader(text);
  TUTTI_ASSIGN_OR_RETURN(const Record header, reader.next());
  std::vector<const Column*> order;
  for (const std::string& name : header.fields) order.push_back(column_of(name));
  if (std::ranges::find(order, &columns().front()) == order.end()) {
    return error(Code::invalid_argument, "no column '{}' in its first line: this is no CSV of `tutti run`",
                 columns().front().name);
  }
  std::vector<Row> rows;
  while (!reader.is_at_end()) {
    TUTTI_ASSIGN_OR_RETURN(const Record record, reader.next());
    if (record.fields.size() != order.size()) {
      return error(Code::invalid_argument, "line {} has {} fields, the first line names {} columns", record.line,
                   record.fields.size(), order.size());
    }
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] == nullptr || std::visit(SetFromText{row, record.fields[i]}, order[i]->member)) continue;
      return error(Code::invalid_argument, "line {}: column '{}' cannot be '{}'", record.line, order[i]->name,
                   shown(record.fields[i]));
    }
  }
  return rows;
}

Result<std::vector<std::string>> column_names_of_csv(std::string_view text) {
  Reader reader(text);
  TUTTI_ASSIGN_OR_RETURN(Record header, reader.next());
  return std::move(header.fields);
}

Result<std::vector<Row>> read_csv(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  auto rows = rows_from_csv(text);
  if (!rows.is_ok()) return error(rows.status().code(), "'{}': {}", path, rows.status().message());
  return rows;
}

}  // namespace tutti::harness::record

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv_reader.h"

#include <algorithm>
#include <csv.h>

#include "harness/text/counted.h"
#include "harness/text/number.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "impl/types/printable.h"

namespace tutti::harness::record {
namespace {

struct Record {
  int line = 0;  ///< in which it begins, from 1
  std::vector<std::string> fields;
};

/// Without the empty lines after the last record, as an editor or a person may have put there. Where there is one column
/// an empty line is a record.
std::string_view without_empty_end(std::string_view text) {
  if (text.substr(0, text.find('\n')).find(',') == std::string_view::npos) return text;
  const std::size_t last = text.find_last_not_of("\r\n");
  if (last == std::string_view::npos) return text;
  return text.substr(0, std::min(text.size(), std::min(text.find('\n', last), text.size() - 1) + 1));
}

/// Takes a text apart as RFC 4180 has it: quoted fields may hold separators, line ends, and quotes written twice.
/// libcsv finds the fields in each line that it is given, and the lines are counted here.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(without_empty_end(text)) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL);
    csv_set_term_func(&parser_, [](unsigned char c) -> int { return c == '\n'; });
    // What an editor ends a line with is no part of a field. Blanks are.
    csv_set_space_func(&parser_, [](unsigned char c) -> int { return c == '\r'; });
  }
  ~Reader() { csv_free(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

  Result<Record> next() {
    record_ = {.line = line_ + 1};
    field_line_ = line_ + 1;
    is_complete_ = false;
    while (!is_complete_) {
      if (is_at_end()) return it_ends_early();
      const std::string_view line = rest_.substr(0, std::min(rest_.find('\n'), rest_.size() - 1) + 1);
      rest_.remove_prefix(line.size());
      ++line_;
      const std::size_t taken = csv_parse(&parser_, line.data(), line.size(), add_field, end_record, this);
      if (taken != line.size()) return refused_at(line.substr(taken));
    }
    return std::move(record_);
  }

 private:
  static void add_field(void* text, std::size_t size, void* reader) {
    auto& self = *static_cast<Reader*>(reader);
    self.record_.fields.emplace_back(static_cast<const char*>(text), size);
    self.field_line_ = self.line_;
  }
  static void end_record(int /*terminator*/, void* reader) {
    auto& self = *static_cast<Reader*>(reader);
    if (self.record_.fields.empty()) self.record_.fields.emplace_back();  // an empty line has one field, which is empty
    self.is_complete_ = true;
  }

  Status it_ends_early() {
    const bool is_in_quotes = csv_fini(&parser_, nullptr, nullptr, nullptr) != 0;
    if (is_in_quotes) return error(Code::invalid_argument, "line {}: a quote is not closed", field_line_);
    return error(Code::invalid_argument, "line {} is not complete", record_.line);
  }

  /// Why libcsv did not take `rest` of a line.
  [[nodiscard]] Status refused_at(std::string_view rest) {
    const int reason = csv_error(&parser_);
    if (reason != CSV_EPARSE) return error(Code::resource, "line {}: {}", line_, csv_strerror(reason));
    const std::string next = shown(rest.substr(0, 1));
    if (parser_.quoted != 0) return error(Code::invalid_argument, "line {}: '{}' follows a closing quote", line_, next);
    const std::string field(reinterpret_cast<const char*>(parser_.entry_buf), parser_.entry_pos);
    return error(Code::invalid_argument, "line {}: '{}' follows '{}': a field that holds quotes must begin with one",
                 line_, next, shown(field));
  }

  std::string_view rest_;
  csv_parser parser_ = {};
  Record record_;             ///< the one that is being read
  int line_ = 0;              ///< that libcsv was given last
  int field_line_ = 0;        ///< in which the field begins that is being read
  bool is_complete_ = false;  ///< the record
};

/// Stores a field, by the column's type; false if the text is no value of that type.
struct SetFromText {
  Row& row;
  const std::string& text;

  bool operator()(std::string Row::*member) const {
    row.*member = printable(text);
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

/// That there is a field for each column.
Status check_length(const Record& record, std::size_t columns) {
  if (record.fields.size() == columns) return {};
  return error(Code::invalid_argument, "line {} has {}, the first line names {}", record.line,
               counted(record.fields.size(), "field"), counted(columns, "column"));
}

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
    TUTTI_RETURN_IF_ERROR(check_length(record, order.size()));
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

Result<std::vector<std::vector<std::string>>> fields_of_csv(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  Reader reader(text);
  while (!reader.is_at_end()) {
    TUTTI_ASSIGN_OR_RETURN(Record record, reader.next());
    if (!lines.empty()) TUTTI_RETURN_IF_ERROR(check_length(record, lines.front().size()));
    lines.push_back(std::move(record.fields));
  }
  return lines;
}

Result<std::vector<Row>> read_csv(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInResult));
  auto rows = rows_from_csv(text);
  if (!rows.is_ok()) return error(rows.status().code(), "'{}': {}", path, rows.status().message());
  return rows;
}

}  // namespace tutti::harness::record

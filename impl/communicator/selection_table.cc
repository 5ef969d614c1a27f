// SPDX-License-Identifier: Apache-2.0
// Reading and writing of tables. Fields have no quotes, and no commas: so a table is read here, by a library that
// others embed, without another library.
#include "impl/communicator/selection_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "impl/types/names.h"
#include "impl/types/number.h"
#include "impl/types/printable.h"
#include "shipped_table.h"

namespace tutti {
namespace {

constexpr std::string_view kAnyText = "any";
constexpr std::size_t kMostInField = 100;  ///< bytes
constexpr std::int64_t kMostTableBytes = std::int64_t{1} << 50;
constexpr int kMostTableRanks = 1'000'000;

/// One of a few words. Errors: invalid_argument naming the nearest and all.
template <class Value, std::size_t N>
Result<Value> word_in(std::string_view text, std::string_view kind,
                      const std::array<std::pair<std::string_view, Value>, N>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) {
    if (text == name) return value;
    names.emplace_back(name);
  }
  return unknown_name(kind, text, names);
}

constexpr std::array<std::pair<std::string_view, RanksPlace>, 3> kPlaces{
    {{"host", RanksPlace::one_host}, {"hosts", RanksPlace::several_hosts}, {"device", RanksPlace::device}}};
constexpr std::array<std::pair<std::string_view, std::optional<bool>>, 3> kCrowded{
    {{"yes", true}, {"no", false}, {kAnyText, std::nullopt}}};
constexpr std::array<std::pair<std::string_view, std::optional<Buffers>>, 3> kBuffers{
    {{"private", Buffers::private_}, {"shared", Buffers::shared}, {kAnyText, std::nullopt}}};

template <class Value, std::size_t N>
std::string word_of(Value value, const std::array<std::pair<std::string_view, Value>, N>& words) {
  return std::string(std::ranges::find(words, value, &std::pair<std::string_view, Value>::second)->first);
}

/// A number, or `any`, which is `otherwise`.
template <class Number>
Result<Number> number_or_any(std::string_view text, std::string_view what, Number least, Number most,
                             Number otherwise) {
  if (text == kAnyText) return otherwise;
  const auto number = parse_number<Number>(text, what, least, most);
  if (number.is_ok()) return number;
  return error(Code::invalid_argument, "{} (or 'any')", number.status().message());
}

template <class T>
Status keep(Result<T> value, T& into) {
  TUTTI_RETURN_IF_ERROR(value.status());
  into = std::move(value).value();
  return {};
}

Status read_source(std::string_view text, TableRow& row) {
  const bool is_known = text == "measured" || text == "formula" ||
                        (text.starts_with(kSimulatedSource) && text.size() > kSimulatedSource.size());
  if (!is_known) {
    const std::vector<std::string> names{"measured", "formula", "simulated"};
    return error(Code::invalid_argument, "'{}' is no source: measured, formula, or 'simulated NAME'{}", shown(text),
                 suggestion(text, names));
  }
  row.source = text;
  return {};
}

/// A column: how a field is read into a row, and written.
struct TableColumn {
  std::string_view name;
  bool is_needed;
  std::function<Status(std::string_view, TableRow&)> read;
  std::function<std::string(const TableRow&)> text;
};

TableColumn evidence(std::string_view name, std::string TableRow::*member) {
  return {name, false,
          [member](std::string_view text, TableRow& row) {
            row.*member = text;
            return Status();
          },
          [member](const TableRow& row) { return row.*member; }};
}

const std::vector<TableColumn>& table_columns() {
  static const std::vector<TableColumn> columns{
      {"collective", true,
       [](std::string_view text, TableRow& row) { return keep(parse_collective(text), row.collective); },
       [](const TableRow& row) { return std::string(to_string(row.collective)); }},
      {"place", true,
       [](std::string_view text, TableRow& row) { return keep(word_in(text, "place", kPlaces), row.place); },
       [](const TableRow& row) { return word_of(row.place, kPlaces); }},
      {"crowded", true,
       [](std::string_view text, TableRow& row) { return keep(word_in(text, "answer", kCrowded), row.is_crowded); },
       [](const TableRow& row) { return word_of(row.is_crowded, kCrowded); }},
      {"buffers", true,
       [](std::string_view text, TableRow& row) {
         return keep(word_in(text, "kind of buffers", kBuffers), row.buffers);
       },
       [](const TableRow& row) { return word_of(row.buffers, kBuffers); }},
      {"ranks_from", true,
       [](std::string_view text, TableRow& row) {
         return keep(parse_number(text, "a number of ranks", 1, kMostTableRanks), row.least_ranks);
       },
       [](const TableRow& row) { return fmt::to_string(row.least_ranks); }},
      {"ranks_to", true,
       [](std::string_view text, TableRow& row) {
         return keep(number_or_any(text, "a number of ranks", 1, kMostTableRanks, 0), row.most_ranks);
       },
       [](const TableRow& row) {
         return row.most_ranks == 0 ? std::string(kAnyText) : fmt::to_string(row.most_ranks);
       }},
      {"bytes_from", true,
       [](std::string_view text, TableRow& row) {
         return keep(parse_number<std::int64_t>(text, "a number of bytes", 0, kMostTableBytes), row.least_bytes);
       },
       [](const TableRow& row) { return fmt::to_string(row.least_bytes); }},
      {"bytes_to", true,
       [](std::string_view text, TableRow& row) {
         return keep(number_or_any<std::int64_t>(text, "a number of bytes", 0, kMostTableBytes, -1), row.most_bytes);
       },
       [](const TableRow& row) { return row.most_bytes < 0 ? std::string(kAnyText) : fmt::to_string(row.most_bytes); }},
      // Read once the collective is known.
      {"algorithm", true, [](std::string_view, TableRow&) { return Status(); },
       [](const TableRow& row) { return std::string(row.algorithm->name); }},
      {"segment", true,
       [](std::string_view text, TableRow& row) { return keep(segment_from(text), row.tuning.segment_bytes); },
       [](const TableRow& row) { return fmt::to_string(row.tuning.segment_bytes); }},
      {"stores", true, [](std::string_view text, TableRow& row) { return keep(stores_from(text), row.tuning.stores); },
       [](const TableRow& row) { return std::string(to_string(row.tuning.stores)); }},
      {"source", true, read_source, [](const TableRow& row) { return row.source; }},
      evidence("default", &TableRow::otherwise),
      evidence("gain", &TableRow::gain),
      evidence("gain_low", &TableRow::gain_low),
      evidence("gain_high", &TableRow::gain_high),
      evidence("time_us", &TableRow::time_us),
      evidence("record", &TableRow::record)};
  return columns;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

/// The columns of the first line. Errors: invalid_argument.
Result<std::vector<const TableColumn*>> header_of(int number, std::string_view line) {
  std::vector<std::string> known;
  for (const TableColumn& column : table_columns()) known.emplace_back(column.name);
  std::vector<const TableColumn*> header;
  for (const std::string_view name : fields_of(line)) {
    const auto found = std::ranges::find(table_columns(), name, &TableColumn::name);
    const std::size_t at = header.size() + 1;
    if (found == table_columns().end()) {
      return error(Code::invalid_argument, "line {}, column {}: {}", number, at,
                   unknown_name("column", name, known).message());
    }
    if (std::ranges::find(header, &*found) != header.end()) {
      return error(Code::invalid_argument, "line {}, column {}: '{}' is there twice", number, at, name);
    }
    header.push_back(&*found);
  }
  for (const TableColumn& column : table_columns()) {
    if (!column.is_needed || std::ranges::find(header, &column) != header.end()) continue;
    return error(Code::invalid_argument, "line {}: no column '{}': this is no selection table of tutti", number,
                 column.name);
  }
  return header;
}

Status check_field(std::string_view field) {
  if (field.size() > kMostInField) {
    return error(Code::invalid_argument, "'{}' has {} bytes: at most {}", shown(field), field.size(), kMostInField);
  }
  if (field.find('"') != std::string_view::npos || printable_line(field) != field) {
    return error(Code::invalid_argument, "'{}': a field has neither quotes nor control characters", shown(field));
  }
  return {};
}

/// What one field cannot say by itself: an algorithm is one of the collective, and ranges do not end before they begin.
Status check_row(const TableRow& row, std::string_view& column) {
  if (row.most_ranks > 0 && row.most_ranks < row.least_ranks) {
    column = "ranks_to";
    return error(Code::invalid_argument, "'{0}' is before ranks_from, which is {1}: did you mean '{1}'?",
                 row.most_ranks, row.least_ranks);
  }
  if (row.most_bytes >= 0 && row.most_bytes < row.least_bytes) {
    column = "bytes_to";
    return error(Code::invalid_argument, "'{0}' is before bytes_from, which is {1}: did you mean '{1}'?",
                 row.most_bytes, row.least_bytes);
  }
  return {};
}

Result<TableRow> row_of(int number, std::string_view line, const std::vector<const TableColumn*>& header) {
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.size() != header.size()) {
    return error(Code::invalid_argument, "line {} has {} fields, and the first line {} columns", number, fields.size(),
                 header.size());
  }
  TableRow row;
  const auto at = [&](std::size_t index, const Status& status) {
    return error(status.code(), "line {}, column {} ({}): {}", number, index + 1, header[index]->name,
                 status.message());
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Status status = check_field(fields[i]);
    if (status.is_ok()) status = header[i]->read(fields[i], row);
    if (!status.is_ok()) return at(i, status);
  }
  const auto index_of = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(header, name, &TableColumn::name) - header.begin());
  };
  const std::size_t at_algorithm = index_of("algorithm");
  const auto algorithm = find_algorithm(row.collective, fields[at_algorithm]);
  if (!algorithm.is_ok()) return at(at_algorithm, algorithm.status());
  row.algorithm = algorithm.value();
  std::string_view column;
  const Status fits = check_row(row, column);
  return fits.is_ok() ? Result<TableRow>(std::move(row)) : at(index_of(column), fits);
}

/// FNV-1a, of 64 bits.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace

Result<SelectionTable> SelectionTable::parse(std::string name, std::string text) {
  if (text.size() > kMostInTable) {
    return error(Code::invalid_argument, "{} bytes: a selection table has at most {}", text.size(), kMostInTable);
  }
  SelectionTable table;
  std::optional<std::vector<const TableColumn*>> header;
  int number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!header) {
      TUTTI_ASSIGN_OR_RETURN(header, header_of(number, line));
      continue;
    }
    if (table.rows_.size() == kMostTableRows) {
      return error(Code::invalid_argument, "line {}: a selection table has at most {} rows", number, kMostTableRows);
    }
    TUTTI_ASSIGN_OR_RETURN(TableRow row, row_of(number, line, *header));
    table.rows_.push_back(std::move(row));
  }
  if (!header) return error(Code::invalid_argument, "no line names the columns: this is no selection table of tutti");
  table.name_ = std::move(name);
  table.hash_ = hash_of(text);
  table.text_ = std::move(text);
  return table;
}

const SelectionTable& SelectionTable::shipped() {
  static const SelectionTable table = [] {
    auto parsed = parse("shipped", kShippedTable);
    TUTTI_ASSERT(parsed.is_ok(), "the shipped table: {}", parsed.status().message());
    return std::move(parsed).value();
  }();
  return table;
}

const TableRow* SelectionTable::find(const ChoiceOf& of) const {
  const bool is_crowded = of.problem.ranks > of.cores;
  const std::int64_t bytes = has_counts(of.problem.collective) ? 0 : of.bytes;
  const auto fits = [&](const TableRow& row) {
    return row.collective == of.problem.collective && row.place == of.on &&
           (of.on != RanksPlace::one_host || row.is_crowded.value_or(is_crowded) == is_crowded) &&
           row.buffers.value_or(of.buffers) == of.buffers && of.problem.ranks >= row.least_ranks &&
           (row.most_ranks == 0 || of.problem.ranks <= row.most_ranks) && bytes >= row.least_bytes &&
           (row.most_bytes < 0 || bytes <= row.most_bytes);
  };
  const auto found = std::ranges::find_if(rows_, fits);
  return found == rows_.end() ? nullptr : &*found;
}

void cover_bytes(TableRow& row, std::span<const std::int64_t> sizes, std::size_t at) {
  const auto end_after = [&](std::size_t index) {
    return static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(sizes[index]) * static_cast<double>(sizes[index + 1])));
  };
  row.least_bytes = at == 0 ? 0 : end_after(at - 1) + 1;
  row.most_bytes = at + 1 == sizes.size() ? -1 : end_after(at);
}

void cover_ranks(TableRow& row, std::span<const int> all, int ranks) {
  const auto here = std::ranges::lower_bound(all, ranks);
  row.least_ranks = here == all.begin() ? ranks : *(here - 1) + 1;
  row.most_ranks = ranks;
}

std::string table_text(const std::vector<TableRow>& rows, const std::vector<std::string>& remarks) {
  std::string text;
  for (const std::string& remark : remarks) text += fmt::format("# {}\n", printable_line(remark));
  std::vector<std::string_view> names;
  for (const TableColumn& column : table_columns()) names.push_back(column.name);
  text += fmt::format("{}\n", fmt::join(names, ","));
  for (const TableRow& row : rows) {
    std::vector<std::string> fields;
    for (const TableColumn& column : table_columns()) fields.push_back(column.text(row));
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "harness/record/trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "harness/cases/counts_name.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/record/csv_reader.h"
#include "harness/text/number.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "impl/types/scramble.h"

namespace tutti::harness::record {
namespace {

const std::vector<std::string>& trace_columns() {
  static const std::vector<std::string> names{"step", "group", "operation",  "dtype",
                                              "op",   "bytes", "peer_bytes", "gap_us"};
  return names;
}
constexpr std::string_view kUsualStep = "1";

/// One line of the file, by the columns that it has.
class TraceLine {
 public:
  TraceLine(const std::map<std::string, std::size_t>& columns, const std::vector<std::string>& fields, int ranks)
      : columns_(columns), fields_(fields), ranks_(ranks) {}

  Result<TraceCall> read() {
    TraceCall call{.step = text("step").empty() ? std::string(kUsualStep) : text("step"), .cell = {}, .gap = {}};
    if (!is_name(call.step) || call.step == kWholeTrace) {
      return at("step", "is no name of letters, digits, '_' and '-' other than 'whole': did you mean '1'?");
    }
    call.cell.ranks = ranks_;
    TUTTI_RETURN_IF_ERROR(read_group());
    TUTTI_RETURN_IF_ERROR(read_operation(call.cell));
    TUTTI_RETURN_IF_ERROR(read_bytes(call.cell));
    TUTTI_RETURN_IF_ERROR(read_gap(call));
    return call;
  }

 private:
  /// Empty where there is no such column.
  [[nodiscard]] std::string text(const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string() : fields_[found->second];
  }
  [[nodiscard]] Status at(const char* column, std::string_view what) const {
    return error(Code::invalid_argument, "column '{}': '{}' {}", column, shown(text(column)), what);
  }
  /// What a parser says, which names the value itself.
  template <class Value>
  Status take(const char* column, Result<Value> parsed, Value& value) const {
    if (!parsed.is_ok()) return error(Code::invalid_argument, "column '{}': {}", column, parsed.status().message());
    value = std::move(parsed).value();
    return {};
  }

  [[nodiscard]] Status read_group() const {
    std::vector<std::string> all;
    for (int rank = 0; rank < ranks_; ++rank) all.push_back(std::to_string(rank));
    const std::string world = fmt::format("{}", fmt::join(all, ";"));
    if (text("group").empty() || text("group") == world) return {};
    return at("group", fmt::format("is not all {} ranks in their order, and groups of some of them are not replayed: "
                                   "leave it empty, or write '{}'",
                                   ranks_, world));
  }

  Status read_operation(Cell& cell) const {
    TUTTI_RETURN_IF_ERROR(take("operation", parse_collective(text("operation")), cell.collective));
    if (has_window(cell.collective) || has_pairs(cell.collective)) {
      return at("operation", "is played by pairs of ranks, and a trace has collectives only: did you mean 'sendrecv'?");
    }
    if (has_data(cell.collective) && !text("dtype").empty()) {
      TUTTI_RETURN_IF_ERROR(take("dtype", parse_dtype(text("dtype")), cell.dtype));
    }
    cell.is_in_place = cell.collective == Collective::broadcast;  // which has one buffer
    if (!is_reducing(cell.collective)) {
      if (text("op").empty() || text("op") == kNone) return {};
      return at("op", fmt::format("has no meaning for {}: leave it empty", to_string(cell.collective)));
    }
    cell.op = Op::sum;
    if (!text("op").empty()) TUTTI_RETURN_IF_ERROR(take("op", parse_op(text("op")), cell.op));
    if (op_exists(cell.op, cell.dtype) && takes_op(cell.collective, cell.op)) return {};
    return at("op", fmt::format("does not exist for {} of {}: did you mean 'sum'?", to_string(cell.collective),
                                to_string(cell.dtype)));
  }

  Status read_bytes(Cell& cell) const {
    std::int64_t bytes = 0;
    const std::string peers = text("peer_bytes");
    if (!has_data(cell.collective)) {
      if (text("bytes").empty() || text("bytes") == "0") return {};
      return at("bytes", fmt::format("has no meaning for {}: leave it empty", to_string(cell.collective)));
    }
    if (!text("bytes").empty() || peers.empty() || !is_list(peers)) {
      TUTTI_RETURN_IF_ERROR(take("bytes", parse_bytes(text("bytes")), bytes));
    }
    if (!peers.empty()) TUTTI_RETURN_IF_ERROR(read_peers(peers, cell));
    set_bytes(cell, bytes);
    return {};
  }

  static bool is_list(std::string_view text) { return text.find_first_not_of("0123456789; ") == text.npos; }

  Status read_peers(const std::string& peers, Cell& cell) const {
    if (!has_counts(cell.collective)) {
      return at("peer_bytes", fmt::format("has no meaning for {}, whose blocks are of one length: leave it empty",
                                          to_string(cell.collective)));
    }
    if (!is_list(peers)) {
      TUTTI_RETURN_IF_ERROR(take("peer_bytes", counts_of_name(peers), cell.counts));
      if (cell.counts.pattern == Pattern::file) return at("peer_bytes", "is neither a pattern nor a list of numbers");
      return fits(cell.counts, cell.problem()) ? Status() : at("peer_bytes", misfit(cell.counts, cell.problem()));
    }
    Counts counts{.pattern = Pattern::file, .name = {}, .numbers = {}};
    for (const std::string_view word : split(peers, ';')) {
      const auto number = number_in<Count>(word);
      if (!number || *number < 0 || *number > kMostCount) {
        return at("peer_bytes",
                  fmt::format("has '{}', which is no number of bytes from 0 to {}", shown(word), kMostCount));
      }
      counts.numbers.push_back(*number);
    }
    TUTTI_RETURN_IF_ERROR(take("peer_bytes", in_elements(counts, CountsUnit::bytes, cell.dtype), cell.counts));
    cell.counts.name = counts_name_of(cell.counts.numbers);
    if (fits(cell.counts, cell.problem())) return {};
    return at("peer_bytes", misfit(cell.counts, cell.problem()));
  }

  Status read_gap(TraceCall& call) const {
    if (text("gap_us").empty()) return {};
    const auto gap = number_in<double>(text("gap_us"));
    constexpr double kMost = std::chrono::duration<double, std::micro>(kMostTraceGap).count();
    if (!gap || !(*gap >= 0) || *gap > kMost) {
      return at("gap_us", fmt::format("is no number of microseconds from 0 to {:.0f}", kMost));
    }
    call.gap = std::chrono::nanoseconds(static_cast<std::int64_t>(*gap * 1e3));
    return {};
  }

  const std::map<std::string, std::size_t>& columns_;
  const std::vector<std::string>& fields_;
  int ranks_;
};

Result<std::map<std::string, std::size_t>> columns_in(const std::vector<std::string>& header) {
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (std::ranges::find(trace_columns(), header[i]) == trace_columns().end()) {
      const Status unknown = unknown_name("column", header[i], trace_columns());
      return error(Code::invalid_argument, "line 1: {}", unknown.message());
    }
    if (!columns.emplace(header[i], i).second) {
      return error(Code::invalid_argument, "line 1: column '{}' is there twice", shown(header[i]));
    }
  }
  for (const char* const needed : {"operation", "bytes"}) {
    if (columns.contains(needed)) continue;
    return error(Code::invalid_argument, "line 1: there is no column '{}': allowed are {}", needed,
                 fmt::join(trace_columns(), " "));
  }
  return columns;
}

std::string trace_name(const std::vector<TraceCall>& calls) {
  std::uint64_t hash = calls.size();
  const auto add = [&hash](std::string_view text) {
    for (const char letter : text) hash = scramble(hash ^ static_cast<unsigned char>(letter));
  };
  for (const TraceCall& call : calls) {
    Case one;
    static_cast<Cell&>(one) = call.cell;
    add(call.step);
    add(case_id(one));
    hash = scramble(hash ^ static_cast<std::uint64_t>(call.gap.count()));
  }
  return fmt::format("trace-{:08x}", hash >> 32U);
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, int ranks) {
  TUTTI_ASSIGN_OR_RETURN(const auto lines, fields_of_csv(text));
  if (lines.empty()) {
    return error(Code::invalid_argument, "it is empty: the first line names the columns, {}",
                 fmt::join(trace_columns(), ","));
  }
  TUTTI_ASSIGN_OR_RETURN(const auto columns, columns_in(lines.front()));
  if (lines.size() == 1)
    return error(Code::invalid_argument, "there is no call in it: a line after the first for each");
  if (lines.size() - 1 > kMostTraceCalls) {
    return error(Code::invalid_argument, "it has {} calls: at most {} are replayed", lines.size() - 1, kMostTraceCalls);
  }
  Trace trace;
  std::set<std::string> over;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto call = TraceLine(columns, lines[i], ranks).read();
    if (!call.is_ok()) return error(call.status().code(), "line {}: {}", i + 1, call.status().message());
    const std::string& step = call.value().step;
    if (!trace.calls.empty() && trace.calls.back().step != step) over.insert(trace.calls.back().step);
    if (over.contains(step)) {
      return error(Code::invalid_argument,
                   "line {}: column 'step': '{}' is over: the lines of a step follow one another", i + 1, step);
    }
    trace.calls.push_back(std::move(call).value());
  }
  trace.name = trace_name(trace.calls);
  return trace;
}

Row row_of_step(const Case& like, std::string_view name, std::string_view step, std::int64_t bytes) {
  Row row;
  row.collective = "trace";
  row.backend = like.backend;
  row.algorithm = kNone;
  row.transport = like.transport;
  row.ranks = like.ranks;
  row.ranks_as = to_string(like.ranks_as);
  for (std::string Row::*const none : {&Row::buffers, &Row::dtype, &Row::op, &Row::placement, &Row::counts}) {
    row.*none = kNone;
  }
  row.bytes = bytes;
  row.cadence = to_string(like.cadence);
  row.step = step;
  row.case_id = fmt::format("{}/{}.{}/{}/none/none/P{}.{}/none/{}B.{}-{}/none/none/{}", row.collective, row.backend,
                            row.algorithm, row.transport, row.ranks, row.ranks_as, bytes, name, step, row.cadence);
  return row;
}

Result<Trace> read_trace(const std::string& path, int ranks) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInList));
  auto trace = parse_trace(text, ranks);
  if (trace.is_ok()) return trace;
  return error(trace.status().code(), "'{}': {}", path, trace.status().message());
}

}  // namespace tutti::harness::record

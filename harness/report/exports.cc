// SPDX-License-Identifier: Apache-2.0
#include "harness/report/exports.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cases/suite.h"
#include "harness/record/launches.h"
#include "harness/text/counted.h"
#include "harness/text/escapes.h"
#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "impl/types/printable.h"

namespace tutti::harness::report {
namespace {

using Document = nlohmann::ordered_json;

/// One row for each case and starter, whose `launches` are those of the case under this starter.
std::vector<Row> joined(std::span<const Row> rows) {
  std::vector<std::string> order;
  std::set<std::string> known;
  std::map<std::pair<std::string, std::string>, std::int64_t> count;  // by case and starter
  for (const Row& row : rows) {
    std::string cell = cell_of_case(row.case_id);
    if (known.insert(cell).second) order.push_back(std::move(cell));
    ++count[{row.case_id, row.starter}];
  }
  Launches launches(std::move(order));
  for (const Row& row : rows) launches.add(std::span(&row, 1));
  std::vector<Row> all;
  for (std::vector<Row>& cell : launches.cells()) {
    for (Row& row : cell) {
      if (row.launch > 0) row.launches = count[{row.case_id, row.starter}];
      all.push_back(std::move(row));
    }
  }
  return all;
}

/// As NCCL spells it: AllReduce of all_reduce.
std::string nccl_name(std::string_view collective) {
  std::string name;
  bool begins = true;
  for (const char c : collective) {
    if (c != '_') name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return name;
}

bool is_point_to_point(const Row& row) {
  return row.collective == "sendrecv" || row.collective == "pingpong" || row.collective == "bandwidth" ||
         row.collective == "bibandwidth" || row.collective == "message_rate";
}

/// Hosts that have ranks of the row.
std::int64_t nodes_of(const Row& row) {
  return std::max<std::int64_t>(1, std::min<std::int64_t>(std::ssize(named_hosts(row)), row.ranks));
}

std::string labels_of(const Row& row) {
  const auto host = row.host.empty() ? std::string("unknown") : row.host;
  std::string text = prometheus_label("node", host);
  const std::vector<std::pair<std::string_view, std::string>> others{
      {"n_nodes", fmt::to_string(nodes_of(row))},
      {"nranks", row.ranks > 0 ? fmt::to_string(row.ranks) : ""},
      {is_point_to_point(row) ? "p2p_operation" : "collective", nccl_name(row.collective)},
      {"message_size", fmt::format("{}B", row.bytes)},
      {"algo_proto", row.algorithm},
      {"backend", row.backend},
      {"transport", row.transport},
      {"dtype", row.dtype},
      {"op", row.op},
      {"case", row.case_id},
      {"starter", row.starter}};
  for (const auto& [name, value] : others) {
    if (!value.empty()) text += "," + prometheus_label(name, value);
  }
  return text;
}

/// One metric: its lines stand together, as the form demands.
class Metric {
 public:
  Metric(std::string name, std::string_view help) : name_(std::move(name)), help_(help) {}
  void add(const std::string& labels, double value) { lines_ += fmt::format("{}{{{}}} {}\n", name_, labels, value); }
  [[nodiscard]] std::string text() const {
    return lines_.empty() ? "" : fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name_, help_, lines_);
  }

 private:
  std::string name_;
  std::string_view help_;
  std::string lines_;
};

std::string pretty(const Document& document) { return json_text(document, 2) + "\n"; }

/// The case, and who started it where that is not tutti.
std::string name_of(const Row& row) {
  return row.starter.empty() || row.starter == kOwnSpawn ? row.case_id
                                                         : fmt::format("{} under {}", row.case_id, row.starter);
}

/// A judged cell as a row; its verdict is a mark.
Row row_of_judged(const Document& cell) {
  const auto text = [&](const char* name) {
    const auto member = cell.find(name);
    return member != cell.end() && member->is_string() ? printable(member->get<std::string>()) : std::string();
  };
  Row row;
  row.case_id = text("cell");
  row.collective = text("collective");
  row.marks = text("verdict");
  row.launch = 0;  // of all of its launches
  row.launches = whole_number(cell.value("this_launches", Document())).value_or(1);
  row.bytes = whole_number(cell.value("bytes", Document())).value_or(0);
  row.verdict = row.marks == to_string(Verdict::wrong) ? Verdict::wrong : Verdict::ok;
  row.time_median = cell.value("this_us", Document()).get<double>();
  if (const auto one = case_of_cell_id(row.case_id); one.is_ok()) {
    row.ranks = one.value().ranks;
    row.dtype = to_string(one.value().dtype);
    row.transport = one.value().transport;
  }
  return row;
}

}  // namespace

bool has_time(const Row& row) { return row.verdict == Verdict::ok && row.time_median && *row.time_median > 0; }

std::vector<Row> rows_for_export(const ResultFile& result) {
  if (result.kind != ResultFile::Kind::judged) return result.rows;
  const auto document = parse_json<Document>(result.document);
  std::vector<Row> rows;
  for (const Document& cell : document.is_object() ? document.value("cells", Document::array()) : Document::array()) {
    if (!cell.value("this_us", Document()).is_number()) continue;
    rows.push_back(row_of_judged(cell));
  }
  return rows;
}

std::string prometheus_of(std::span<const Row> rows) {
  Metric result("tutti_result", "1 for the verdict of the case: ok, wrong, unchecked, skipped, error.");
  Metric bandwidth("nccl_bus_bandwidth_gbs", "Bus bandwidth of a collective in GB/s.");
  Metric time("nccl_collective_exec_time_microseconds", "Median time of a collective in us.");
  Metric p2p_bandwidth("nccl_p2p_bus_bandwidth_gbs", "Bus bandwidth of point to point in GB/s.");
  Metric p2p_time("nccl_p2p_exec_time_microseconds", "Median time of point to point in us.");
  Metric low("tutti_exec_time_low_microseconds", "Lower end of the 95 % interval of the time in us.");
  Metric high("tutti_exec_time_high_microseconds", "Upper end of the 95 % interval of the time in us.");
  for (const Row& row : joined(rows)) {
    const std::string labels = labels_of(row);
    result.add(labels + "," + prometheus_label("verdict", to_string(row.verdict)), 1);
    if (!has_time(row)) continue;
    const bool is_p2p = is_point_to_point(row);
    (is_p2p ? p2p_time : time).add(labels, *row.time_median);
    if (row.busbw) (is_p2p ? p2p_bandwidth : bandwidth).add(labels, *row.busbw);
    if (row.time_ci_low) low.add(labels, *row.time_ci_low);
    if (row.time_ci_high) high.add(labels, *row.time_ci_high);
  }
  std::string text;
  for (const Metric* metric : {&result, &bandwidth, &time, &p2p_bandwidth, &p2p_time, &low, &high})
    text += metric->text();
  return text;
}

std::string github_action_benchmark_of(std::span<const Row> rows) {
  Document list = Document::array();
  for (const Row& row : joined(rows)) {
    if (!has_time(row)) continue;
    Document one{{"name", name_of(row)}, {"unit", "us"}, {"value", *row.time_median}};
    if (row.time_ci_low && row.time_ci_high) {
      one["range"] = fmt::format("{:.6g} to {:.6g}", *row.time_ci_low, *row.time_ci_high);
    }
    const std::string samples = row.samples > 0 ? counted(row.samples, "sample") + ", " : "";
    one["extra"] = fmt::format("{}{}{}{}", samples, counted(row.launches, "launch", "es"),
                               row.marks.empty() ? "" : ", ", row.marks);
    list.push_back(std::move(one));
  }
  return pretty(list);
}

std::string bencher_of(std::span<const Row> rows) {
  constexpr double kNsInUs = 1e3;
  constexpr double kBytesInGb = 1e9;
  Document all = Document::object();
  for (const Row& row : joined(rows)) {
    if (!has_time(row)) continue;
    Document latency{{"value", *row.time_median * kNsInUs}};
    if (row.time_ci_low && row.time_ci_high) {
      latency["lower_value"] = *row.time_ci_low * kNsInUs;
      latency["upper_value"] = *row.time_ci_high * kNsInUs;
    }
    Document one{{"latency", std::move(latency)}};
    if (row.busbw) one["bus_bandwidth"] = {{"value", *row.busbw * kBytesInGb}};
    all[name_of(row)] = std::move(one);
  }
  return pretty(all);
}

}  // namespace tutti::harness::report

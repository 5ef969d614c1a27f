// SPDX-License-Identifier: Apache-2.0
#include "harness/report/bundle.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cases/case.h"
#include "harness/draw/gallery.h"
#include "harness/measure/limit.h"
#include "harness/record/launches.h"
#include "harness/record/row_json.h"
#include "harness/report/table.h"
#include "harness/text/counted.h"

namespace tutti::harness::report {
namespace {

using Document = nlohmann::ordered_json;

/// More samples of one case in one launch than a picture can show are thinned.
constexpr std::size_t kMostSamplesShown = 2000;
constexpr std::size_t kMostSampledCells = 12;

Document words_of(const std::string& text) {
  Document words = Document::array();
  for (const std::string_view word : words_in(text)) words.push_back(word);
  return words;
}

template <class T>
Document or_null(const std::optional<T>& value) {
  return value ? Document(*value) : Document();
}

/// The cell's id without its bytes: what one curve goes through.
std::string series_of(std::string_view cell) {
  std::string series;
  for (std::size_t begin = 0; begin <= cell.size();) {
    const std::size_t end = std::min(cell.find('/', begin), cell.size());
    const std::string_view part = cell.substr(begin, end - begin);
    const std::string_view digits = part.substr(0, part.find_first_not_of("0123456789"));
    const std::string_view rest = part.substr(digits.size());
    const bool is_bytes = !digits.empty() && rest.starts_with('B');
    if (!is_bytes) series += fmt::format("{}{}", series.empty() ? "" : "/", part);
    if (is_bytes && rest.size() > 1) series += fmt::format("/{}", rest.substr(rest[1] == '.' ? 2 : 1));  // of a window
    begin = end + 1;
  }
  return series;
}

std::string starter_of_row(const Row& row) { return row.starter.empty() ? std::string(kOwnSpawn) : row.starter; }

/// One case under one starter, its launches joined.
struct Joined {
  Row row;
  std::vector<Row> launches;
  std::vector<std::size_t> places;  ///< of its rows in the document's list

  /// Whether the interval is one over launches, not over samples.
  [[nodiscard]] bool is_of_launches() const { return launches.size() > 1; }
};

/// The rows of one cell under one starter, a case after the other.
struct CellRows {
  std::string cell;
  std::string starter;
  std::vector<Joined> cases;
};

/// The cells of a result, in the order of their first rows.
std::vector<CellRows> cells_of(const std::vector<std::pair<const Row*, std::size_t>>& rows, const Launches& launches) {
  std::vector<CellRows> cells;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const auto& [row, place] : rows) {
    const std::string cell = cell_of_case(row->case_id);
    const auto [at, is_new] = known.try_emplace({cell, row->starter}, cells.size());
    if (is_new) cells.push_back({.cell = cell, .starter = starter_of_row(*row), .cases = {}});
    std::vector<Joined>& cases = cells[at->second].cases;
    auto same = std::ranges::find(cases, row->case_id, [](const Joined& one) { return one.row.case_id; });
    if (same == cases.end()) same = cases.insert(cases.end(), {.row = *row, .launches = {}, .places = {}});
    same->launches.push_back(*row);
    same->places.push_back(place);
  }
  for (const std::vector<Row>& joined : launches.cells()) {
    for (const Row& row : joined) {
      CellRows& cell = cells[known.at({cell_of_case(row.case_id), row.starter})];
      const auto same = std::ranges::find(cell.cases, row.case_id, [](const Joined& one) { return one.row.case_id; });
      if (same->is_of_launches()) same->row = row;
    }
  }
  return cells;
}

Document interval_of(const Joined& one) {
  if (!one.row.time_ci_low || !one.row.time_ci_high) return {};
  return one.is_of_launches() ? "launches" : "samples";
}

Document system_json(const Joined& one, const std::string& curve) {
  const Row& row = one.row;
  return {{"curve", curve},
          {"backend", row.backend},
          {"algorithm", row.algorithm},
          {"verdict", to_string(row.verdict)},
          {"reason", row.reason},
          {"time", or_null(row.time_median)},
          {"low", or_null(row.time_ci_low)},
          {"high", or_null(row.time_ci_high)},
          {"interval_of", interval_of(one)},
          {"launches", one.launches.size()},
          {"samples", row.samples},
          {"algbw", or_null(row.algbw)},
          {"busbw", or_null(row.busbw)},
          {"limit_time", or_null(row.limit_time)},
          {"limit_fraction", or_null(row.limit_fraction)},
          {"marks", words_of(row.marks)},
          {"disturbed", words_of(row.disturbed)},
          {"arrival_skew", or_null(row.arrival_skew)},
          {"last_rank", or_null(row.last_rank)},
          {"slowest_rank", or_null(row.slowest_rank)},
          {"line_ns", or_null(row.line_ns)},
          {"rows", one.places}};
}

/// Of two cases of one cell. Over launches it is the median of the ratios with its interval. Within one launch it is
/// the ratio of the medians, between the extremes that both intervals allow.
Document ratio_json(const Joined& ours, const Joined& theirs, const Launches& launches) {
  const bool is_of_launches = ours.is_of_launches() || theirs.is_of_launches();
  std::optional<double> ratio, low, high;
  if (is_of_launches) {
    const Summary ratios = launches.ratios(ours.row, theirs.row);
    ratio = ratios.median;
    low = ratios.ci_low;
    high = ratios.ci_high;
  } else {
    const Row &mine = ours.row, &other = theirs.row;
    ratio = ratio_within_a_launch(mine, other);
    if (ratio && mine.time_ci_low && mine.time_ci_high && other.time_ci_low && other.time_ci_high &&
        *other.time_ci_low > 0) {
      low = *mine.time_ci_low / *other.time_ci_high;
      high = *mine.time_ci_high / *other.time_ci_low;
    }
  }
  if (!ratio) return {};
  const Document of = low ? Document(is_of_launches ? "launches" : "samples") : Document();
  return {{"ratio", *ratio}, {"low", or_null(low)}, {"high", or_null(high)}, {"interval_of", of}};
}

/// The names of lines in pictures: the backend's, with the algorithm where a cell of the series has several of it.
class Curves {
 public:
  explicit Curves(const std::vector<CellRows>& cells) {
    for (const CellRows& cell : cells) {
      std::map<std::string, int> count;
      for (const Joined& one : cell.cases) {
        if (++count[one.row.backend] > 1) several_.insert({series_of(cell.cell), one.row.backend});
      }
    }
  }
  [[nodiscard]] std::string name(const CellRows& cell, const Row& row) const {
    return several_.contains({series_of(cell.cell), row.backend}) ? system_of(row) : row.backend;
  }

 private:
  std::set<std::pair<std::string, std::string>> several_;  ///< series and backend
};

Document cell_json(const CellRows& cell, const Curves& curves, const Launches& launches, std::size_t source) {
  const Row& first = cell.cases.front().row;
  Document systems = Document::array(), ratios = Document::array();
  for (const Joined& one : cell.cases) {
    systems.push_back(system_json(one, curves.name(cell, one.row)));
    for (const Joined& other : cell.cases) {
      if (!are_compared(one.row, other.row)) continue;
      Document ratio = ratio_json(one, other, launches);
      if (ratio.is_null()) continue;
      ratio["curve"] = curves.name(cell, one.row);
      ratio["reference"] = curves.name(cell, other.row);
      ratios.push_back(std::move(ratio));
    }
  }
  return {{"cell", cell.cell},
          {"series", series_of(cell.cell)},
          {"source", source},
          {"collective", first.collective},
          {"bytes", first.bytes},
          {"ranks", first.ranks},
          {"starter", cell.starter},
          {"hosts", hosts_text(first)},
          {"systems", std::move(systems)},
          {"ratios", std::move(ratios)}};
}

std::string kind_text(const ResultFile& result, const Document& document) {
  switch (result.kind) {
    case ResultFile::Kind::rows:
      return "rows";
    case ResultFile::Kind::samples:
      return "samples";
    case ResultFile::Kind::judged:
      return document.value("kind", std::string("gate"));
  }
  return "rows";
}

Document source_json(const ResultFile& result) {
  const auto document = Document::parse(result.document, nullptr, false);
  Document source{{"file", result.file}, {"kind", kind_text(result, document)}};
  for (const char* key : {"command", "seed", "started", "finished", "machine", "this", "other", "counts", "unfinished"})
    source[key] = document.contains(key) ? document[key] : Document();
  for (const char* key : {"versions", "environment", "measurement", "bound", "ranks"})
    source[key] = document.contains(key) ? document[key] : Document::object();
  for (const char* key : {"left_out", "remarks", "diagnoses"})
    source[key] = document.contains(key) ? document[key] : Document::array();
  const std::string started = start_of(result);
  if (source["started"].is_null() && !started.empty()) source["started"] = started;
  return source;
}

/// The commit of the program that measured; null if the document does not name it, as in a CSV.
Document commit_of(const Document& source) {
  const Document& machine = source["machine"];
  return machine.is_object() && machine.contains("commit") ? machine["commit"] : Document();
}

/// The part of a case's id that its cell's does not have.
struct SystemOfCase {
  std::string backend;
  std::string algorithm;
};

SystemOfCase system_of_case(const std::string& case_id) {
  const std::size_t slash = std::min(case_id.find('/'), case_id.size() - 1);
  const std::string system = case_id.substr(slash + 1, case_id.find('/', slash + 1) - slash - 1);
  const std::size_t dot = std::min(system.find('.'), system.size());
  return {.backend = system.substr(0, dot), .algorithm = dot < system.size() ? system.substr(dot + 1) : ""};
}

/// Place `i` of `shown` places that are evenly spaced over `all`.
std::size_t evenly(std::size_t i, std::size_t shown, std::size_t all) { return i * all / shown; }

/// Evenly spaced ones where there are too many, so that the distribution stays as it is.
Document samples_json(const SampledCase& one, std::size_t source) {
  Document times = Document::array(), marks = Document::array(), skews = Document::array(), last = Document::array();
  const std::size_t shown = std::min(one.samples.size(), kMostSamplesShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const Sample& sample = one.samples[evenly(i, shown, one.samples.size())];
    times.push_back(sample.global_us);
    marks.push_back(!sample.is_of_state ? "state" : !sample.is_valid ? "late" : "");
    skews.push_back(sample.skew_us);
    last.push_back(sample.arrived_last);
  }
  const std::string cell = cell_of_case(one.case_id);
  const SystemOfCase system = system_of_case(one.case_id);
  return {{"source", source},          {"case", one.case_id},           {"cell", cell},
          {"backend", system.backend}, {"algorithm", system.algorithm}, {"launch", one.launch},
          {"starter", one.starter},    {"taken", one.samples.size()},   {"time", std::move(times)},
          {"mark", std::move(marks)},  {"skew", std::move(skews)},      {"last", std::move(last)}};
}

/// The samples of one cell under one starter: of each of its cases and launches.
struct SampledCell {
  std::vector<std::pair<SampledCase, std::size_t>> cases;  ///< each with its source
  bool is_compared = false;                                ///< the samples of a limit alone are compared with nothing
};

/// The cells with samples, in the order of their first ones. A file that does not name the starters has those of the
/// rows.
std::vector<SampledCell> sampled_cells_of(std::span<const ResultFile> results) {
  std::map<std::pair<std::string, std::int64_t>, std::string> starters;  // by case and launch
  for (const ResultFile& result : results) {
    for (const Row& row : result.rows) starters[{row.case_id, row.launch}] = starter_of_row(row);
  }
  std::vector<SampledCell> cells;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t source = 0; source < results.size(); ++source) {
    for (SampledCase one : results[source].samples) {
      if (one.starter.empty()) one.starter = starters[{one.case_id, one.launch}];
      const auto [place, is_new] = known.try_emplace({cell_of_case(one.case_id), one.starter}, cells.size());
      if (is_new) cells.emplace_back();
      cells[place->second].is_compared |= !is_limit(system_of_case(one.case_id).backend);
      cells[place->second].cases.emplace_back(std::move(one), source);
    }
  }
  std::erase_if(cells, [](const SampledCell& cell) { return !cell.is_compared; });
  return cells;
}

/// Of many cells evenly spaced ones.
void add_samples(Document& bundle, std::span<const ResultFile> results) {
  const std::vector<SampledCell> cells = sampled_cells_of(results);
  const std::size_t shown = std::min(cells.size(), kMostSampledCells);
  for (std::size_t i = 0; i < shown; ++i) {
    for (const auto& [one, source] : cells[evenly(i, shown, cells.size())].cases) {
      bundle["samples"].push_back(samples_json(one, source));
    }
  }
  if (shown == cells.size()) return;
  bundle["omitted"].push_back(
      fmt::format("samples of {}: those of {} are shown, evenly over all", counted(cells.size(), "cell"), shown));
}

Document empty_bundle(const BundleInfo& info) {
  Document bundle{{"version", 1}, {"made_by", info.made_by}, {"made", info.made}};
  for (const char* key : {"sources", "rows", "cells", "judged", "samples"}) bundle[key] = Document::array();
  bundle["history"] = nullptr;
  bundle["omitted"] = Document::array();
  return bundle;
}

std::string text_of_bundle(const Document& bundle) {
  return bundle.dump(-1, ' ', false, Document::error_handler_t::replace);
}

/// The rows of one result that no result before it has, each with its place in the document's list.
class RowsOfBundle {
 public:
  explicit RowsOfBundle(Document& bundle) : bundle_(bundle) {}

  std::vector<std::pair<const Row*, std::size_t>> add(const ResultFile& result, std::size_t source) {
    std::vector<std::pair<const Row*, std::size_t>> added;
    for (const Row& row : result.rows) {
      if (!row.timestamp.empty() && !seen_.insert({row.case_id, row.starter, row.launch, row.timestamp}).second)
        continue;
      auto json = Document::parse(row_to_json(row), nullptr, false);
      json["source"] = source;
      added.emplace_back(&row, bundle_["rows"].size());
      bundle_["rows"].push_back(std::move(json));
    }
    if (added.size() < result.rows.size()) {
      bundle_["omitted"].push_back(fmt::format("{} of '{}' stand in it or in a file before it already, and count once",
                                               counted(result.rows.size() - added.size(), "row"), result.file));
    }
    return added;
  }

 private:
  Document& bundle_;
  std::set<std::tuple<std::string, std::string, std::int64_t, std::string>> seen_;
};

Launches launches_of(const std::vector<std::pair<const Row*, std::size_t>>& rows) {
  std::vector<std::string> order;
  std::set<std::string> known;
  for (const auto& [row, _] : rows) {
    std::string cell = cell_of_case(row->case_id);
    if (known.insert(cell).second) order.push_back(std::move(cell));
  }
  Launches launches(std::move(order));
  for (const auto& [row, _] : rows) launches.add(std::span(row, 1));
  return launches;
}

}  // namespace

namespace {

/// A picture of each own algorithm that has a row.
void add_schedules(Document& bundle) {
  std::set<const Algorithm*> used;
  for (const Document& row : bundle["rows"]) {
    if (row.value("backend", "") != "tutti") continue;
    const auto collective = parse_collective(row.value("collective", ""));
    if (!collective.is_ok()) continue;
    const std::string name = row.value("algorithm", "");
    const auto algorithm = find_algorithm(base_of(collective.value()), without_tuning(name));
    if (algorithm.is_ok()) used.insert(algorithm.value());
  }
  bundle["schedules"] = Document::array();
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!used.contains(algorithm)) continue;
    const draw::DrawnSchedule drawn{.algorithm = *algorithm, .problem = draw::shown_problem(*algorithm)};
    const auto svg = drawn_svg(drawn);
    if (!svg.is_ok()) continue;  // a schedule that is proved does not do that
    bundle["schedules"].push_back({{"name", fmt::format("{}-{}", to_string(algorithm->collective), algorithm->name)},
                                   {"title", title_of(drawn)},
                                   {"alt", algorithm->summary},
                                   {"svg", svg.value()}});
  }
}

}  // namespace

std::string bundle_of(std::span<const ResultFile> results, const BundleInfo& info) {
  Document bundle = empty_bundle(info);
  RowsOfBundle rows(bundle);
  for (std::size_t source = 0; source < results.size(); ++source) {
    const ResultFile& result = results[source];
    bundle["sources"].push_back(source_json(result));
    const auto added = rows.add(result, source);
    const Launches launches = launches_of(added);
    const std::vector<CellRows> cells = cells_of(added, launches);
    const Curves curves(cells);
    for (const CellRows& cell : cells) bundle["cells"].push_back(cell_json(cell, curves, launches, source));
    if (result.kind != ResultFile::Kind::judged) continue;
    auto judged = Document::parse(result.document, nullptr, false);
    for (Document& one : judged["cells"]) {
      one["source"] = source;
      bundle["judged"].push_back(std::move(one));
    }
  }
  add_samples(bundle, results);
  add_schedules(bundle);
  return text_of_bundle(bundle);
}

std::string history_bundle_of(std::vector<ResultFile> results, const BundleInfo& info,
                              std::vector<std::string> left_out) {
  Document bundle = empty_bundle(info);
  bundle["omitted"] = std::move(left_out);
  std::ranges::stable_sort(results, {}, start_of);
  const auto newest = std::find_if(results.rbegin(), results.rend(),
                                   [](const ResultFile& result) { return !machine_of(result).empty(); });
  const std::string machine = newest == results.rend() ? "" : machine_of(*newest);
  Document list = Document::array();
  std::vector<Document> series;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  for (const ResultFile& result : results) {
    const std::string its = machine_of(result);
    if (!its.empty() && its != machine) {
      bundle["omitted"].push_back(
          fmt::format("'{}' is left out: it is of the machine '{}', the newest of '{}'", result.file, its, machine));
      continue;
    }
    const Document source = source_json(result);
    bundle["sources"].push_back(source);
    list.push_back({{"file", result.file}, {"started", source["started"]}, {"commit", commit_of(source)}});
    std::vector<std::pair<const Row*, std::size_t>> rows;
    Document disturbed = Document::object();
    for (const Row& row : result.rows) {
      rows.emplace_back(&row, rows.size());
      for (const std::string_view cause : words_in(row.disturbed)) {
        const std::string name(cause);
        disturbed[name] = disturbed.value(name, 0) + 1;
      }
    }
    list.back()["rows"] = rows.size();
    list.back()["disturbed"] = std::move(disturbed);
    const Launches launches = launches_of(rows);
    const std::vector<CellRows> cells = cells_of(rows, launches);
    const Curves curves(cells);
    for (const CellRows& cell : cells) {
      for (const Joined& one : cell.cases) {
        const std::string curve = curves.name(cell, one.row);
        const auto [place, is_new] = known.try_emplace({cell.cell, curve, cell.starter}, series.size());
        if (is_new) {
          series.push_back({{"cell", cell.cell},
                            {"curve", curve},
                            {"starter", cell.starter},
                            {"collective", one.row.collective},
                            {"bytes", one.row.bytes},
                            {"unit", "us"},
                            {"points", Document::array()}});
        }
        series[place->second]["points"].push_back({{"result", list.size() - 1},
                                                   {"time", or_null(one.row.time_median)},
                                                   {"low", or_null(one.row.time_ci_low)},
                                                   {"high", or_null(one.row.time_ci_high)},
                                                   {"disturbed", words_of(one.row.disturbed)},
                                                   {"verdict", to_string(one.row.verdict)}});
      }
    }
  }
  bundle["history"] = {{"results", std::move(list)}, {"series", std::move(series)}};
  return text_of_bundle(bundle);
}

}  // namespace tutti::harness::report

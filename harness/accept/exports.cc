// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/exports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/accept/baseline.h"
#include "harness/accept/parts.h"
#include "harness/accept/sentences.h"
#include "harness/text/escapes.h"
#include "harness/text/json_writer.h"
#include "harness/text/text.h"
#include "impl/types/printable.h"

namespace tutti::harness::accept {
namespace {

using Document = nlohmann::ordered_json;

Document number_or_null(double value) { return std::isfinite(value) ? Document(value) : Document(nullptr); }
Document ratio_or_null(const std::optional<double>& log_ratio) {
  return log_ratio ? number_or_null(std::expm1(*log_ratio)) : Document(nullptr);
}

Document json_of(const AcceptReport& report, const Finding& finding) {
  Document one;
  one["class"] = to_string(finding.what);
  one["verdict"] = to_string(finding.judgement.verdict);
  one["sentence"] = sentence_of(report, finding);
  Document nodes = Document::array();
  if (!is_of_leaf(finding)) {
    for (const int node : {finding.first, finding.second}) {
      if (node >= 0) nodes.push_back(report.names.at(static_cast<std::size_t>(node)));
    }
    for (const int node : finding.members) nodes.push_back(report.names.at(static_cast<std::size_t>(node)));
  } else {
    one["leaf"] = leaf_name(finding.first);
  }
  one["nodes"] = std::move(nodes);
  const bool has_speed = finding.judgement.middle != 0;
  one["of_fleet"] = has_speed ? ratio_or_null(finding.judgement.middle) : Document(nullptr);
  one["low"] = ratio_or_null(finding.judgement.low);
  one["high"] = ratio_or_null(finding.judgement.high);
  if (finding.what == Class::configuration) {
    one["bare"] = {
        {"of_fleet", has_speed && finding.bare.verdict != Verdict::untested ? ratio_or_null(finding.bare.middle)
                                                                            : Document(nullptr)},
        {"low", ratio_or_null(finding.bare.low)},
        {"high", ratio_or_null(finding.bare.high)}};
  }
  one["tests"] = finding.tests;
  one["visits"] = finding.visits;
  if (!report.rails.empty())
    one["rail"] = finding.rail == kNoRail ? Document(nullptr) : Document(rail_of(report, finding));
  one["stage"] = finding.stage;
  if (!finding.detail.empty()) one["detail"] = finding.detail;
  if (!finding.over_time.empty()) {
    Document tests = Document::array();
    for (const TestOverTime& test : finding.over_time) {
      const double ratio = std::round(1e4 * std::expm1(test.off)) / 1e4;
      tests.push_back({test.visit, test.round, test.is_out ? "out" : "in", number_or_null(ratio)});
    }
    one["over_time"] = std::move(tests);
  }
  return one;
}

Document json_of(const AcceptReport& report, int node) {
  const auto at = static_cast<std::size_t>(node);
  const NodeFigures none{};
  const NodeFigures& figures = at < report.findings.nodes.size() ? report.findings.nodes[at] : none;
  Document one;
  one["node"] = report.names[at];
  one["leaf"] = report.are_leaves_known ? Document(leaf_name(report.leaves[at])) : Document(nullptr);
  one["verdict"] = to_string(verdict_of(report, node));
  one["reason"] = reason_of(report, node);
  one["alone"] = ratio_or_null(figures.alone);
  one["out"] = ratio_or_null(figures.out);
  one["in"] = ratio_or_null(figures.in);
  one["latency"] = figures.latency ? number_or_null(std::expm1(-*figures.latency)) : Document(nullptr);
  one["tests"] = figures.tests;
  return one;
}

/// Levels, spreads, and what they are of.
Document json_of_fleet(const Findings& findings) {
  Document fleet;
  const auto speed = [](double log_speed) {
    return log_speed == 0 ? Document(nullptr) : number_or_null(std::exp(log_speed));
  };
  fleet["near_bytes_per_second"] = speed(findings.level_near);
  fleet["far_bytes_per_second"] = speed(findings.level_far);
  fleet["latency_us"] =
      findings.level_latency == 0 ? Document(nullptr) : number_or_null(1e6 * std::exp(-findings.level_latency));
  fleet["spread_of_nodes"] = number_or_null(findings.spread_of_nodes);
  fleet["spread_of_repeats"] = number_or_null(findings.spread_of_repeats);
  return fleet;
}

/// [sender][receiver], a ratio to the level less 1. Null: there is none.
Document json_of_cells(const Findings& findings, std::size_t count) {
  if (count == 0 || findings.cells.size() != count * count) return nullptr;
  Document matrix = Document::array();
  for (std::size_t sender = 0; sender < count; ++sender) {
    Document row = Document::array();
    for (std::size_t receiver = 0; receiver < count; ++receiver) {
      const double cell = findings.cells[sender * count + receiver];
      row.push_back(std::isfinite(cell) ? Document(std::round(1e4 * std::expm1(cell)) / 1e4) : Document(nullptr));
    }
    matrix.push_back(std::move(row));
  }
  return matrix;
}

/// The verdict of a node on one rail, and the finding behind it.
struct RailVerdict {
  Verdict verdict = Verdict::untested;
  const Finding* blame = nullptr;
};
RailVerdict verdict_on_rail(const AcceptReport& report, int node, std::size_t rail) {
  const auto at = static_cast<std::size_t>(node);
  if (!report.absences.at(at).empty()) return {.verdict = Verdict::error};
  return {.verdict = report.rails[rail].findings.nodes.at(at).verdict,
          .blame = blame_on_rail(report, node, static_cast<int>(rail))};
}

Document json_of_rail(const AcceptReport& report, std::size_t rail) {
  const Findings& findings = report.rails[rail].findings;
  Document one;
  one["rail"] = report.rails[rail].name;
  one["fleet"] = json_of_fleet(findings);
  Document nodes = Document::array();
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const auto at = static_cast<std::size_t>(node);
    const NodeFigures& figures = findings.nodes.at(at);
    const RailVerdict verdict = verdict_on_rail(report, node, rail);
    nodes.push_back({{"node", report.names[at]},
                     {"verdict", to_string(verdict.verdict)},
                     {"reason", verdict.blame == nullptr ? "" : to_string(verdict.blame->what)},
                     {"out", ratio_or_null(figures.out)},
                     {"in", ratio_or_null(figures.in)},
                     {"latency", figures.latency ? number_or_null(std::expm1(-*figures.latency)) : Document(nullptr)},
                     {"tests", figures.tests}});
  }
  one["nodes"] = std::move(nodes);
  if (Document cells = json_of_cells(findings, report.names.size()); !cells.is_null())
    one["of_level"] = std::move(cells);
  return one;
}

}  // namespace

std::string accept_prometheus(const AcceptReport& report) {
  std::string verdicts =
      "# HELP tutti_accept_verdict 1 for the verdict that the node has\n# TYPE tutti_accept_verdict gauge\n";
  std::string by_rail;
  std::string ratios =
      "# HELP tutti_accept_of_fleet_ratio the node's speed over the fleet's median\n"
      "# TYPE tutti_accept_of_fleet_ratio gauge\n";
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const auto at = static_cast<std::size_t>(node);
    const std::string name = text::prometheus_label("node", report.names[at]);
    const Finding* const finding = blame_of(report, node);
    verdicts += fmt::format("tutti_accept_verdict{{{},{},{},{}}} 1\n", name,
                            text::prometheus_label("stage", finding == nullptr ? "" : finding->stage),
                            text::prometheus_label("class", finding == nullptr ? "" : to_string(finding->what)),
                            text::prometheus_label("verdict", to_string(verdict_of(report, node))));
    if (at >= report.findings.nodes.size()) continue;
    const NodeFigures& figures = report.findings.nodes[at];
    struct Row {
      const char* direction;
      const std::optional<double>& log_ratio;
    };
    const auto add = [&](const Row& row, const std::string& labels) {
      if (!row.log_ratio) return;
      ratios += fmt::format("tutti_accept_of_fleet_ratio{{{},{}}} {}\n", labels,
                            text::prometheus_label("direction", row.direction), std::exp(*row.log_ratio));
    };
    if (report.rails.empty()) {
      add({"out", figures.out}, name);
      add({"in", figures.in}, name);
    }
    add({"alone", figures.alone}, name);
    for (std::size_t rail = 0; rail < report.rails.size(); ++rail) {
      const std::string labels = fmt::format("{},{}", name, text::prometheus_label("rail", report.rails[rail].name));
      const NodeFigures& of_rail = report.rails[rail].findings.nodes.at(at);
      add({"out", of_rail.out}, labels);
      add({"in", of_rail.in}, labels);
      const RailVerdict verdict = verdict_on_rail(report, node, rail);
      const std::string_view what = verdict.blame == nullptr ? "" : to_string(verdict.blame->what);
      by_rail += fmt::format("tutti_accept_rail_verdict{{{},{},{}}} 1\n", labels, text::prometheus_label("class", what),
                             text::prometheus_label("verdict", to_string(verdict.verdict)));
    }
  }
  if (!by_rail.empty()) {
    verdicts +=
        "# HELP tutti_accept_rail_verdict 1 for the verdict that the node has on the rail\n"
        "# TYPE tutti_accept_rail_verdict gauge\n" +
        by_rail;
  }
  std::string parts;
  for (const Finding& finding : report.findings.parts) {
    if (is_of_node(finding)) continue;
    const PartNames part = names_of_part(report, finding);
    const std::string line =
        fmt::format("tutti_accept_part_verdict{{{},{},{},{}}} 1\n", text::prometheus_label("part", part.kind),
                    text::prometheus_label("name", part.name), text::prometheus_label("class", to_string(finding.what)),
                    text::prometheus_label("verdict", to_string(finding.judgement.verdict)));
    if (parts.find(line) == parts.npos) parts += line;
  }
  if (!parts.empty()) {
    parts =
        "# HELP tutti_accept_part_verdict 1 for the verdict of a part that is no node and did not pass\n"
        "# TYPE tutti_accept_part_verdict gauge\n" +
        parts;
  }
  return verdicts + parts + ratios +
         fmt::format(
             "# HELP tutti_accept_conclusion 1 for the verdict of the whole\n"
             "# TYPE tutti_accept_conclusion gauge\ntutti_accept_conclusion{{{}}} 1\n"
             "# HELP tutti_accept_end_seconds when the acceptance ended, since 1970\n"
             "# TYPE tutti_accept_end_seconds gauge\ntutti_accept_end_seconds {}\n",
             text::prometheus_label("verdict", to_string(conclusion_of(report))), report.ended_s);
}

std::string accept_json(const AcceptReport& report) {
  const Findings& findings = report.findings;
  Document document;
  document["kind"] = "accept";
  document["version"] = kVersionOfJson;
  document["verdict"] = to_string(conclusion_of(report));
  document["sentence"] = verdict_sentence(report);
  document["command"] = report.command;
  document["build"] = report.build;
  document["began"] = utc_minute(report.began_s);
  document["ended"] = utc_minute(report.ended_s);
  document["valid_hours"] = report.valid_hours;
  document["is_pretended"] = report.is_pretended;
  document["message_size"] = report.message_size;
  document["margin"] = report.limits.margin;
  document["too_fast"] = report.limits.too_fast;
  document["confidence"] = report.limits.confidence;
  document["fleet"] = json_of_fleet(findings);
  document["pairs"] = findings.pairs;
  document["tested_pairs"] = findings.tested_pairs;
  document["rounds"] = findings.rounds;
  document["planned_rounds"] = findings.planned_rounds;
  document["repeat_rounds"] = findings.repeats;
  document["is_interrupted"] = findings.is_interrupted;
  Document stages = Document::array();
  for (const StageReport& stage : report.stages) {
    Document one;
    one["stage"] = stage.name;
    one["left_out"] = stage.left_out;
    one["seconds"] = stage.seconds;
    stages.push_back(std::move(one));
  }
  document["stages"] = std::move(stages);
  Document inventory = Document::array();
  for (const InventoryNote& note : report.inventory) {
    inventory.push_back({{"severity", note.severity}, {"what", note.what}, {"why", note.why}, {"advice", note.advice}});
  }
  document["inventory"] = std::move(inventory);
  Document sizes = Document::array();
  for (const SizeFigures& figures : report.sizes) {
    Document one;
    one["nodes"] = figures.nodes;
    one["collective"] = figures.test.measure == Measure::all_reduce ? "all_reduce" : "all_to_all";
    one["bytes"] = figures.test.bytes;
    one["busbw_gbps"] = number_or_null(std::exp(figures.log_speed) * 1e-9);
    one["groups"] = figures.groups;
    sizes.push_back(std::move(one));
  }
  document["groups"] = std::move(sizes);
  if (!report.library.empty()) {
    document["library"] = {{"name", report.library}, {"stages", report.library_stages}, {"bare", report.bare_system}};
    if (report.ratio) {
      // A ratio less 1, as elsewhere.
      document["library"]["of_bare"] = {{"ratio", std::expm1(report.ratio->judgement.middle)},
                                        {"low", ratio_or_null(report.ratio->judgement.low)},
                                        {"high", ratio_or_null(report.ratio->judgement.high)},
                                        {"bytes", report.ratio->bytes},
                                        {"nodes", report.ratio->nodes.size()}};
    }
  }
  document["soaked_operations"] = report.soaked_operations;
  document["training_steps_per_second"] =
      report.steps_per_second > 0 ? Document(report.steps_per_second) : Document(nullptr);
  document["command_seconds"] = report.command_seconds > 0 ? Document(report.command_seconds) : Document(nullptr);
  Document init(nullptr);
  if (report.init.groups > 0) {
    Document slowest = Document::array();
    for (const int node : report.init.slowest) slowest.push_back(report.names[static_cast<std::size_t>(node)]);
    init = {{"groups", report.init.groups},
            {"median_s", report.init.median_s},
            {"most_s", report.init.most_s},
            {"slowest", std::move(slowest)}};
  }
  document["init"] = std::move(init);
  Document parts = Document::array();
  for (const Finding& finding : findings.parts) parts.push_back(json_of(report, finding));
  document["findings"] = std::move(parts);
  document["untested"] = untested_sentences(report);
  document["alike"] = alike_sentence(report);
  document["dips"] = dip_sentences(report);
  Document excluded = Document::array();
  for (int node = 0; node < std::ssize(report.names); ++node) {
    if (is_excluded(report, node)) excluded.push_back(report.names[static_cast<std::size_t>(node)]);
  }
  document["excluded"] = std::move(excluded);
  Document nodes = Document::array();
  for (int node = 0; node < std::ssize(report.names); ++node) nodes.push_back(json_of(report, node));
  document["nodes"] = std::move(nodes);
  if (Document cells = json_of_cells(findings, report.names.size()); !cells.is_null()) {
    document["of_level"] = std::move(cells);
  }
  if (!report.rails.empty()) {
    Document rails = Document::array();
    for (std::size_t rail = 0; rail < report.rails.size(); ++rail) rails.push_back(json_of_rail(report, rail));
    document["rails"] = std::move(rails);
  }
  return text::json_text(document, 1) + "\n";
}

}  // namespace tutti::harness::accept

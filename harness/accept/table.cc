// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/accept/sentences.h"
#include "harness/cases/sweep.h"
#include "harness/statistics/statistics.h"
#include "harness/text/text.h"

namespace tutti::harness::accept {
namespace {

constexpr std::size_t kMostSingly = 16;  // nodes that have a line each

std::size_t width_of_names(const AcceptReport& report) {
  std::size_t width = 4;
  for (const std::string& name : report.names) width = std::max(width, name.size());
  return width;
}

std::size_t width_of_rails(const AcceptReport& report) {
  std::size_t width = 4;
  for (const RailReport& rail : report.rails) width = std::max(width, rail.name.size());
  return width;
}

std::string percent_or_dash(const std::optional<double>& log_ratio) {
  return log_ratio ? signed_percent(*log_ratio) : "-";
}

/// Latency is a time: what is slower by its logarithm takes longer.
std::string latency_text(const NodeFigures& figures) {
  return figures.latency ? signed_percent(-*figures.latency) : "-";
}

/// The verdict of a node on one rail.
std::string verdict_text(const AcceptReport& report, int node, int rail) {
  if (!report.absences.at(static_cast<std::size_t>(node)).empty()) return std::string(to_string(Verdict::error));
  const RailReport& of_rail = report.rails.at(static_cast<std::size_t>(rail));
  std::string text(to_string(of_rail.findings.nodes.at(static_cast<std::size_t>(node)).verdict));
  const Finding* const blame = blame_on_rail(report, node, rail);
  if (blame != nullptr && blame->judgement.verdict == Verdict::fail) text += fmt::format(" {}", to_string(blame->what));
  return text;
}

std::string verdict_text(const AcceptReport& report, int node) {
  const Verdict verdict = verdict_of(report, node);
  std::string text(to_string(verdict));
  if (verdict == Verdict::fail) text += " " + reason_of(report, node);
  return text;
}

std::string node_lines(const AcceptReport& report) {
  const auto width = static_cast<int>(width_of_names(report));
  const int rails = std::max(1, static_cast<int>(report.rails.size()));
  const auto rail_width = static_cast<int>(width_of_rails(report));
  // A column of its own for rails, if there are any.
  const auto rail_column = [&](std::string_view name) {
    return report.rails.empty() ? std::string() : fmt::format("  {:<{}}", name, rail_width);
  };
  std::string text =
      fmt::format("# {:<{}}{}  {:<12} {:>6} {:>6} {:>6} {:>8}  {:<{}}  {}\n", "node", width, rail_column("rail"),
                  "verdict", "alone", "out", "in", "latency", "worst partner", width + 8, "leaf");
  for (int line_of = 0; line_of < std::ssize(report.names) * rails; ++line_of) {
    const int node = line_of / rails, rail = line_of % rails;
    const auto at = static_cast<std::size_t>(node);
    const NodeFigures none{};
    const Findings& measured =
        report.rails.empty() ? report.findings : report.rails[static_cast<std::size_t>(rail)].findings;
    const NodeFigures& figures = at < measured.nodes.size() ? measured.nodes[at] : none;
    const std::optional<double> alone =
        at < report.findings.nodes.size() && rail == 0 ? report.findings.nodes[at].alone : std::nullopt;
    std::string worst = "-";
    if (figures.worst && figures.worst_partner >= 0) {
      worst = fmt::format("{:<{}} {:>6}", report.names.at(static_cast<std::size_t>(figures.worst_partner)), width,
                          signed_percent(*figures.worst));
    }
    const std::string verdict = report.rails.empty() ? verdict_text(report, node) : verdict_text(report, node, rail);
    const std::string_view name = rail == 0 ? std::string_view(report.names[at]) : "";
    std::string line = fmt::format(
        "  {:<{}}{}  {:<12} {:>6} {:>6} {:>6} {:>8}  {:<{}}  {}", name, width,
        rail_column(report.rails.empty() ? "" : report.rails[static_cast<std::size_t>(rail)].name), verdict,
        percent_or_dash(alone), percent_or_dash(figures.out), percent_or_dash(figures.in), latency_text(figures), worst,
        width + 8, report.are_leaves_known ? leaf_name(report.leaves[at]) : "-");
    if (!report.absences[at].empty()) line += "  " + report.absences[at];
    text += line + "\n";
  }
  return text + "# percent of the fleet's median: alone, out and in are speeds, latency is a time\n";
}

std::string part_without_rail(const AcceptReport& report, const Finding& finding) {
  if (finding.what == Class::configuration) return report.library;
  if (finding.first < 0) return "fleet";
  if (is_of_leaf(finding)) return "uplink of " + leaf_name(finding.first);
  const std::string& first = report.names.at(static_cast<std::size_t>(finding.first));
  if (!is_of_link(finding)) return first;
  const bool is_one_way = finding.what == Class::link_dir || finding.what == Class::wrong;
  return fmt::format("{} {} {}", first, is_one_way ? "->" : "-",
                     report.names.at(static_cast<std::size_t>(finding.second)));
}

/// "node17", "node17, ib1".
std::string part_name(const AcceptReport& report, const Finding& finding) {
  const std::string rail = rail_of(report, finding), part = part_without_rail(report, finding);
  return rail.empty() ? part : fmt::format("{}, {}", part, rail);
}

std::string finding_lines(const AcceptReport& report) {
  std::vector<std::string> names;
  std::size_t width = 4;
  for (const Finding& finding : report.findings.parts) {
    names.push_back(part_name(report, finding));
    width = std::max(width, names.back().size());
  }
  const auto columns = static_cast<int>(width);
  std::string text = fmt::format("# {:<{}}  {:<20} {:>8}  {:<20} {:>5} {:>6}\n", "what", columns, "verdict", "by",
                                 "interval", "tests", "visits");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Finding& finding = report.findings.parts[i];
    const Judgement& judgement = finding.judgement;
    const bool has_speed = judgement.middle != 0;
    const std::string interval =
        judgement.low && judgement.high
            ? fmt::format("{} .. {}", signed_percent(*judgement.low), signed_percent(*judgement.high))
            : "-";
    text +=
        fmt::format("  {:<{}}  {:<20} {:>8}  {:<20} {:>5} {:>6}\n", names[i], columns,
                    fmt::format("{} {}", to_string(judgement.verdict), to_string(finding.what)),
                    has_speed ? signed_percent(judgement.middle) + " %" : "-", interval, finding.tests, finding.visits);
  }
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const auto at = static_cast<std::size_t>(node);
    if (report.absences[at].empty()) continue;
    text +=
        fmt::format("  {:<{}}  {:<20} {}\n", report.names[at], columns, to_string(Verdict::error), report.absences[at]);
  }
  return text;
}

std::string median_text(const std::vector<double>& log_ratios) {
  return log_ratios.empty() ? "-" : signed_percent(median_of(log_ratios));
}

std::string leaf_lines(const AcceptReport& report) {
  if (report.leaves.empty()) return {};
  const int leaves = *std::ranges::max_element(report.leaves) + 1;
  std::string text = fmt::format("# {:<8} {:>5} {:>7} {:>10} {:>9}\n", "leaf", "nodes", "passed", "median out", "in");
  for (int leaf = 0; leaf < leaves; ++leaf) {
    int nodes = 0, passed = 0;
    std::vector<double> out, in;
    for (int node = 0; node < std::ssize(report.names); ++node) {
      const auto at = static_cast<std::size_t>(node);
      if (report.leaves[at] != leaf) continue;
      ++nodes;
      passed += verdict_of(report, node) == Verdict::pass;
      if (at >= report.findings.nodes.size()) continue;
      const NodeFigures& figures = report.findings.nodes[at];
      if (figures.out) out.push_back(*figures.out);
      if (figures.in) in.push_back(*figures.in);
    }
    text += fmt::format("  {:<8} {:>5} {:>7} {:>10} {:>9}\n", report.are_leaves_known ? leaf_name(leaf) : "all", nodes,
                        passed, median_text(out), median_text(in));
  }
  return text;
}

std::string speed_text(double log_speed) {
  const double speed = std::exp(log_speed);
  constexpr std::array kUnits{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  std::size_t unit = 0;
  double shown = speed;
  while (shown >= 1000 && unit + 1 < kUnits.size()) {
    shown /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g} {}", shown, kUnits.at(unit));
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string local_minute(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local{};
  ::localtime_r(&time, &local);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local)};
}

/// A column for each test, a line for each size of groups.
std::string size_lines(const AcceptReport& report) {
  constexpr int kWidth = 16;
  constexpr std::size_t kShort = 1024;  // a bandwidth of fewer bytes says less than their time
  std::string head = fmt::format("# {:<9}", "groups of"), lines;
  int nodes = 0;
  for (const SizeFigures& figures : report.sizes) {
    const double bytes = static_cast<double>(figures.test.bytes);
    if (figures.nodes == report.sizes.front().nodes) {
      const char* const name = figures.test.measure == Measure::all_reduce ? "all_reduce" : "all_to_all";
      head += fmt::format(
          "{:>{}}", fmt::format("{} {}", name, format_bytes(static_cast<std::int64_t>(figures.test.bytes))), kWidth);
    }
    if (figures.nodes != nodes) lines += fmt::format("\n  {:<9}", figures.nodes);
    nodes = figures.nodes;
    lines += fmt::format(
        "{:>{}}",
        figures.test.bytes < kShort ? time_text(bytes / std::exp(figures.log_speed)) : speed_text(figures.log_speed),
        kWidth);
  }
  std::string text = report.sizes.empty() ? std::string() : head + lines + "\n";
  if (report.soaked_operations > 0) {
    text += fmt::format("# soak: {} operations on all nodes, each result verified\n",
                        with_commas(report.soaked_operations));
  }
  if (report.steps_per_second > 0) {
    text += fmt::format("# job: a training on all nodes, {:.4g} steps a second, every sum of gradients verified\n",
                        report.steps_per_second);
  }
  if (report.command_seconds > 0) {
    text += fmt::format("# job: the command ended well after {}\n", time_text(report.command_seconds));
  }
  return text;
}

/// `of`: "fleet", or "rail ib1".
std::string fleet_line(const AcceptReport& report, const Findings& findings, std::string_view of) {
  std::vector<std::string> words;
  const bool has_far = report.are_leaves_known && std::isfinite(findings.level_far) && findings.level_far != 0;
  const bool has_near = std::isfinite(findings.level_near) && findings.level_near != 0;
  if (has_near) words.push_back(speed_text(findings.level_near) + (has_far ? " within a leaf" : " a pair"));
  if (has_far) words.push_back(speed_text(findings.level_far) + " between leaves");
  if (std::isfinite(findings.level_latency) && findings.level_latency != 0) {
    words.push_back(time_text(std::exp(-findings.level_latency)));
  }
  if (words.empty()) return {};
  return fmt::format(
      "# {}: {}; spread of nodes {:.1f} %, of repeats {:.1f} %. {}\n", of, fmt::join(words, ", "),
      100 * findings.spread_of_nodes, 100 * findings.spread_of_repeats,
      report.is_pretended
          ? std::string("A pretended cluster: nothing was measured")
          : fmt::format("Valid until {} ({} h)", local_minute(report.ended_s + std::int64_t{3600} * report.valid_hours),
                        report.valid_hours));
}

/// What played, if a library did.
std::string library_line(const AcceptReport& report) {
  if (report.library.empty()) return {};
  std::string text = fmt::format("# {}: played by {}; all else by {}\n", fmt::join(report.library_stages, ", "),
                                 report.library, report.bare_system);
  if (report.library_stages.empty()) text = fmt::format("# {} played no stage\n", report.library);
  if (!report.ratio) return text;
  const Judgement& judgement = report.ratio->judgement;
  const auto percent = [](double log_ratio) { return 100 * std::exp(log_ratio); };
  const std::string interval =
      judgement.low && judgement.high
          ? fmt::format(" ({:.0f} to {:.0f})", percent(*judgement.low), percent(*judgement.high))
          : std::string();
  return text + fmt::format("# {} reaches {:.0f} %{} of {}: all_reduce {} on {} nodes, in turns\n", report.library,
                            percent(judgement.middle), interval, report.bare_system,
                            format_bytes(static_cast<std::int64_t>(report.ratio->bytes)), report.ratio->nodes.size());
}

std::string init_line(const AcceptReport& report) {
  const InitTimes& init = report.init;
  if (init.groups == 0) return {};
  std::vector<std::string> slowest;
  for (const int node : init.slowest) slowest.push_back(report.names[static_cast<std::size_t>(node)]);
  constexpr std::size_t kMostNamed = 4;
  const std::size_t more = slowest.size() > kMostNamed ? slowest.size() - kMostNamed : 0;
  slowest.resize(slowest.size() - more);
  return fmt::format(
      "# init, from the start of the processes to their first collective: {:.2f} s (median of {} groups), {:.2f} s at "
      "most: {}{}\n",
      init.median_s, init.groups, init.most_s, fmt::join(slowest, ", "),
      more > 0 ? fmt::format(" and {} more", more) : "");
}

std::vector<std::string> sizes_of_leaves(const AcceptReport& report) {
  std::map<int, int> sizes;
  for (const int leaf : report.leaves) ++sizes[leaf];
  std::vector<std::string> texts;
  for (const auto& [leaf, size] : sizes) texts.push_back(fmt::to_string(size));
  return texts;
}

}  // namespace

std::string accept_table(const AcceptReport& report) {
  std::string text = fmt::format("# tutti accept: {}\n", verdict_sentence(report));
  const bool is_short = report.names.size() <= kMostSingly;
  if (is_short) text += node_lines(report);
  if (!is_short && (!report.findings.parts.empty() || conclusion_of(report) == Conclusion::untested)) {
    text += finding_lines(report);
  }
  if (!is_short) text += leaf_lines(report);
  if (report.findings.parts.size() > 1) {
    for (const Finding& finding : report.findings.parts) {
      text += fmt::format("# {}: {}\n", to_string(finding.judgement.verdict), sentence_of(report, finding));
    }
  }
  if (const std::string sentence = alike_sentence(report); !sentence.empty()) text += fmt::format("# {}\n", sentence);
  for (const std::string& sentence : untested_sentences(report)) text += fmt::format("# {}\n", sentence);
  if (!report.findings.leaves.empty()) {
    const std::vector<std::string> sizes = sizes_of_leaves(report);
    text += fmt::format("# Leaves are not told; by the speeds there are {}, of {} nodes. --leaves FILE says them\n",
                        sizes.size(), text::joined(sizes));
  }
  for (const InventoryNote& note : report.inventory) text += fmt::format("# inventory: {}\n", note.what);
  for (const StageReport& stage : report.stages) {
    if (!stage.left_out.empty()) text += fmt::format("# stage {} is left out: {}\n", stage.name, stage.left_out);
  }
  text += size_lines(report);
  for (const std::string& sentence : dip_sentences(report)) text += fmt::format("# {}\n", sentence);
  if (report.rails.empty()) text += fleet_line(report, report.findings, "fleet");
  for (const RailReport& rail : report.rails) text += fleet_line(report, rail.findings, "rail " + rail.name);
  return text + library_line(report) + init_line(report);
}

}  // namespace tutti::harness::accept

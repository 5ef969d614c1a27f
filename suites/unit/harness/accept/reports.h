// SPDX-License-Identifier: Apache-2.0
// Reports as literals for the tests of sentences, tables and files.
#pragma once

#include <cmath>

#include <fmt/format.h>

#include "harness/accept/report.h"

namespace tutti::harness::accept {

/// Nodes in two leaves, all well.
inline AcceptReport healthy(int nodes) {
  AcceptReport report;
  report.are_leaves_known = true;
  report.findings.pairs = report.findings.tested_pairs = nodes * (nodes - 1) / 2;
  report.findings.rounds = report.findings.planned_rounds = nodes - 1;
  report.findings.level_near = std::log(11.6e9);
  report.findings.level_far = std::log(10.5e9);
  report.findings.level_latency = -std::log(2.3e-6);
  report.findings.spread_of_nodes = 0.008;
  report.findings.spread_of_repeats = 0.019;
  report.began_s = 1'700'000'000;
  report.ended_s = 1'700'000'600;
  for (int node = 0; node < nodes; ++node) {
    report.names.push_back(fmt::format("node{}", node + 1));
    report.leaves.push_back(2 * node / nodes);
    report.absences.emplace_back();
    report.findings.nodes.push_back({.out = 0.002, .in = -0.001, .worst_partner = (node + 1) % nodes, .worst = -0.01});
  }
  return report;
}

/// 10 % slow, between 9 and 11 %.
inline Judgement slow() {
  return {.verdict = Verdict::fail, .middle = std::log(0.90), .low = std::log(0.89), .high = std::log(0.91)};
}

/// Adds the finding, and its verdict to the node that it is about.
inline void add(AcceptReport& report, Finding finding) {
  if (is_of_node(finding)) {
    report.findings.nodes[static_cast<std::size_t>(finding.first)].verdict = finding.judgement.verdict;
  }
  report.findings.parts.push_back(std::move(finding));
}

/// node2 sends slowly, and node4 is not there.
inline AcceptReport with_a_slow_node() {
  AcceptReport report = healthy(4);
  add(report, {.what = Class::nic_out, .first = 1, .judgement = slow(), .stage = "pairs"});
  report.absences[3] = "ssh exit 255\n\"Permission denied\"\x1b[1m";
  return report;
}

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/report.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace tutti::harness::accept {
namespace {

bool is_suspicion(const Finding& finding) {
  return finding.judgement.verdict == Verdict::suspect || finding.judgement.verdict == Verdict::undecided;
}

/// "nic-out", "nic-out on ib1".
std::string class_on_rail(const AcceptReport& report, const Finding& finding) {
  const std::string rail = rail_of(report, finding);
  const std::string_view what =
      finding.judgement.verdict == Verdict::error ? "no such interface" : to_string(finding.what);
  return rail.empty() ? std::string(what) : fmt::format("{} on {}", what, rail);
}

}  // namespace

Verdict verdict_of(const AcceptReport& report, int node) {
  const auto at = static_cast<std::size_t>(node);
  if (!report.absences.at(at).empty()) return Verdict::error;
  return at < report.findings.nodes.size() ? report.findings.nodes[at].verdict : Verdict::untested;
}

std::string reason_of(const AcceptReport& report, int node) {
  const std::string& absence = report.absences.at(static_cast<std::size_t>(node));
  if (!absence.empty()) return absence;
  for (const Finding& finding : report.findings.parts) {
    if (is_about(finding, node)) return class_on_rail(report, finding);
  }
  for (const Finding& finding : report.findings.parts) {
    if (blames(finding, node)) return class_on_rail(report, finding);
  }
  const Verdict verdict = verdict_of(report, node);
  const bool is_of_library = std::ranges::any_of(report.findings.parts, [node](const Finding& finding) {
    return finding.what == Class::configuration && std::ranges::count(finding.members, node) > 0;
  });
  if (verdict == Verdict::skipped && is_of_library) return std::string(to_string(Class::configuration));
  if (verdict == Verdict::untested && report.findings.is_interrupted) return "the end came first";
  const bool is_split =
      std::ranges::any_of(report.findings.parts, [](const Finding& finding) { return finding.what == Class::split; });
  return is_split && verdict == Verdict::undecided ? std::string(to_string(Class::split)) : std::string();
}

const Finding* blame_on_rail(const AcceptReport& report, int node, int rail) {
  for (const Finding& finding : report.findings.parts) {
    if (blames(finding, node) && is_on_rail(finding, rail)) return &finding;
  }
  return nullptr;
}

std::string rail_of(const AcceptReport& report, const Finding& finding) {
  return finding.rail == kNoRail ? std::string() : report.rails.at(static_cast<std::size_t>(finding.rail)).name;
}

bool blames(const Finding& finding, int node) {
  if (is_about(finding, node)) return true;
  return finding.what == Class::wrong && (finding.first == node || finding.second == node);
}

bool is_excluded(const AcceptReport& report, int node) {
  return std::ranges::any_of(report.findings.parts, [node](const Finding& finding) {
    return finding.judgement.verdict == Verdict::fail && blames(finding, node);
  });
}

Conclusion conclusion_of(const AcceptReport& report) {
  Conclusion conclusion = Conclusion::passed;
  const auto at_least = [&conclusion](Conclusion one) { conclusion = std::min(conclusion, one); };
  if (report.findings.is_interrupted) at_least(Conclusion::interrupted);
  for (const Finding& finding : report.findings.parts) {
    if (finding.what == Class::wrong) {
      at_least(Conclusion::wrong);
    } else if (is_suspicion(finding)) {
      at_least(Conclusion::undecided);
    } else if (finding.judgement.verdict == Verdict::error) {
      at_least(Conclusion::untested);
    } else if (finding.judgement.verdict == Verdict::fail) {
      const bool is_library_broken = finding.what == Class::configuration && finding.judgement.middle == 0;
      at_least(is_broken(finding) || is_library_broken ? Conclusion::broken : Conclusion::slow);
    }
  }
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const Verdict verdict = verdict_of(report, node);
    const bool is_unknown = verdict == Verdict::error || verdict == Verdict::untested;
    if (is_unknown && !report.findings.is_interrupted) at_least(Conclusion::untested);
  }
  return conclusion;
}

std::string_view to_string(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::wrong:
    case Conclusion::broken:
    case Conclusion::slow:
      return "FAIL";
    case Conclusion::untested:
      return "ERROR";
    case Conclusion::undecided:
      return "UNDECIDED";
    case Conclusion::interrupted:
      return "INCOMPLETE";
    case Conclusion::passed:
      return "PASS";
  }
  return "?";
}

std::string leaf_name(int leaf) {
  constexpr int kLetters = 26;
  return leaf < kLetters ? std::string(1, static_cast<char>('A' + leaf)) : fmt::format("leaf {}", leaf + 1);
}

}  // namespace tutti::harness::accept

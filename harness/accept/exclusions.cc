// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/exclusions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/accept/parts.h"
#include "harness/accept/sentences.h"
#include "harness/text/number.h"
#include "harness/text/text.h"
#include "impl/types/printable.h"

namespace tutti::harness::accept {
namespace {

/// "nic-out -31.0% (-32.1..-29.8)".
std::string short_reason(const AcceptReport& report, int node) {
  const Finding* const finding = blame_of(report, node);
  if (finding == nullptr) return text::one_line(printable(reason_of(report, node)));
  std::string text(finding->judgement.verdict == Verdict::error ? "untested" : to_string(finding->what));
  if (finding->rail != kNoRail) text += " " + rail_of(report, *finding);
  const Judgement& judgement = finding->judgement;
  if (judgement.middle != 0) text += fmt::format(" {}%", signed_percent(judgement.middle));
  if (judgement.low && judgement.high) {
    text += fmt::format(" ({}..{})", signed_percent(*judgement.low), signed_percent(*judgement.high));
  }
  return text;
}

/// Comments on parts that fail, and are no node: no node is left out for them.
std::string part_comments(const AcceptReport& report) {
  std::string text;
  for (const Finding& finding : report.findings.parts) {
    if (is_of_node(finding) || finding.judgement.verdict != Verdict::fail || finding.what == Class::wrong) continue;
    const bool is_pair = finding.what == Class::hung && is_of_link(finding);
    const char* const warning = is_pair ? ": a job that has both hangs" : "";
    const PartNames part = names_of_part(report, finding);
    text += fmt::format("# {} {}  FAIL {}{}\n", part.kind, text::one_line(printable(part.name)),
                        to_string(finding.what), warning);
  }
  return text;
}

/// As it stands between quotes in a comment of one line.
std::string quotable(std::string_view reason) {
  std::string text = text::one_line(printable(reason));
  for (char& c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') c = '_';
  }
  return text;
}

/// What has been proposed for a node, and what has to pass before the node may be resumed.
struct Drain {
  std::string reason;
  std::string stage, rail;  ///< empty: not known; none
  double margin = 0;        ///< percent
};

constexpr std::string_view kOfNode = "# scontrol update NodeName=", kForReason = " State=DRAIN Reason=\"",
                           kAtStage = "\"  # stage ", kAtRail = ", rail ", kWithMargin = ", margin ", kLineEnd = " %";

std::string drain_line(std::string_view name, const Drain& drain) {
  return fmt::format("{}{}{}{}{}{}{}{}{:g}{}\n", kOfNode, name, kForReason, quotable(drain.reason), kAtStage,
                     quotable(drain.stage),
                     drain.rail.empty() ? "" : fmt::format("{}{}", kAtRail, quotable(drain.rail)), kWithMargin,
                     drain.margin, kLineEnd);
}

/// Takes what stands before `end` off `line`. Empty: `end` is not there.
std::optional<std::string> take_until(std::string_view& line, std::string_view end) {
  const std::size_t at = line.find(end);
  if (at == line.npos) return std::nullopt;
  std::string text(line.substr(0, at));
  line.remove_prefix(at + end.size());
  return text;
}

/// Empty: it is not a line of this kind.
std::optional<std::pair<std::string, Drain>> drain_in(std::string_view line) {
  if (!line.starts_with(kOfNode)) return std::nullopt;
  line.remove_prefix(kOfNode.size());
  const auto name = take_until(line, kForReason);
  const auto reason = take_until(line, kAtStage);
  auto stage = take_until(line, kWithMargin);
  const auto margin = take_until(line, kLineEnd);
  const auto percent = margin ? number_in<double>(*margin) : std::optional<double>();
  if (!name || !reason || !stage || !percent || !reason->starts_with("tutti:")) return std::nullopt;
  Drain drain{.reason = *reason, .stage = std::move(*stage), .rail = {}, .margin = *percent};
  if (const std::size_t at = drain.stage.find(kAtRail); at != drain.stage.npos) {
    drain.rail = drain.stage.substr(at + kAtRail.size());
    drain.stage.resize(at);
  }
  return std::pair(*name, std::move(drain));
}

std::map<std::string, Drain> drains_in(std::string_view old) {
  std::map<std::string, Drain> drains;
  while (!old.empty()) {
    const std::string_view line = old.substr(0, old.find('\n'));
    old.remove_prefix(std::min(line.size() + 1, old.size()));
    if (auto one = drain_in(line)) drains.insert(std::move(*one));
  }
  return drains;
}

/// Whether this run looked for what had been found, in the same place and as closely, and was not cut off.
bool has_looked_for(const AcceptReport& report, const Drain& drain) {
  const auto stage = std::ranges::find(report.stages, drain.stage, &StageReport::name);
  const bool is_played = stage != report.stages.end() && stage->left_out.empty() && !report.findings.is_interrupted;
  const bool has_rail =
      std::ranges::any_of(report.rails, [&](const RailReport& rail) { return quotable(rail.name) == drain.rail; });
  constexpr double kPercent = 100, kRounding = 1e-6;
  const bool is_as_close = kPercent * report.limits.margin <= drain.margin + kRounding;
  return is_played && (drain.rail.empty() || has_rail) && is_as_close;
}

/// What becomes of a node.
enum class Proposal { none, drain, keep, resume };
bool is_excluding(Proposal proposal) { return proposal == Proposal::drain || proposal == Proposal::keep; }

/// `drains`: of an earlier run.
Proposal proposal_for(const AcceptReport& report, int node, const std::map<std::string, Drain>& drains) {
  if (is_excluded(report, node)) return Proposal::drain;
  const auto drain = drains.find(report.names[static_cast<std::size_t>(node)]);
  if (drain == drains.end()) return Proposal::none;
  const bool has_passed = verdict_of(report, node) == Verdict::pass && has_looked_for(report, drain->second);
  return has_passed ? Proposal::resume : Proposal::keep;
}

Drain drain_of(const AcceptReport& report, int node, std::string_view page) {
  Drain drain{.reason = fmt::format("tutti:{} {}", short_reason(report, node), utc_minute(report.ended_s)),
              .margin = 100 * report.limits.margin};
  if (!page.empty()) drain.reason += fmt::format(" {}", page);
  if (const Finding* const finding = blame_of(report, node)) {
    drain.stage = finding->stage;
    drain.rail = rail_of(report, *finding);
  }
  return drain;
}

std::string resume_lines(std::string_view name, const Drain& drain) {
  return fmt::format(
      "# {0} passed. It was to be drained for \"{1}\": resume it only where sinfo -R still shows this reason\n"
      "# scontrol update NodeName={0} State=RESUME\n",
      name, quotable(drain.reason));
}

}  // namespace

std::vector<std::string> excluded_names(const AcceptReport& report, std::string_view old) {
  const std::map<std::string, Drain> drains = drains_in(old);
  std::vector<std::string> names;
  for (int node = 0; node < std::ssize(report.names); ++node) {
    if (is_excluding(proposal_for(report, node, drains))) names.push_back(report.names[static_cast<std::size_t>(node)]);
  }
  return names;
}

std::string hosts_file(const AcceptReport& report, std::string_view old) {
  const std::map<std::string, Drain> drains = drains_in(old);
  std::string text = fmt::format("# tutti accept, {}: {}\n", utc_minute(report.ended_s),
                                 text::one_line(printable(verdict_sentence(report))));
  std::string others;
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const std::string& name = report.names[static_cast<std::size_t>(node)];
    const bool is_kept_out = proposal_for(report, node, drains) == Proposal::keep;
    if (verdict_of(report, node) == Verdict::pass && !is_excluded(report, node) && !is_kept_out) {
      text += name + "\n";
      continue;
    }
    const std::string why =
        is_kept_out ? "an earlier run: " + quotable(drains.at(name).reason) : short_reason(report, node);
    others += fmt::format("# {}  {} {}\n", name, to_string(verdict_of(report, node)), why);
  }
  return text + others + part_comments(report);
}

std::string slurm_file(const AcceptReport& report, std::string_view page, std::string_view old) {
  const std::map<std::string, Drain> drains = drains_in(old);
  std::string commands, kept, resumed, comments;
  std::vector<std::string> excluded;
  for (int node = 0; node < std::ssize(report.names); ++node) {
    const std::string& name = report.names[static_cast<std::size_t>(node)];
    const Proposal proposal = proposal_for(report, node, drains);
    if (is_excluding(proposal)) excluded.push_back(name);
    if (proposal == Proposal::drain) commands += drain_line(name, drain_of(report, node, page));
    if (proposal == Proposal::keep) {
      kept += fmt::format("# {} was found by an earlier run, and has not passed that stage since\n", name);
      kept += drain_line(name, drains.at(name));
    }
    if (proposal == Proposal::resume) resumed += resume_lines(name, drains.at(name));
    const Verdict verdict = verdict_of(report, node);
    if (proposal != Proposal::drain && verdict != Verdict::pass) {
      comments += fmt::format("# {} is {}: {}\n", name, to_string(verdict), short_reason(report, node));
    }
  }
  std::string text =
      excluded.empty() ? "\n# no node is to be excluded\n" : fmt::format("--exclude={}\n", fmt::join(excluded, ","));
  commands += kept + resumed;
  if (!commands.empty()) {
    text += "# To review. tutti runs none of these commands. Ask squeue first whether a node has a job.\n";
  }
  return text + commands + comments + part_comments(report);
}

}  // namespace tutti::harness::accept

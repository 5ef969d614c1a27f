// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/junit.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/accept/parts.h"
#include "harness/accept/sentences.h"
#include "harness/text/escapes.h"

namespace tutti::harness::accept {
namespace {

constexpr std::string_view kStageOfPairs = "pairs", kStageOfShifts = "shifts";

/// What a stage says of a part.
struct Told {
  Verdict verdict = Verdict::pass;
  std::string text = {};
};

/// Cases, and how many of them did not pass.
class JunitSuite {
 public:
  explicit JunitSuite(const StageReport& stage) : stage_(stage) {}

  void add(std::string_view kind, std::string_view name, const Told& told) {
    const std::string of = fmt::format("tutti.accept.{}.{}", stage_.name, kind);
    const std::string base = text::xml_escaped(name);
    std::string own = base;
    for (int count = 2; !names_.insert(fmt::format("{} {}", of, own)).second; ++count) {
      own = fmt::format("{}, {}", base, count);
    }
    ++tests_;
    cases_ += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n{}    </testcase>\n", of, own, result_of(told));
  }

  /// `out`: what is said beside the cases, if it is not empty.
  [[nodiscard]] std::string xml(std::string_view out) const {
    const std::string said =
        out.empty() ? std::string() : fmt::format("    <system-out>{}</system-out>\n", text::xml_escaped(out));
    return fmt::format(
        "  <testsuite name=\"accept.{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n"
        "{}{}  </testsuite>\n",
        stage_.name, tests_, failures_, errors_, skipped_, stage_.seconds, cases_, said);
  }

 private:
  /// Returns what stands within the case, and counts it.
  std::string result_of(const Told& told) {
    const std::string message = text::xml_escaped(told.text);
    if (told.verdict == Verdict::pass) {
      return message.empty() ? std::string() : fmt::format("      <system-out>{}</system-out>\n", message);
    }
    if (told.verdict == Verdict::skipped) {
      ++skipped_;
      return fmt::format("      <skipped message=\"{}\"/>\n", message);
    }
    const bool has_failed = told.verdict == Verdict::fail;
    ++(has_failed ? failures_ : errors_);
    return fmt::format("      <{} message=\"{}\" type=\"{}\"/>\n", has_failed ? "failure" : "error", message,
                       to_string(told.verdict));
  }

  const StageReport& stage_;
  std::set<std::string> names_;  ///< after their classnames
  std::string cases_;
  int tests_ = 0, failures_ = 0, errors_ = 0, skipped_ = 0;
};

/// Returns 0 for an unknown stage, so that what it found is told.
std::size_t place_of_stage(const AcceptReport& report, std::string_view name) {
  const auto stage = std::ranges::find(report.stages, name, &StageReport::name);
  return stage == report.stages.end() ? 0 : static_cast<std::size_t>(stage - report.stages.begin());
}

/// The suite of this stage tells who is not there.
std::size_t place_of_first_played(const AcceptReport& report) {
  const auto stage = std::ranges::find_if(report.stages, [](const StageReport& one) { return one.left_out.empty(); });
  return stage == report.stages.end() ? 0 : static_cast<std::size_t>(stage - report.stages.begin());
}

/// Whether a later stage leaves the node out for it, or does not judge its speed.
bool keeps_out(const Finding& finding, int node) {
  const bool is_member =
      finding.first == node || finding.second == node || std::ranges::count(finding.members, node) > 0;
  return blames(finding, node) || (is_member && (is_broken(finding) || finding.what == Class::configuration));
}

/// What one stage says of all nodes, leaves and parts.
class StageCases {
 public:
  StageCases(const AcceptReport& report, std::size_t place)
      : report_(report), place_(place), stage_(report.stages[place]), suite_(stage_) {}

  std::string xml(std::string_view out) {
    for (int node = 0; node < std::ssize(report_.names); ++node) suite_.add("node", name_of(node), of_node(node));
    if (stage_.name == kStageOfPairs || stage_.name == kStageOfShifts) add_rails();
    if (stage_.name == kStageOfPairs) add_leaves();
    for (const Finding& finding : report_.findings.parts) {
      if (!is_found_here(finding) || is_of_node(finding) || told_.contains(&finding)) continue;
      const PartNames part = names_of_part(report_, finding);
      suite_.add(part.kind, part.name, by(finding));
    }
    return suite_.xml(out);
  }

 private:
  void add_rails() {
    for (int rail = 0; rail < std::ssize(report_.rails); ++rail) {
      const std::string& name = report_.rails[static_cast<std::size_t>(rail)].name;
      for (int node = 0; node < std::ssize(report_.names); ++node) {
        suite_.add("rail", fmt::format("{}, {}", name_of(node), name), of_node(node, rail));
      }
    }
  }

  void add_leaves() {
    const std::set<int> leaves(report_.leaves.begin(), report_.leaves.end());
    if (!report_.are_leaves_known || leaves.size() < 2) return;
    for (const int leaf : leaves) {
      const Finding* const uplink = first_found([&](const Finding& one) {
        return is_found_here(one) && is_of_leaf(one) && (one.first == leaf || one.second == leaf);
      });
      if (uplink != nullptr) told_.insert(uplink);
      suite_.add("leaf", leaf_name(leaf), uplink == nullptr ? of_leaf(leaf, leaves.size()) : by(*uplink));
    }
  }

  /// A leaf of which nothing is found.
  [[nodiscard]] Told of_leaf(int leaf, std::size_t leaves) const {
    if (!stage_.left_out.empty()) return {.verdict = Verdict::skipped, .text = stage_.left_out};
    bool has_played = false;
    for (int node = 0; node < std::ssize(report_.names); ++node) {
      if (report_.leaves[static_cast<std::size_t>(node)] != leaf) continue;
      const Verdict verdict = of_node(node).verdict;
      has_played |= verdict != Verdict::skipped && verdict != Verdict::error;
    }
    if (!has_played) return {.verdict = Verdict::skipped, .text = "none of its nodes played"};
    const Finding* const split =
        first_found([&](const Finding& one) { return is_found_here(one) && one.what == Class::split; });
    if (split != nullptr) return by(*split);  // then uplinks are not tried
    if (!what_is_missing().empty()) return {.verdict = Verdict::untested, .text = what_is_missing()};
    return {.text = leaves == 2 ? "slow both ways is untested: no third leaf is beside it" : ""};
  }

  /// `rail`: the node is judged on this one alone.
  [[nodiscard]] Told of_node(int node, int rail = kNoRail) const {
    const std::string& absence = report_.absences.at(static_cast<std::size_t>(node));
    const auto is_its = [&](const Finding& one) { return rail == kNoRail || is_on_rail(one, rail); };
    if (!absence.empty() && place_ == place_of_first_played(report_)) {
      return {.verdict = Verdict::error, .text = absence};
    }
    if (absence.empty()) {
      const Finding* const found =
          first_found([&](const Finding& one) { return blames(one, node) && is_its(one) && is_found_here(one); });
      if (found != nullptr) return by(*found);
      if (Told open = without_finding(node, rail); open.verdict != Verdict::pass) return open;
    }
    if (!stage_.left_out.empty()) return {.verdict = Verdict::skipped, .text = stage_.left_out};
    if (!absence.empty()) return {.verdict = Verdict::skipped, .text = absence};
    if (stage_.name == "inventory") return {};
    const Finding* const before = first_found([&](const Finding& one) {
      return keeps_out(one, node) && is_its(one) && place_of_stage(report_, one.stage) < place_;
    });
    const bool has_played = std::ranges::find(stage_.nodes, node) != stage_.nodes.end();
    // Stages of speeds alone do not judge a node that is slow in pairs. Alone is judged at the end.
    const bool is_of_speed = stage_.name == "shifts" || stage_.name == "rings";
    if (before != nullptr && (!has_played || (is_of_speed && before->stage != "alone"))) {
      return {.verdict = Verdict::skipped,
              .text = fmt::format("found in stage {}: {}", before->stage, sentence_of(report_, *before))};
    }
    if (!has_played) return {.verdict = Verdict::skipped, .text = "it did not play"};
    std::string missing = what_is_missing(rail);
    return missing.empty() ? Told{} : Told{.verdict = Verdict::untested, .text = std::move(missing)};
  }

  /// A verdict for which no finding is about the node: it was not tested, or there are nodes of two speeds.
  [[nodiscard]] Told without_finding(int node, int rail) const {
    const Finding* const blame = rail == kNoRail ? blame_of(report_, node) : blame_on_rail(report_, node, rail);
    if (blame != nullptr) return {};
    const Verdict verdict = rail == kNoRail ? verdict_of(report_, node)
                                            : findings_on(rail).nodes.at(static_cast<std::size_t>(node)).verdict;
    const Finding* const split = first_found([](const Finding& one) { return one.what == Class::split; });
    const bool is_of_split = verdict == Verdict::undecided && split != nullptr;
    if (place_of_stage(report_, is_of_split ? split->stage : kStageOfPairs) != place_) return {};
    // The reason of a node that is found on another rail is not one of this rail.
    std::string reason = blame_of(report_, node) == nullptr ? reason_of(report_, node) : std::string();
    return {.verdict = verdict, .text = reason.empty() ? what_is_missing(rail) : std::move(reason)};
  }

  /// "2 of 32 rounds were played"; empty: the stage is whole, as far as its rounds are counted.
  [[nodiscard]] std::string what_is_missing(int rail = kNoRail) const {
    const Findings& findings = rail == kNoRail ? report_.findings : findings_on(rail);
    if (stage_.name != kStageOfPairs || findings.rounds >= findings.planned_rounds) return {};
    return fmt::format("{} of {} rounds were played", findings.rounds, findings.planned_rounds);
  }

  template <class Is>
  [[nodiscard]] const Finding* first_found(Is is_it) const {
    const auto found = std::ranges::find_if(report_.findings.parts, is_it);
    return found == report_.findings.parts.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool is_found_here(const Finding& finding) const {
    return place_of_stage(report_, finding.stage) == place_;
  }
  [[nodiscard]] Told by(const Finding& finding) const {
    return {.verdict = finding.judgement.verdict, .text = sentence_of(report_, finding)};
  }
  [[nodiscard]] const Findings& findings_on(int rail) const {
    return report_.rails[static_cast<std::size_t>(rail)].findings;
  }
  [[nodiscard]] const std::string& name_of(int node) const { return report_.names[static_cast<std::size_t>(node)]; }

  const AcceptReport& report_;
  std::size_t place_;
  const StageReport& stage_;
  JunitSuite suite_;
  std::set<const Finding*> told_;  ///< by the case of a leaf
};

}  // namespace

std::string accept_junit(const AcceptReport& report) {
  std::string suites;
  for (std::size_t place = 0; place < report.stages.size(); ++place) {
    suites += StageCases(report, place).xml(place == 0 ? verdict_sentence(report) : std::string());
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n{}</testsuites>\n", suites);
}

}  // namespace tutti::harness::accept

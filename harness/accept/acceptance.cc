// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/acceptance.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/accept/alone.h"
#include "harness/accept/configuration.h"
#include "harness/accept/groups.h"
#include "harness/accept/on_leaves.h"
#include "harness/accept/rails.h"
#include "harness/accept/rings.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

bool is_in(const std::vector<std::string>& stages, std::string_view stage) {
  return std::ranges::find(stages, stage) != stages.end();
}
bool has(const AcceptPlan& plan, std::string_view stage) { return is_in(plan.stages, stage); }

/// Plays the stages in their order, and keeps what they found.
class Acceptance {
 public:
  Acceptance(Crew& crew, const AcceptPlan& plan, Observer& observer)
      : crew_(&crew), plan_(plan), pairs_(plan.pairs), observer_(observer) {
    for (const std::string& name : all_stages()) report_.stages.push_back({.name = name});
    for (int node = 0; node < crew.nodes(); ++node) {
      report_.names.push_back(crew.name_of(node));
      report_.leaves.push_back(crew.leaf_of(node));
      report_.absences.push_back(crew.absence_of(node));
    }
    for (const std::string& name : crew.rails()) report_.rails.push_back({.name = name});
    for (RailReport& rail : report_.rails) rail.findings.nodes.resize(report_.names.size());
    report_.library = crew.library();
    report_.bare_system = crew.bare_system();
    report_.limits = plan.pairs.limits;
    report_.message_size = plan_for("pairs").bytes;
    report_.findings.nodes.resize(report_.names.size());
  }

  AcceptReport run() {
    std::optional<Alone> alone;
    play("alone", nodes("alone", Passed::all), 1, [&](const std::vector<int>& /*nodes*/) {
      alone.emplace(*crew_, pairs_, plan_.alone_sizes, observer_);
      alone->visit();
      lost_alone_ = alone->lost();
      if (is_of_library("alone")) compare_alone(*alone);
    });
    play("pairs", nodes("pairs", Passed::all), 2, [&](const std::vector<int>& nodes) {
      PairsPlan plan = plan_for("pairs");
      for (int node = 0; node < crew_->nodes(); ++node) {
        if (std::ranges::find(nodes, node) == nodes.end()) plan.skipped.push_back(node);
      }
      if (!report_.rails.empty()) return examine_rails(plan);
      report_.findings = examine_pairs(*crew_, plan, observer_);
      report_.findings.nodes.resize(report_.names.size());
      if (report_.findings.leaves.empty()) return;
      report_.leaves = report_.findings.leaves;
      crew_ = &on_leaves_.emplace(*crew_, report_.leaves);
    });
    constexpr std::size_t kLeastForMiddle = 3;
    for (const std::string_view stage : {"shifts", "rings"}) {
      const bool is_by_rail = stage == "shifts" && !report_.rails.empty();
      const auto playing = nodes(stage, is_by_rail ? Passed::all : Passed::all_but_broken);
      const PairsPlan plan = plan_for(stage);
      play(stage, playing, kLeastForMiddle, [&](const std::vector<int>& nodes) {
        if (is_by_rail) return shift_rails(plan, kLeastForMiddle);
        Rings rings(*crew_, plan, std::string(stage), observer_);
        rings.run(stage == "shifts" ? visits_of_shifts(nodes, pairs_.seed) : visits_of_rings(nodes, pairs_.seed));
        rings.add_to(report_.findings);
      });
    }
    play("groups", nodes("groups", Passed::all_but_failed), 2, [&](const std::vector<int>& nodes) {
      GroupsStage groups(*crew_, pairs_, nodes, observer_);
      groups.run(plan_.group_tests.empty() ? usual_group_tests(pairs_.bytes) : plan_.group_tests);
      groups.add_to(report_.findings);
      report_.sizes = groups.figures();
    });
    play("soak", nodes("soak", Passed::all_but_failed), 2, [&](const std::vector<int>& nodes) {
      GroupsStage groups(*crew_, pairs_, nodes, observer_);
      groups.soak(plan_.soak_seconds);
      groups.add_to(report_.findings);
      report_.soaked_operations = groups.soaked_operations();
    });
    play("job", nodes("job", Passed::all_but_failed), 2, [&](const std::vector<int>& nodes) {
      GroupsStage groups(*crew_, pairs_, nodes, observer_);
      if (plan_.job.words.empty()) {
        groups.train();
      } else {
        groups.run_command();
      }
      groups.add_to(report_.findings);
      report_.steps_per_second = groups.steps_per_second();
      report_.command_seconds = groups.command_seconds();
    });
    if (alone) {
      timed("alone", [&] {
        alone->visit();
        alone->add_to(report_.findings);
      });
    }
    report_.findings.is_interrupted |= observer_.is_stopped();
    if (alone && !observer_.is_stopped())
      tested_.insert(stage_of("alone").nodes.begin(), stage_of("alone").nodes.end());
    const bool are_pairs_missing =
        report_.findings.is_interrupted && has(plan_, "pairs") && report_.findings.planned_rounds == 0;
    const bool has_tests = std::ranges::any_of(plan_.stages, [](const std::string& one) { return one != "inventory"; });
    for (int node = 0; has_tests && node < std::ssize(report_.findings.nodes); ++node) {
      Verdict& verdict = report_.findings.nodes[at(node)].verdict;
      if (verdict == Verdict::pass && (are_pairs_missing || !tested_.contains(node))) verdict = Verdict::untested;
    }
    return std::move(report_);
  }

 private:
  /// What a stage needs of its nodes.
  enum class Passed {
    all,             ///< that they are there
    all_but_broken,  ///< and that they work with each other, however slowly
    all_but_failed,  ///< and that no finding is about them
  };

  /// Returns the plan with the messages of that stage.
  [[nodiscard]] PairsPlan plan_for(std::string_view stage) const {
    PairsPlan plan = pairs_;
    if (const auto own = plan_.bytes.find(std::string(stage)); own != plan_.bytes.end()) plan.bytes = own->second;
    return plan;
  }

  /// Pairs on each rail by itself.
  void examine_rails(const PairsPlan& of_all) {
    for (int rail = 0; rail < std::ssize(report_.rails); ++rail) {
      RailReport& of_rail = report_.rails[at(rail)];
      OnRail crew(*crew_, rail);
      std::vector<Finding> absent;
      std::ptrdiff_t there = 0;
      for (int node = 0; node < crew_->nodes(); ++node) {
        const bool is_skipped = std::ranges::find(of_all.skipped, node) != of_all.skipped.end();
        there += crew.absence_of(node).empty() && !is_skipped;
        std::string why = crew_->absence_of_rail(node, rail);
        if (why.empty() || !crew_->absence_of(node).empty()) continue;
        absent.push_back(
            {.what = Class::dead, .first = node, .judgement = {.verdict = Verdict::error}, .detail = std::move(why)});
      }
      PairsPlan plan = of_all;
      if (plan.baseline && !plan.baseline->rails.empty()) plan.baseline = plan.baseline->rails.at(of_rail.name);
      if (there >= 2) of_rail.findings = examine_pairs(crew, plan, observer_);
      of_rail.findings.nodes.resize(report_.names.size());
      for (Finding& one : absent) {
        of_rail.findings.nodes[at(one.first)].verdict = Verdict::error;
        of_rail.findings.parts.push_back(std::move(one));
      }
      add_rail(report_.findings, of_rail.findings, rail);
      of_rail.findings.parts.clear();
    }
    merge_rails(report_.findings.parts, crew_->rails());
  }

  /// Shifts on each rail by itself.
  void shift_rails(const PairsPlan& plan, std::size_t least) {
    std::vector<Finding> found;
    for (int rail = 0; rail < std::ssize(report_.rails); ++rail) {
      OnRail crew(*crew_, rail);
      std::vector<int> playing = nodes("shifts", Passed::all_but_broken, rail);
      std::erase_if(playing, [&](int node) { return !crew.absence_of(node).empty(); });
      if (playing.size() < least) continue;
      Rings rings(crew, plan, "shifts", observer_);
      rings.run(visits_of_shifts(playing, pairs_.seed));
      Findings of_rail;
      of_rail.nodes = report_.rails[at(rail)].findings.nodes;
      std::ranges::copy_if(report_.findings.parts, std::back_inserter(of_rail.parts),
                           [rail](const Finding& one) { return is_on_rail(one, rail); });
      rings.add_to(of_rail);
      for (Finding& one : of_rail.parts) {
        if (!one.stage.empty()) continue;  // it was known before
        one.rail = rail;
        found.push_back(std::move(one));
      }
      report_.rails[at(rail)].findings.nodes = std::move(of_rail.nodes);
    }
    merge_rails(found, crew_->rails());
    for (Finding& one : found) {
      if (is_of_node(one)) report_.findings.nodes[at(one.first)].verdict = Verdict::fail;
      report_.findings.parts.push_back(std::move(one));
    }
  }

  /// Whether nodes of `stage` have to have passed `earlier`: it needs it, or a stage that needs it.
  [[nodiscard]] bool needs_passed(std::string_view stage, std::string_view earlier) const {
    const auto said = plan_.needs.find(std::string(stage));
    if (said == plan_.needs.end()) return !is_in(plan_.not_blocking, earlier);
    return std::ranges::any_of(said->second, [&](const std::string& needed) {
      const auto& all = all_stages();
      const auto place = [&all](std::string_view name) { return std::ranges::find(all, name); };
      return needed == earlier || (place(earlier) < place(needed) && needs_passed(needed, earlier));
    });
  }

  /// Nodes that passed what the stage needs: what the plan says, or else `usually`. `rail`: what was found on another
  /// one does not count.
  [[nodiscard]] std::vector<int> nodes(std::string_view stage, Passed usually, std::optional<int> rail = {}) const {
    const auto said = plan_.needs.find(std::string(stage));
    const auto counts = [&](std::string_view earlier) { return needs_passed(stage, earlier); };
    const Passed passed = said != plan_.needs.end() ? Passed::all_but_failed : usually;
    std::vector<int> playing;
    for (int node = 0; node < crew_->nodes(); ++node) {
      const bool is_out = std::ranges::any_of(report_.findings.parts, [&](const Finding& one) {
        if (rail && !is_on_rail(one, *rail)) return false;
        const bool is_its = one.first == node || one.second == node || std::ranges::count(one.members, node) > 0;
        if (passed == Passed::all || !is_its || is_of_leaf(one) || !counts(one.stage)) return false;
        return is_broken(one) || (passed == Passed::all_but_failed && is_about(one, node));
      });
      const bool is_lost = counts("alone") && std::ranges::find(lost_alone_, node) != lost_alone_.end();
      if (!is_out && !is_lost && crew_->absence_of(node).empty()) playing.push_back(node);
    }
    return playing;
  }

  template <class Play>
  void timed(std::string_view stage, Play play) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    play();
    stage_of(stage).seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    for (Finding& one : report_.findings.parts) {
      if (one.stage.empty()) one.stage = stage;
    }
  }

  /// Whether the library plays the stage: its measures are alike in this.
  [[nodiscard]] bool is_of_library(std::string_view stage) const {
    if (crew_->library().empty()) return false;
    const Measure measure = stage == "alone"                        ? Measure::alone
                            : stage == "pairs"                      ? Measure::bandwidth
                            : stage == "shifts" || stage == "rings" ? Measure::ring
                            : stage == "soak"                       ? Measure::soak
                            : stage != "job"                        ? Measure::all_reduce
                            : plan_.job.words.empty()               ? Measure::training
                                                                    : Measure::command;
    return crew_->plays_library(measure);
  }

  /// What the library failed in is played by the bare transport too.
  void compare_library(std::string_view stage) {
    if (!is_of_library(stage)) return;
    report_.library_stages.emplace_back(stage);
    if (stage == "alone" || observer_.is_stopped()) return;
    const std::vector<int> good = nodes("", Passed::all_but_failed);
    const PairsPlan plan = plan_for(stage);
    Configuration configuration(*crew_, plan, good, observer_);
    for (Finding& one : report_.findings.parts) {
      if (!one.stage.empty() || one.judgement.verdict != Verdict::fail) continue;
      if (const auto found = configuration.of(one)) acquit(std::exchange(one, *found));
    }
    merge_alike();
    if (stage != "groups") return;
    report_.ratio = configuration.ratio();
    if (report_.ratio && report_.ratio->judgement.verdict == Verdict::fail) {
      report_.findings.parts.push_back(configuration.finding_of(*report_.ratio));
    }
    std::ranges::stable_sort(report_.findings.parts, {}, gravity_of);
  }

  /// Nodes in which the library fails by itself, and the bare transport does not, are not to blame.
  void compare_alone(Alone& alone) {
    Configuration configuration(*crew_, pairs_, {}, observer_);
    if (auto found = configuration.of_alone(alone.dead(), alone.tests())) alone.acquit(std::move(*found));
  }

  /// Two groups that failed for the same reason are told once.
  void merge_alike() {
    std::vector<Finding> kept;
    for (Finding& one : report_.findings.parts) {
      const bool is_there = std::ranges::any_of(kept, [&](const Finding& other) {
        std::vector<int> mine = one.members, its = other.members;
        std::ranges::sort(mine);
        std::ranges::sort(its);
        return one.what == Class::configuration && other.what == one.what && mine == its && one.rail == other.rail;
      });
      if (!is_there) kept.push_back(std::move(one));
    }
    report_.findings.parts = std::move(kept);
  }

  /// The nodes of a finding that is not of their hardware have no other verdict by it.
  void acquit(const Finding& finding) {
    const auto passes = [&](Findings& findings, int node, int rail) {
      const bool is_known = std::ranges::any_of(report_.findings.parts, [&](const Finding& one) {
        return is_about(one, node) && (rail == kNoRail || is_on_rail(one, rail));
      });
      if (!is_known && findings.nodes[at(node)].verdict == Verdict::fail) {
        findings.nodes[at(node)].verdict = Verdict::pass;
      }
    };
    if (!is_of_node(finding)) return;
    passes(report_.findings, finding.first, kNoRail);
    for (int rail = 0; rail < std::ssize(report_.rails); ++rail) {
      passes(report_.rails[at(rail)].findings, finding.first, rail);
    }
  }

  /// Plays a stage if it is asked for, and if enough nodes passed what it needs.
  template <class Play>
  void play(std::string_view stage, const std::vector<int>& nodes, std::size_t least, Play play) {
    if (!has(plan_, stage)) {
      stage_of(stage).left_out = "it is not asked for";
    } else if (const auto why = plan_.left_out.find(std::string(stage)); why != plan_.left_out.end()) {
      stage_of(stage).left_out = why->second;
    } else if (nodes.size() < least) {
      stage_of(stage).left_out = least == 1 ? "it needs a node" : fmt::format("it needs {} nodes that passed", least);
    } else if (observer_.is_stopped()) {
      stage_of(stage).left_out = "the end came first";
    } else {
      stage_of(stage).nodes = nodes;
      if (const auto said = plan_.needs.find(std::string(stage)); said != plan_.needs.end()) {
        std::ranges::copy_if(said->second, std::back_inserter(stage_of(stage).unmet),
                             [this](const std::string& earlier) { return !stage_of(earlier).left_out.empty(); });
      }
      timed(stage, [&] {
        play(nodes);
        compare_library(stage);
      });
      if (stage != "alone" && !observer_.is_stopped()) tested_.insert(nodes.begin(), nodes.end());  // it visits twice
    }
  }

  [[nodiscard]] StageReport& stage_of(std::string_view name) {
    return *std::ranges::find(report_.stages, name, &StageReport::name);
  }

  Crew* crew_;
  std::optional<OnLeaves> on_leaves_;  ///< if speeds have shown them
  const AcceptPlan& plan_;
  PairsPlan pairs_;
  std::set<int> tested_;         ///< nodes that a stage has tested to its end
  std::vector<int> lost_alone_;  ///< nodes that did not answer, hung or computed wrongly by themselves
  Observer& observer_;
  AcceptReport report_;
};

}  // namespace

const std::vector<std::string>& all_stages() {
  static const std::vector<std::string> stages{"inventory", "alone",  "pairs", "shifts",
                                               "rings",     "groups", "soak",  "job"};
  return stages;
}

AcceptReport accept_cluster(Crew& crew, const AcceptPlan& plan, Observer& observer) {
  return Acceptance(crew, plan, observer).run();
}

Rounds rounds_of(const AcceptPlan& plan, int nodes) {
  Rounds rounds;
  const auto rounds_in = [](const RingVisits& visits) {
    std::size_t count = 0;
    for (const auto& visit : visits) count += visit.size();
    return static_cast<int>(count);
  };
  std::vector<int> all;
  for (int node = 0; node < nodes; ++node) all.push_back(node);
  const int rails = std::max(plan.rails, 1);
  if (has(plan, "alone")) rounds.alone = Alone::kVisits * Alone::kRepeats;
  if (has(plan, "shifts") && nodes >= 3) rounds.shifts = rails * rounds_in(visits_of_shifts(all, plan.pairs.seed));
  if (has(plan, "rings") && nodes >= 3) rounds.rings = rounds_in(visits_of_rings(all, plan.pairs.seed));
  if (has(plan, "groups") && nodes >= 2) {
    rounds.groups = GroupsStage::kVisits * GroupsStage::kOrders * static_cast<int>(group_sizes(nodes).size());
  }
  if (has(plan, "pairs") && nodes >= 2) {
    const PairsForecast forecast = pairs_forecast(nodes, plan.pairs);
    rounds.pairs = rails * forecast.rounds;
    rounds.repeats = rails * forecast.repeats;
  }
  return rounds;
}

}  // namespace tutti::harness::accept

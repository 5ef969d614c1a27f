// SPDX-License-Identifier: Apache-2.0
// examine_pairs: the first pass, what it makes suspects, their repeats, and what is found.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/accept/cells.h"
#include "harness/accept/culprits.h"
#include "harness/accept/findings.h"
#include "harness/accept/first_pass.h"
#include "harness/accept/leaves_by_speed.h"
#include "harness/accept/pair_player.h"
#include "harness/accept/repeats.h"
#include "harness/accept/screen.h"
#include "harness/accept/small_clusters.h"
#include "harness/accept/split.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr std::string_view kStage = "pairs";
constexpr int kVisitsOfTwo = 2, kRepeatsOfTwo = 16;
constexpr int kTooFewForSpells = 4;  // nodes: their spells cannot be told from those of their partners

/// Speeds of the first pass by node, without cells whose other end is slow.
void set_figures(Findings& findings, const Suspects& suspects, const FirstPass& pass, const PairPlayer& player) {
  const Matrix& relative = suspects.relative;
  const int count = relative.nodes();
  findings.nodes.resize(at(count));
  std::vector<double> of_nodes;
  for (int node = 0; node < count; ++node) {
    NodeFigures& figures = findings.nodes[at(node)];
    std::vector<double> out, in;
    for (int other = 0; other < count; ++other) {
      const double there = relative(node, other), back = relative(other, node);
      const double slower = std::fmin(there, back);
      if (!std::isnan(slower) && (!figures.worst || slower < *figures.worst)) {
        figures.worst = slower;
        figures.worst_partner = other;
      }
      if (suspects.nodes[at(other)].in == 0) out.push_back(there);
      if (suspects.nodes[at(other)].out == 0) in.push_back(back);
    }
    if (const double middle = median_of_numbers(out); !std::isnan(middle)) figures.out = middle;
    if (const double middle = median_of_numbers(in); !std::isnan(middle)) figures.in = middle;
    if (figures.out && suspects.nodes[at(node)].are_good()) of_nodes.push_back(*figures.out);
  }
  for (const Sample& one : pass.samples) {
    if (std::isnan(one.log_speed)) continue;
    ++findings.nodes[at(one.sender)].tests;
    ++findings.nodes[at(one.receiver)].tests;
  }
  findings.spread_of_nodes = robust_deviation(of_nodes);
  findings.cells = relative.values();
  findings.level_near = or_zero(suspects.near);
  findings.level_far = or_zero(suspects.far);

  std::vector<double> near, far;
  for (const Sample& one : pass.latencies) {
    (player.is_far(one.sender, one.receiver) ? far : near).push_back(one.log_speed);
  }
  const double near_level = median_of_numbers(near), far_level = median_of_numbers(far);
  findings.level_latency = or_zero(std::isnan(near_level) ? far_level : near_level);
  std::vector<std::vector<double>> by_node(at(count));
  for (const Sample& one : pass.latencies) {
    const double off = one.log_speed - (player.is_far(one.sender, one.receiver) ? far_level : near_level);
    by_node[at(one.sender)].push_back(off);
    by_node[at(one.receiver)].push_back(off);
  }
  for (int node = 0; node < count; ++node) {
    if (const double middle = median_of_numbers(by_node[at(node)]); !std::isnan(middle)) {
      findings.nodes[at(node)].latency = middle;
    }
  }
}

/// Counts the pairs of all nodes, also of those that are not there.
void count_pairs(Findings& findings, const FirstPass& pass, const PairPlayer& player) {
  const int count = static_cast<int>(player.leaves().size());
  std::vector<bool> tested(at(count) * at(count));
  for (const Sample& one : pass.samples) {
    if (!std::isnan(one.log_speed)) tested[at(one.sender) * at(count) + at(one.receiver)] = true;
  }
  for (int one = 0; one < count; ++one) {
    for (int other = one + 1; other < count; ++other) {
      const std::size_t there = at(one) * at(count) + at(other), back = at(other) * at(count) + at(one);
      ++findings.pairs;
      findings.tested_pairs += tested[there] && tested[back];
    }
  }
}

/// The tests of the suspect in the first pass, at most so many, evenly spread over it.
void add_first_pass(Finding& finding, const FirstPass& pass, const Fit& fit, const Suspects& suspects,
                    const PairPlayer& player) {
  constexpr std::size_t kMost = 400;
  for (const Sample& one : pass.samples) {
    const bool is_there = finding.second < 0 ? one.sender == finding.first || one.receiver == finding.first
                                             : (one.sender == finding.first && one.receiver == finding.second) ||
                                                   (one.sender == finding.second && one.receiver == finding.first);
    if (!is_there || std::isnan(one.log_speed)) continue;
    const double level = suspects.level(player.leaves()[at(one.sender)], player.leaves()[at(one.receiver)]);
    const double off = one.log_speed - fit.shifts[at(one.round)] - level;
    if (std::isnan(off)) continue;
    finding.over_time.push_back({.round = one.round, .is_out = one.sender == finding.first, .off = off});
  }
  const std::size_t stride = (finding.over_time.size() + kMost - 1) / kMost;
  if (stride < 2) return;
  std::vector<TestOverTime> kept;
  for (std::size_t i = 0; i < finding.over_time.size(); i += stride) kept.push_back(finding.over_time[i]);
  finding.over_time = std::move(kept);
}

/// Its repeats, visit by visit.
void add_repeats(Finding& finding, const Repeats& repeats) {
  const bool is_link = finding.second >= 0;
  for (const Way way : kWays) {
    SuspectPart part{.kind = SuspectPart::Kind::node, .first = finding.first, .way = way};
    if (is_link) {
      part = {.kind = SuspectPart::Kind::link,
              .first = way == Way::out ? finding.first : finding.second,
              .second = way == Way::out ? finding.second : finding.first};
    }
    const auto evidence = repeats.evidence().find(part);
    if (evidence == repeats.evidence().end()) continue;
    int visit = 0;
    for (const std::vector<double>& values : evidence->second.visits) {
      ++visit;
      int round = 0;
      for (const double off : values) {
        finding.over_time.push_back({.visit = visit, .round = round++, .is_out = way == Way::out, .off = off});
      }
    }
  }
}

bool has_tests_over_time(const Finding& finding) { return is_of_node(finding) || is_of_link(finding); }

/// The verdict of each node follows from what was found about it.
void set_verdicts(Findings& findings, const PairPlayer& player, const PairsPlan& plan) {
  for (int node = 0; node < std::ssize(findings.nodes); ++node) {
    NodeFigures& figures = findings.nodes[at(node)];
    const bool plays = std::ranges::find(player.nodes(), node) != player.nodes().end();
    const bool is_skipped = std::ranges::find(plan.skipped, node) != plan.skipped.end();
    const bool is_whole = findings.rounds == findings.planned_rounds;  // a few rounds say too little
    const bool is_tested = plays && figures.tests > 0 && is_whole;
    figures.verdict = is_skipped ? Verdict::skipped : is_tested ? Verdict::pass : Verdict::untested;
    for (const Finding& finding : findings.parts) {
      // It is not known which of two kinds of nodes is right.
      if (finding.what == Class::split && figures.verdict == Verdict::pass) figures.verdict = Verdict::undecided;
      const bool is_of_wrong = finding.what == Class::wrong && (finding.first == node || finding.second == node);
      if (!is_about(finding, node) && !is_of_wrong) continue;
      if (figures.verdict != Verdict::fail) figures.verdict = finding.judgement.verdict;
    }
  }
}

/// Two nodes: there is no third to compare with. One direction is compared with the other, and both with a baseline.
Findings examine_two(PairPlayer& player, const PairsPlan& plan, Observer& observer, Findings findings) {
  const int one = player.nodes()[0], other = player.nodes()[1];
  std::vector<std::vector<double>> differences, there_and_back;
  FirstPass pass;
  pass.planned = kVisitsOfTwo * kRepeatsOfTwo;
  for (int visit = 0; visit < kVisitsOfTwo; ++visit) {
    if (visit > 0) player.pause();
    differences.emplace_back();
    there_and_back.emplace_back();
    for (int repeat = 0; repeat < kRepeatsOfTwo && !player.is_stopped(); ++repeat) {
      observer.on_round(kStage, ++pass.played, pass.planned);
      const auto speeds = player.play_both_ways({{.sender = one, .receiver = other}}).front();
      if (std::isnan(speeds[0]) || std::isnan(speeds[1])) break;
      pass.samples.push_back({.round = pass.rounds, .sender = one, .receiver = other, .log_speed = speeds[0]});
      pass.samples.push_back({.round = pass.rounds + 1, .sender = other, .receiver = one, .log_speed = speeds[1]});
      pass.rounds += 2;
      differences.back().push_back(speeds[0] - speeds[1]);
      there_and_back.back().push_back(std::max(speeds[0], speeds[1]));
    }
  }
  findings.rounds = pass.played;
  findings.planned_rounds = pass.planned;
  count_pairs(findings, pass, player);
  findings.nodes.resize(player.leaves().size());
  for (const Sample& sample : pass.samples) {
    for (const int node : {sample.sender, sample.receiver}) ++findings.nodes[at(node)].tests;
  }
  std::vector<double> speeds;
  for (const Sample& sample : pass.samples) speeds.push_back(sample.log_speed);
  const double level = or_zero(median_of_numbers(speeds));
  (player.is_far(one, other) ? findings.level_far : findings.level_near) = level;
  findings.parts = player.findings();
  if (findings.parts.empty()) {
    Judgement asymmetry = judge(differences, plan.limits);
    const bool is_other_way = asymmetry.verdict != Verdict::fail || asymmetry.is_fast;
    for (auto& visit : differences) {
      for (double& value : visit) value *= is_other_way ? -1 : 1;
    }
    if (is_other_way) asymmetry = judge(differences, plan.limits);
    if (asymmetry.verdict == Verdict::fail && !asymmetry.is_fast) {
      findings.parts.push_back({.what = Class::link_dir,
                                .first = is_other_way ? other : one,
                                .second = is_other_way ? one : other,
                                .judgement = asymmetry,
                                .tests = static_cast<int>(pass.samples.size()),
                                .visits = kVisitsOfTwo});
    }
    if (plan.baseline) {
      const double base = player.is_far(one, other) ? plan.baseline->far : plan.baseline->near;
      for (auto& visit : there_and_back) {
        for (double& value : visit) value -= base;
      }
      const Judgement against = judge(there_and_back, plan.limits);
      if (against.verdict == Verdict::fail) {
        findings.parts.push_back({.what = Class::either,
                                  .first = one,
                                  .second = other,
                                  .judgement = against,
                                  .tests = static_cast<int>(pass.samples.size()),
                                  .visits = kVisitsOfTwo});
      }
    }
  }
  set_verdicts(findings, player, plan);
  findings.is_interrupted = player.is_stopped();
  return findings;
}

/// A slow link whose tests do not decide.
bool is_open_link(const Finding& one) {
  const bool is_open = one.judgement.verdict == Verdict::suspect || one.judgement.verdict == Verdict::undecided;
  return is_open && (one.what == Class::link || one.what == Class::link_dir);
}

/// A node with many open links is unsteady itself.
void blame_node_of_many_links(std::vector<Finding>& found, const std::set<int>& blamed) {
  constexpr std::size_t kMany = 3;
  std::map<int, std::set<int>> partners;
  for (const Finding& one : found) {
    if (!is_open_link(one) || blamed.contains(one.first) || blamed.contains(one.second)) continue;
    partners[one.first].insert(one.second);
    partners[one.second].insert(one.first);
  }
  for (const auto& [node, others] : partners) {
    if (others.size() < kMany) continue;
    found.push_back({.what = Class::unsteady,
                     .first = node,
                     .judgement = {.verdict = Verdict::suspect},
                     .visits = Repeats::kVisits,
                     .detail = fmt::format("its paths to {} nodes are slow at times", others.size())});
  }
}

/// An open link is no finding if one of its nodes is: the node explains it.
void fold_open_links(std::vector<Finding>& found) {
  const auto blamed_nodes = [&found] {
    std::set<int> nodes;
    for (const Finding& one : found) {
      const bool is_sure = one.judgement.verdict == Verdict::fail || one.judgement.verdict == Verdict::suspect;
      if (is_of_node(one) && is_sure) nodes.insert(one.first);
    }
    return nodes;
  };
  blame_node_of_many_links(found, blamed_nodes());
  std::erase_if(found, [nodes = blamed_nodes()](const Finding& one) {
    return is_open_link(one) && (nodes.contains(one.first) || nodes.contains(one.second));
  });
}

}  // namespace

PairsForecast pairs_forecast(int nodes, const PairsPlan& plan) {
  if (nodes < 2) return {};
  if (nodes == 2) return {.rounds = kVisitsOfTwo * kRepeatsOfTwo, .repeats = 0};
  std::vector<int> all, leaves;
  for (int node = 0; node < nodes; ++node) {
    constexpr int kUsualLeaf = 16;
    all.push_back(node);
    leaves.push_back(node / kUsualLeaf);
  }
  const int rounds = sweeps_of(nodes) * static_cast<int>(rounds_of_sweep(all, leaves, plan.is_full).size());
  // Two visits decide of most suspects. A look at a link plays its ends with third nodes, then the link. Where these
  // are all nodes, the controls play after them. More nodes have more suspects.
  constexpr int kVisitsOfLink = 2, kNodesForControls = 6, kNodesOfSuspect = 16;
  const int plays_of_look = nodes < kNodesForControls ? 3 : 2;
  const int looks = Repeats::kPerVisit;
  return {.rounds = rounds, .repeats = looks * (kVisitsOfLink * plays_of_look + nodes / kNodesOfSuspect)};
}

Findings examine_pairs(Crew& crew, const PairsPlan& plan, Observer& observer) {
  PairPlayer player(crew, plan, [&observer] { return observer.is_stopped(); });
  const int count = static_cast<int>(player.nodes().size());
  TUTTI_ASSERT(count >= 2, "{} nodes have no pair", count);
  Findings findings;
  if (count == 2) return examine_two(player, plan, observer, std::move(findings));

  const FirstPass pass =
      play_first_pass(player, plan, [&observer](int done, int planned) { observer.on_round(kStage, done, planned); });
  findings.rounds = pass.played;
  findings.planned_rounds = pass.planned;
  count_pairs(findings, pass, player);
  Fit fit = fit_of(pass.samples, player.leaves(), pass.rounds, pass.sweeps);
  if (!plan.are_leaves_known) {
    Matrix latencies(fit.cells.nodes());
    for (const Sample& one : pass.latencies) latencies(one.sender, one.receiver) = one.log_speed;
    auto leaves = leaves_by_speed(latencies, player.nodes(), plan.limits);
    if (!leaves) leaves = leaves_by_speed(fit.cells, player.nodes(), plan.limits);
    if (leaves) {
      findings.leaves = *leaves;
      player.set_leaves(std::move(*leaves));
      fit = fit_of(pass.samples, player.leaves(), pass.rounds, pass.sweeps);
    }
  }
  Suspects suspects = suspects_in(fit.cells, player.leaves(), count, plan.limits);
  const NoiseOfTests noise = noise_in(pass.samples, crew.nodes());
  findings.spread_of_repeats = noise.fleet;

  std::vector<Finding> found;
  bool is_by_baseline = false;
  auto split = split_of(fit.cells, player, plan.limits);
  if (plan.baseline) {
    // It says which of two kinds of nodes is right, if one of them is.
    if (split) {
      Suspects of_right = suspects_in(fit.cells, player.leaves(), count, plan.limits, &*plan.baseline);
      if (std::ranges::count_if(of_right.nodes, &BothWays::are_good) >= 2) {
        suspects = std::move(of_right);
        split.reset();
        is_by_baseline = true;
      }
    }
    if (!is_by_baseline) {
      if (auto fleet = fleet_against(*plan.baseline, pass, player, plan.limits)) found.push_back(std::move(*fleet));
    }
  }
  set_figures(findings, suspects, pass, player);
  auto link = link_of_three(pass, player, plan.limits);
  if (link && link->judgement.verdict == Verdict::fail) {
    found.push_back(std::move(*link));
  } else if (split && split->is_sure) {
    auto outliers = outliers_of(*split, suspects.relative, plan.limits);
    found.push_back(std::move(split->finding));
    found.insert(found.end(), outliers.begin(), outliers.end());
  } else {
    const int most = Repeats::kVisits * Repeats::kPerVisit;  // of one suspect
    Repeats repeats(player, plan, suspects, noise,
                    [&observer, most](int done) { observer.on_round(kRepeatStage, done, std::max(done, most)); });
    repeats.run();
    findings.repeats = repeats.rounds();
    auto culprits = culprits_of(player, plan, suspects, repeats);
    if (split && !plan.baseline && explains(*split, culprits, player, plan.limits))
      found.push_back(std::move(split->finding));
    for (Finding& culprit : culprits) {
      if (!has_tests_over_time(culprit)) continue;
      add_first_pass(culprit, pass, fit, suspects, player);
      add_repeats(culprit, repeats);
    }
    if (!plan.baseline && is_level_in_doubt(culprits, player)) {
      for (Finding& culprit : culprits) {
        if (culprit.judgement.verdict != Verdict::fail) continue;
        culprit.judgement.verdict = Verdict::undecided;
        culprit.detail = "so many parts fail that the level is in doubt";
      }
    }
    found.insert(found.end(), culprits.begin(), culprits.end());
    if (link && found.empty()) found.push_back(std::move(*link));
  }
  if (auto uplink = uplink_of_two(pass, player, plan.limits)) found.push_back(std::move(*uplink));
  const auto lost = player.findings();
  found.insert(found.end(), lost.begin(), lost.end());
  if (count > kTooFewForSpells) {
    for (Finding& unsteady : unsteady_nodes(pass, fit, player, plan.limits, found)) {
      const bool is_known = std::ranges::any_of(
          found, [&](const Finding& one) { return is_about(one, unsteady.first) || one.what == Class::split; });
      if (is_known) continue;
      add_first_pass(unsteady, pass, fit, suspects, player);
      found.push_back(std::move(unsteady));
    }
  }
  fold_open_links(found);
  std::ranges::stable_sort(found, {}, gravity_of);
  findings.parts = std::move(found);
  set_verdicts(findings, player, plan);
  findings.is_interrupted = player.is_stopped();
  return findings;
}

}  // namespace tutti::harness::accept

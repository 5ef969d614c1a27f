// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/culprits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

using Kind = SuspectPart::Kind;

constexpr std::size_t kAloneBytes = std::size_t{8} << 20;

bool is_slow(const Judgement& judgement) { return judgement.verdict == Verdict::fail && !judgement.is_fast; }

const Judgement& slower_of(const Judgement& one, const Judgement& other) {
  return one.middle <= other.middle ? one : other;
}

class Culprits {
 public:
  Culprits(PairPlayer& player, const PairsPlan& plan, const Suspects& suspects, Repeats& repeats)
      : player_(player), plan_(plan), suspects_(suspects), repeats_(repeats) {}

  std::vector<Finding> run() {
    add_nodes();
    add_uplinks();
    add_links();
    drop_uplinks_of_slow_leaves();
    return std::move(found_);
  }

 private:
  void set_tests(Finding& finding, const SuspectPart& part) const {
    const auto evidence = repeats_.evidence().find(part);
    if (evidence == repeats_.evidence().end()) return;
    finding.tests += evidence->second.tests();
    finding.visits = std::max<int>(finding.visits, static_cast<int>(evidence->second.visits.size()));
    finding.thirds.assign(evidence->second.thirds.begin(), evidence->second.thirds.end());
  }

  /// Whether each of these nodes is slow alone, beside good ones.
  [[nodiscard]] std::set<int> slow_alone(const std::vector<int>& nodes) {
    constexpr int kPlays = 16;
    constexpr std::ptrdiff_t kBeside = 9;
    std::vector<int> playing = nodes;
    const std::vector<int> good = repeats_.good_nodes({nodes.begin(), nodes.end()});
    playing.insert(playing.end(), good.begin(), good.begin() + std::min(std::ssize(good), kBeside));
    std::vector<std::vector<double>> off(nodes.size());
    for (int time = 0; time < kPlays; ++time) {
      const std::vector<double> speeds = player_.play_alone(playing, kAloneBytes);
      std::vector<double> beside(speeds.begin() + std::ssize(nodes), speeds.end());
      const double middle = median_of_numbers(beside);
      for (std::size_t i = 0; i < nodes.size(); ++i) off[i].push_back(speeds[i] - middle);
    }
    std::set<int> slow;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      constexpr double kClearly = 0.75;  // of the margin
      if (median_of_numbers(off[i]) < kClearly * margin_of(plan_.limits)) slow.insert(nodes[i]);
    }
    return slow;
  }

  void add_nodes() {
    std::vector<Finding> nodes;
    for (int node = 0; node < std::ssize(suspects_.nodes); ++node) {
      if (suspects_.nodes[at(node)].are_good() || player_.is_lost(node)) continue;
      const SuspectPart out_part{.kind = Kind::node, .first = node, .way = Way::out};
      const SuspectPart in_part{.kind = Kind::node, .first = node, .way = Way::in};
      const Judgement out = repeats_.judgement_of(out_part), in = repeats_.judgement_of(in_part);
      const bool has_passed = out.verdict == Verdict::pass && in.verdict == Verdict::pass;
      if (has_passed && !was_far_slower(node, slower_of(out, in))) continue;
      Finding finding{.what = Class::nic, .first = node, .judgement = slower_of(out, in)};
      set_tests(finding, out_part);
      set_tests(finding, in_part);
      count_partners(finding);
      if (has_passed) {  // a passing test never clears a failed one
        finding.what = Class::unsteady;
        finding.judgement.verdict = Verdict::suspect;
        finding.detail =
            fmt::format("{:.0f} % slower in the first pass, and not in its repeats",
                        -100 * std::expm1(std::min(suspects_.nodes[at(node)].out, suspects_.nodes[at(node)].in)));
        nodes.push_back(std::move(finding));
        continue;
      }
      const Part part = slow_part({.out = out, .in = in}, plan_.limits);
      if (part == Part::nic_out || part == Part::nic_in) {
        finding.what = part == Part::nic_out ? Class::nic_out : Class::nic_in;
        finding.judgement = part == Part::nic_out ? out : in;
      } else if (part == Part::none && (out.is_fast || in.is_fast)) {
        finding.what = Class::too_fast;
        finding.judgement = out.is_fast ? out : in;
      } else if (part == Part::none) {
        const bool is_unsteady = out.verdict == Verdict::suspect || in.verdict == Verdict::suspect;
        finding.judgement.verdict = is_unsteady ? Verdict::suspect : Verdict::undecided;
        if (is_unsteady) finding.what = Class::unsteady;
      } else {
        finding.judgement.verdict = Verdict::fail;
      }
      nodes.push_back(std::move(finding));
    }
    std::vector<int> alone;
    for (const Finding& finding : nodes) {
      if (finding.what == Class::nic && finding.judgement.verdict == Verdict::fail) alone.push_back(finding.first);
    }
    if (!alone.empty()) {
      const std::set<int> slow = slow_alone(alone);
      for (Finding& finding : nodes) {
        if (finding.what == Class::nic && slow.contains(finding.first)) finding.what = Class::node;
      }
    }
    found_.insert(found_.end(), nodes.begin(), nodes.end());
  }

  /// Whether the first pass had the node much slower than its repeats do, by more than noise explains.
  [[nodiscard]] bool was_far_slower(int node, const Judgement& repeats) const {
    constexpr double kMargins = 3;
    constexpr std::size_t kManyCells = 4;  // of which a median says something
    const double before = std::min(suspects_.nodes[at(node)].out, suspects_.nodes[at(node)].in);
    return player_.nodes().size() > kManyCells && before < kMargins * margin_of(plan_.limits) &&
           repeats.middle > before / 2;
  }

  /// With how many good nodes the first pass had it, and was slow.
  void count_partners(Finding& finding) const {
    const int node = finding.first;
    for (int other = 0; other < std::ssize(suspects_.nodes); ++other) {
      if (!suspects_.nodes[at(other)].are_good()) continue;
      const double out = suspects_.relative(node, other), in = suspects_.relative(other, node);
      if (std::isnan(out) && std::isnan(in)) continue;
      ++finding.partners;
      finding.slow_partners += std::fmin(out, in) < suspicion(plan_.limits);
    }
  }

  void add_uplinks() {
    for (int leaf = 0; leaf < std::ssize(suspects_.uplinks); ++leaf) {
      if (suspects_.uplinks[at(leaf)].are_good()) continue;
      const SuspectPart out_part{.kind = Kind::uplink, .first = leaf, .way = Way::out};
      const SuspectPart in_part{.kind = Kind::uplink, .first = leaf, .way = Way::in};
      const Judgement out = repeats_.judgement_of(out_part), in = repeats_.judgement_of(in_part);
      if (out.verdict == Verdict::pass && in.verdict == Verdict::pass) continue;
      Finding finding{.what = Class::uplink, .first = leaf, .judgement = slower_of(out, in)};
      set_tests(finding, out_part);
      set_tests(finding, in_part);
      if (is_slow(out) != is_slow(in)) {
        finding.what = Class::uplink_dir;
        finding.is_out = is_slow(out);
        finding.judgement = is_slow(out) ? out : in;
      } else if (!is_slow(out)) {
        const bool is_unsteady = out.verdict == Verdict::suspect || in.verdict == Verdict::suspect;
        finding.judgement.verdict = is_unsteady ? Verdict::suspect : Verdict::undecided;
      }
      found_.push_back(std::move(finding));
    }
  }

  /// If most nodes of a leaf are slow themselves, its uplink is not to blame.
  void drop_uplinks_of_slow_leaves() {
    constexpr double kMost = 0.75;
    std::map<int, int> slow, all;  // by leaf
    for (const Finding& one : found_) {
      if (is_of_node(one) && is_slow(one.judgement)) ++slow[player_.leaves()[at(one.first)]];
    }
    for (const int node : player_.nodes()) ++all[player_.leaves()[at(node)]];
    std::erase_if(found_, [&](const Finding& one) {
      return is_of_leaf(one) && slow[one.first] > 1 && slow[one.first] >= kMost * all[one.first];
    });
  }

  void add_links() {
    std::map<std::pair<int, int>, Judgement> links;  // by sender and receiver, those that do not pass
    for (const auto& [part, evidence] : repeats_.evidence()) {
      if (part.kind != Kind::link || player_.is_lost(part.first, part.second)) continue;
      const Judgement judgement = repeats_.judgement_of(part);
      const bool has_nothing = judgement.verdict == Verdict::untested;
      if (judgement.verdict != Verdict::pass && !has_nothing) links[{part.first, part.second}] = judgement;
    }
    for (const auto& [ends, judgement] : links) {
      const auto& [sender, receiver] = ends;
      const auto other = links.find({receiver, sender});
      const Judgement* const back = other == links.end() ? nullptr : &other->second;
      Finding finding{.what = Class::link_dir, .first = sender, .second = receiver, .judgement = judgement};
      set_tests(finding, {.kind = Kind::link, .first = sender, .second = receiver});
      const bool has_back_failed = back != nullptr && back->verdict == Verdict::fail;
      if (judgement.verdict != Verdict::fail) {
        if (has_back_failed) continue;                       // it is told with the way back
        if (back != nullptr && sender > receiver) continue;  // both are open: told once
        if (back != nullptr) finding.what = Class::link;
      } else if (judgement.is_fast) {
        if (has_back_failed && sender > receiver) continue;
        finding.what = Class::too_fast;
      } else if (has_back_failed || (back != nullptr && back->middle < kIsBothWays * margin_of(plan_.limits))) {
        if (has_back_failed && sender > receiver) continue;
        finding.what = Class::link;
        finding.first = std::min(sender, receiver);
        finding.second = std::max(sender, receiver);
      }
      found_.push_back(std::move(finding));
    }
  }

  PairPlayer& player_;
  const PairsPlan& plan_;
  const Suspects& suspects_;
  Repeats& repeats_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> culprits_of(PairPlayer& player, const PairsPlan& plan, const Suspects& suspects,
                                 Repeats& repeats) {
  return Culprits(player, plan, suspects, repeats).run();
}

bool is_level_in_doubt(const std::vector<Finding>& found, const PairPlayer& player) {
  constexpr double kMostFast = 0.2, kMostSlow = 1.0 / 3;  // of the nodes
  constexpr double kMostLinks = 0.1;                      // of the pairs, within leaves and between them
  constexpr std::ptrdiff_t kFewLinks = 8;
  std::ptrdiff_t fast = 0, slow = 0;
  std::array<std::ptrdiff_t, 2> links{}, pairs{};
  for (const Finding& finding : found) {
    if (finding.judgement.verdict != Verdict::fail) continue;
    if (is_of_link(finding)) ++links.at(player.is_far(finding.first, finding.second) ? 1 : 0);
    if (is_of_node(finding)) ++(finding.what == Class::too_fast ? fast : slow);
  }
  for (const int one : player.nodes()) {
    for (const int other : player.nodes()) {
      if (one < other) ++pairs.at(player.is_far(one, other) ? 1 : 0);
    }
  }
  const auto are_too_many = [&](std::size_t path) {
    return links.at(path) > kFewLinks &&
           static_cast<double>(links.at(path)) > kMostLinks * static_cast<double>(pairs.at(path));
  };
  const auto nodes = static_cast<double>(player.nodes().size());
  return (fast >= 2 && static_cast<double>(fast) > kMostFast * nodes) ||
         (slow >= 2 && static_cast<double>(slow) > kMostSlow * nodes) || are_too_many(0) || are_too_many(1);
}

std::optional<Finding> fleet_against(const Baseline& baseline, const FirstPass& pass, const PairPlayer& player,
                                     const Limits& limits) {
  // By thirds of the pass, so that one bad hour of the fabric is no verdict.
  constexpr int kThirds = 3;
  std::array<std::vector<double>, kThirds> thirds;
  for (const Sample& one : pass.samples) {
    const double level = player.is_far(one.sender, one.receiver) ? baseline.far : baseline.near;
    thirds.at(at(one.round * kThirds / std::max(1, pass.rounds))).push_back(one.log_speed - level);
  }
  std::vector<double> middles;
  for (auto& third : thirds) middles.push_back(median_of_numbers(third));
  if (std::ranges::any_of(middles, [](double middle) { return std::isnan(middle); })) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(middles);
  const bool is_fast = least > std::log1p(limits.too_fast);
  if (most >= margin_of(limits) && !is_fast) return std::nullopt;
  return Finding{.what = Class::fleet,
                 .judgement = {.verdict = Verdict::fail,
                               .is_fast = is_fast,
                               .middle = median_of(middles),
                               .low = least,
                               .high = most},
                 .tests = static_cast<int>(pass.samples.size())};
}

std::vector<Finding> unsteady_nodes(const FirstPass& pass, const Fit& fit, const PairPlayer& player,
                                    const Limits& limits, std::span<const Finding> known) {
  constexpr int kWindows = 8, kLeastWindows = 4, kLeastSlow = 2;
  constexpr double kMargins = 3;
  struct Counts {
    std::array<int, kWindows> all{}, slow{};
  };
  std::set<std::pair<int, int>> links;
  std::set<int> slow_nodes;
  for (const Finding& one : known) {
    if (is_of_link(one)) links.insert(std::minmax(one.first, one.second));
    if (is_of_node(one) && one.judgement.verdict == Verdict::fail) slow_nodes.insert(one.first);
  }
  std::vector<Counts> counts(player.leaves().size());
  for (std::size_t i = 0; i < pass.samples.size(); ++i) {
    const Sample& one = pass.samples[i];
    if (std::isnan(fit.residuals[i]) || links.contains(std::minmax(one.sender, one.receiver))) continue;
    if (slow_nodes.contains(one.sender) || slow_nodes.contains(one.receiver)) continue;
    const std::size_t window = at(one.round * kWindows / std::max(1, pass.rounds));
    for (const int node : {one.sender, one.receiver}) {
      ++counts[at(node)].all.at(window);
      counts[at(node)].slow.at(window) += fit.residuals[i] < kMargins * margin_of(limits);
    }
  }
  std::vector<Finding> found;
  for (const int node : player.nodes()) {
    int windows = 0;
    for (std::size_t window = 0; window < kWindows; ++window) {
      const int all = counts[at(node)].all.at(window), slow = counts[at(node)].slow.at(window);
      windows += slow >= kLeastSlow && 3 * slow >= all;
    }
    if (windows < kLeastWindows) continue;
    found.push_back({.what = Class::unsteady,
                     .first = node,
                     .judgement = {.verdict = Verdict::suspect},
                     .visits = 1,
                     .detail = fmt::format("slow in {} of {} windows", windows, kWindows)});
  }
  return found;
}

}  // namespace tutti::harness::accept

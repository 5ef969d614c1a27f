// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/repeats.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

using Kind = SuspectPart::Kind;

constexpr std::size_t kControls = 8;          // pairs
constexpr std::size_t kControlsOfLeaves = 3;  // pairs between the same two leaves as the suspect's pair
constexpr int kNodesOfUplink = 8;
constexpr double kOfEnd = 0.4;         // of the margin: less is noise of the third nodes
constexpr double kBusyShare = 0.4;     // of the nodes, so that enough are left for controls
constexpr int kLooksWithoutCross = 2;  // in the first visit, which sends most suspects home

double median_or_zero(std::vector<double> values) { return or_zero(median_of_numbers(values)); }

}  // namespace

int Evidence::tests() const {
  return std::accumulate(visits.begin(), visits.end(), 0, [](int sum, const std::vector<double>& visit) {
    return sum + static_cast<int>(visit.size());
  });
}

Repeats::Repeats(PairPlayer& player, const PairsPlan& plan, const Suspects& suspects, const NoiseOfTests& noise,
                 std::function<void(int done)> on_round)
    : player_(player),
      plan_(plan),
      suspects_(suspects),
      on_round_(std::move(on_round)),
      random_(plan.seed + 1),
      offsets_(suspects.nodes.size()) {
  constexpr double kUsualNoise = 0.03, kMostTimes = 3;
  const double times = std::clamp(std::pow(noise.fleet / kUsualNoise, 2), 1.0, kMostTimes);
  per_visit_ = static_cast<int>(std::lround(kPerVisit * times));
  set_offsets();
  for (const int node : player.nodes()) {
    if (player.is_lost(node) || suspects.nodes[at(node)].are_good()) continue;
    for (const Way way : kWays) open_.insert({.kind = Kind::node, .first = node, .way = way});
  }
  for (int leaf = 0; leaf < std::ssize(suspects.uplinks); ++leaf) {
    if (suspects.uplinks[at(leaf)].are_good()) continue;
    for (const Way way : kWays) open_.insert({.kind = Kind::uplink, .first = leaf, .way = way});
  }
  for (const Transfer& link : suspects.links) {
    if (player.is_lost(link.sender, link.receiver)) continue;
    open_.insert({.kind = Kind::link, .first = link.sender, .second = link.receiver});
  }
}

bool Repeats::is_clean(int node) const {
  return suspects_.nodes[at(node)].are_good() && !player_.is_lost(node) && !player_.has_failed(node);
}

bool Repeats::has_good_uplinks(int node) const { return suspects_.uplinks[at(player_.leaves()[at(node)])].are_good(); }

/// Good nodes have offsets of their own, which are known from many cells each.
void Repeats::set_offsets() {
  const int nodes = suspects_.relative.nodes();
  Matrix rest(nodes);
  for (int sender = 0; sender < nodes; ++sender) {
    for (int receiver = 0; receiver < nodes; ++receiver) {
      const bool is_good =
          suspects_.nodes[at(sender)].out == 0 && suspects_.nodes[at(receiver)].in == 0 &&
          (!player_.is_far(sender, receiver) || (suspects_.uplinks[at(player_.leaves()[at(sender)])].out == 0 &&
                                                 suspects_.uplinks[at(player_.leaves()[at(receiver)])].in == 0));
      if (is_good) rest(sender, receiver) = suspects_.relative(sender, receiver);
    }
  }
  const std::vector<double> rows = medians_of_rows(rest), columns = medians_of_columns(rest);
  std::vector<double> of_good;
  for (const int node : player_.nodes()) {
    if (!is_clean(node) || !has_good_uplinks(node)) continue;
    offsets_[at(node)] = {.out = or_zero(rows[at(node)]), .in = or_zero(columns[at(node)])};
    of_good.push_back(offsets_[at(node)].out);
  }
  constexpr double kOfMedian = 1.2533;  // its standard error over that of a mean
  const auto count = static_cast<double>(of_good.size());
  if (count < 2) return;
  // Few nodes say little of how much they differ.
  const double of_few = std::sqrt(count / (count - 1));
  level_error_ = kOfMedian * of_few * robust_deviation(of_good) / std::sqrt(count);
}

double Repeats::expected(const Transfer& transfer) const {
  const auto& leaves = player_.leaves();
  const double level = suspects_.level(leaves[at(transfer.sender)], leaves[at(transfer.receiver)]);
  return level + offsets_[at(transfer.sender)].out + offsets_[at(transfer.receiver)].in;
}

std::vector<int> Repeats::shuffled(std::vector<int> nodes) {
  random_.shuffle(nodes);
  return nodes;
}

std::vector<int> Repeats::good_nodes(const std::set<int>& busy) {
  std::vector<int> good;
  for (const int node : player_.nodes()) {
    if (is_clean(node) && has_good_uplinks(node) && !busy.contains(node)) good.push_back(node);
  }
  return shuffled(std::move(good));
}

int Repeats::partner_of(int node, const std::vector<int>& free) const {
  const auto& leaves = player_.leaves();
  const auto can_play = [&](int other) { return other != node && !player_.is_lost(node, other); };
  for (const int other : free) {
    if (can_play(other) && leaves[at(other)] == leaves[at(node)]) return other;
  }
  if (!has_good_uplinks(node)) return -1;
  for (const int other : free) {
    if (can_play(other) && has_good_uplinks(other)) return other;
  }
  return -1;
}

int Repeats::suspect_beside(int node, const std::set<int>& busy) const {
  const auto& leaves = player_.leaves();
  int suspect = -1;
  for (const int other : player_.nodes()) {
    if (other == node || leaves[at(other)] != leaves[at(node)] || player_.is_lost(node, other)) continue;
    if (is_clean(other)) return -1;
    if (suspect < 0 && !busy.contains(other)) suspect = other;
  }
  return suspect;
}

std::vector<BothWays> Repeats::differences(const Round& pairs) {
  const auto& leaves = player_.leaves();
  std::set<int> busy;
  for (const Transfer& pair : pairs) busy.insert({pair.sender, pair.receiver});
  std::vector<int> free = good_nodes(busy);
  Round round = pairs;
  std::vector<std::vector<std::size_t>> controls_of(pairs.size());  // in `round`, between the same two leaves
  for (std::size_t turn = 0; turn < kControlsOfLeaves; ++turn) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (!player_.is_far(pairs[i].sender, pairs[i].receiver)) continue;
      const auto of_leaf = [&](int leaf) {
        return std::ranges::find_if(free, [&](int node) { return leaves[at(node)] == leaf; });
      };
      const auto sender = of_leaf(leaves[at(pairs[i].sender)]), receiver = of_leaf(leaves[at(pairs[i].receiver)]);
      if (sender == free.end() || receiver == free.end() || player_.is_lost(*sender, *receiver)) continue;
      const Transfer control{.sender = *sender, .receiver = *receiver};
      controls_of[i].push_back(round.size());
      round.push_back(control);
      std::erase_if(free, [&](int node) { return node == control.sender || node == control.receiver; });
    }
  }
  for (std::size_t i = 0; i + 1 < free.size() && i < 2 * kControls; i += 2) {
    if (!player_.is_lost(free[i], free[i + 1])) round.push_back({.sender = free[i], .receiver = free[i + 1]});
  }
  on_round_(++rounds_);
  auto speeds = player_.play_both_ways(round);
  if (round.size() == pairs.size()) {  // no node is left to play beside: right after
    const std::vector<int> good = good_nodes({});
    if (good.size() >= 2 && !player_.is_lost(good[0], good[1])) {
      round.push_back({.sender = good[0], .receiver = good[1]});
      speeds.push_back(player_.play_both_ways({round.back()}).front());
    }
  }
  std::vector<BothWays> off(round.size());
  for (std::size_t i = 0; i < round.size(); ++i) {
    const auto& [sender, receiver] = round[i];
    off[i] = {.out = speeds[i][0] - expected(round[i]),
              .in = speeds[i][1] - expected({.sender = receiver, .receiver = sender})};
  }
  std::vector<BothWays> result(off.begin(), off.begin() + std::ssize(pairs));
  for (const Way way : kWays) {
    std::vector<double> all;
    for (std::size_t i = pairs.size(); i < off.size(); ++i) all.push_back(off[i].of(way));
    const double common = median_or_zero(all);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::vector<double> own;
      for (const std::size_t control : controls_of[i]) own.push_back(off[control].of(way));
      std::erase_if(own, [](double value) { return std::isnan(value); });
      result[i].of(way) -= own.size() >= 2 ? median_of(own) : common;
    }
  }
  return result;
}

void Repeats::add(const SuspectPart& part, double value) {
  if (std::isnan(value) || !open_.contains(part)) return;
  evidence_[part].visits.back().push_back(value);
}

std::set<int> Repeats::open(Kind kind) const {
  std::set<int> parts;
  for (const SuspectPart& part : open_) {
    if (part.kind == kind) parts.insert(part.first);
  }
  return parts;
}

void Repeats::repeat_nodes() {
  std::vector<int> clean;
  for (const int node : player_.nodes()) {
    if (is_clean(node)) clean.push_back(node);
  }
  std::set<int> todo = open(Kind::node);
  while (!todo.empty() && !player_.is_stopped()) {
    std::vector<int> free = shuffled(clean);
    Round pairs;
    std::set<int> rest, busy;
    for (const int node : todo) {
      const bool has_room = 2 * free.size() > clean.size() || pairs.empty();  // the others are for controls
      if (!has_room || busy.contains(node)) {
        rest.insert(node);
        continue;
      }
      const int suspect = suspect_beside(node, busy);
      const int partner = suspect >= 0 ? suspect : partner_of(node, free);
      if (partner < 0) continue;
      std::erase(free, partner);
      busy.insert({node, partner});
      pairs.push_back({.sender = node, .receiver = partner});
    }
    if (pairs.empty()) return;
    const std::vector<BothWays> off = differences(pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      for (const Way way : kWays) add({.kind = Kind::node, .first = pairs[i].sender, .way = way}, off[i].of(way));
    }
    todo = std::move(rest);
  }
}

void Repeats::repeat_uplinks() {
  for (const int leaf : open(Kind::uplink)) {
    std::vector<int> mine, suspects, others;
    for (const int node : player_.nodes()) {
      const bool is_mine = player_.leaves()[at(node)] == leaf;
      if (is_mine && !player_.is_lost(node)) (is_clean(node) ? mine : suspects).push_back(node);
      if (!is_mine && is_clean(node) && has_good_uplinks(node)) others.push_back(node);
    }
    if (mine.empty()) mine = std::move(suspects);
    mine = shuffled(std::move(mine));
    others = shuffled(std::move(others));
    const std::size_t count = std::min({mine.size(), others.size() / 2, std::size_t{kNodesOfUplink}});
    Round pairs;
    for (std::size_t i = 0; i < count; ++i) pairs.push_back({.sender = mine[i], .receiver = others[i]});
    if (pairs.empty()) continue;
    const std::vector<BothWays> off = differences(pairs);
    for (const Way way : kWays) {
      std::vector<double> values;
      for (const BothWays& one : off) values.push_back(one.of(way));
      add({.kind = Kind::uplink, .first = leaf, .way = way}, median_of_numbers(values));
    }
  }
}

Round Repeats::open_links() const {
  std::set<std::pair<int, int>> pairs;
  for (const SuspectPart& part : open_) {
    if (part.kind == Kind::link) pairs.insert(std::minmax(part.first, part.second));
  }
  Round links;
  for (const auto& [one, other] : pairs) links.push_back({.sender = one, .receiver = other});
  return links;
}

void Repeats::look_at_links(const Round& pairs, bool with_cross) {
  const auto there = [](const Transfer& pair) {
    return SuspectPart{.kind = Kind::link, .first = pair.sender, .second = pair.receiver};
  };
  const auto back = [](const Transfer& pair) {
    return SuspectPart{.kind = Kind::link, .first = pair.receiver, .second = pair.sender};
  };
  if (with_cross) {
    std::set<int> busy;
    for (const Transfer& pair : pairs) busy.insert({pair.sender, pair.receiver});
    std::vector<int> free;
    for (const int node : player_.nodes()) {
      if (is_clean(node) && !busy.contains(node)) free.push_back(node);
    }
    free = shuffled(std::move(free));
    Round probes;
    struct Probe {
      std::size_t link;
      bool is_of_sender;
    };
    std::vector<Probe> of;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      for (const bool is_of_sender : {true, false}) {
        const int end = is_of_sender ? pairs[i].sender : pairs[i].receiver;
        const int third = partner_of(end, free);
        if (third < 0) continue;
        std::erase(free, third);
        probes.push_back(is_of_sender ? Transfer{.sender = end, .receiver = third}
                                      : Transfer{.sender = third, .receiver = end});
        of.push_back({.link = i, .is_of_sender = is_of_sender});
        for (const SuspectPart& part : {there(pairs[i]), back(pairs[i])}) {
          if (open_.contains(part)) evidence_[part].thirds.insert(third);
        }
      }
    }
    const std::vector<BothWays> off = probes.empty() ? std::vector<BothWays>() : differences(probes);
    for (std::size_t i = 0; i < off.size(); ++i) {
      const Transfer& pair = pairs[of[i].link];
      auto& to = beside_[there(pair)];
      auto& fro = beside_[back(pair)];
      // Off.out goes the way of the probe: from the pair's sender, or to its receiver. Off.in is the way back.
      (of[i].is_of_sender ? to.first : to.second).push_back(off[i].out);
      (of[i].is_of_sender ? fro.second : fro.first).push_back(off[i].in);
    }
  }
  const std::vector<BothWays> off = differences(pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    add(there(pairs[i]), off[i].out);
    add(back(pairs[i]), off[i].in);
  }
}

/// A second look at all links, then at those that are left, in rounds of as many as are disjoint.
void Repeats::repeat_links() {
  const double slow = suspicion(plan_.limits), fast = 0.6 * std::log1p(plan_.limits.too_fast);
  beside_.clear();
  Round todo = open_links();
  const auto is_well = [&](const Transfer& pair) {
    const auto has_well = [&](const SuspectPart& part) {
      const auto evidence = evidence_.find(part);
      if (evidence == evidence_.end() || evidence->second.visits.back().empty()) return true;
      const double middle = median_of(evidence->second.visits.back());
      return middle >= slow && middle <= fast;
    };
    return has_well({.kind = Kind::link, .first = pair.sender, .second = pair.receiver}) &&
           has_well({.kind = Kind::link, .first = pair.receiver, .second = pair.sender});
  };
  constexpr int kNodesOfFarPair = 1 + static_cast<int>(kControlsOfLeaves);  // on each of its leaves
  std::vector<int> sizes(suspects_.uplinks.size());
  for (const int node : player_.nodes()) ++sizes[at(player_.leaves()[at(node)])];
  for (int look = 0; look < per_visit_ && !todo.empty(); ++look) {
    Round left = todo;
    while (!left.empty() && !player_.is_stopped()) {
      std::set<int> busy;
      std::map<std::pair<int, int>, int> paths;  // few pairs of each, so that nodes are left for their controls
      Round pairs, rest;
      for (const Transfer& pair : left) {
        const auto path = std::minmax({player_.leaves()[at(pair.sender)], player_.leaves()[at(pair.receiver)]});
        const int most = std::max(1, std::min(sizes[at(path.first)], sizes[at(path.second)]) / kNodesOfFarPair);
        const bool has_controls = path.first == path.second || paths[path] < most;
        const bool is_free = !busy.contains(pair.sender) && !busy.contains(pair.receiver) && has_controls;
        const bool has_room =
            static_cast<double>(busy.size()) <= kBusyShare * static_cast<double>(player_.nodes().size());
        if (!is_free || !has_room) {
          rest.push_back(pair);
          continue;
        }
        busy.insert({pair.sender, pair.receiver});
        ++paths[path];
        pairs.push_back(pair);
      }
      left = std::move(rest);
      look_at_links(pairs, look >= kLooksWithoutCross || visits_ > 1);
    }
    const bool is_a_look_back = look == 1 || look == 3 || look == 5;
    if (visits_ == 1 && is_a_look_back) std::erase_if(todo, is_well);
  }
  take_off_ends();
}

/// What an end of a link is slow by with third nodes is not the link's.
void Repeats::take_off_ends() {
  for (const auto& [part, ends] : beside_) {
    if (!open_.contains(part)) continue;
    std::vector<double>& values = evidence_[part].visits.back();
    const double own = std::min(median_or_zero(ends.first), median_or_zero(ends.second));
    const bool is_slow = !values.empty() && median_of(values) < 0;
    if (!is_slow || own >= kOfEnd * margin_of(plan_.limits)) continue;
    for (double& value : values) value -= own;
  }
}

Judgement Repeats::judgement_of(const SuspectPart& part) const {
  const auto evidence = evidence_.find(part);
  if (evidence == evidence_.end()) return {};
  // The ends of a link are compared with themselves, beside third nodes.
  constexpr double kOfLink = 0.5;
  return judge(evidence->second.visits, plan_.limits, part.kind == Kind::link ? kOfLink * level_error_ : level_error_);
}

void Repeats::settle() {
  std::erase_if(open_, [this](const SuspectPart& part) {
    const Verdict verdict = judgement_of(part).verdict;
    return verdict == Verdict::pass || verdict == Verdict::fail || verdict == Verdict::untested;
  });
}

void Repeats::visit() {
  ++visits_;
  for (const SuspectPart& part : open_) evidence_[part].visits.emplace_back();
  for (int repeat = 0; repeat < per_visit_ && !player_.is_stopped(); ++repeat) {
    repeat_nodes();
    repeat_uplinks();
  }
  repeat_links();
  settle();
}

void Repeats::run() {
  while (visits_ < kVisits && !open_.empty() && !player_.is_stopped()) {
    if (visits_ > 0) player_.pause();
    visit();
  }
}

}  // namespace tutti::harness::accept

// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/pretend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "impl/types/scramble.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr double kBytesPerSecond = 12e9;  // of a healthy pair within a leaf
constexpr double kPingsPerSecond = 1 / 2.3e-6;
constexpr double kAloneBytesPerSecond = 20e9;
constexpr double kSecondsOfATest = 0.7;
constexpr double kSecondsOfAHang = 5;
constexpr double kSecondsOfASoak = 10;

constexpr double kNodeSpell = 8, kFleetSpell = 30;  // tests that they last on average
const double kNodeInSpell = std::log(0.6), kFleetInSpell = std::log(0.64);
constexpr double kUnsteadyShare = 0.5, kJamShare = 1.0 / 3;  // of the time

bool is_of(const Fault& fault, const Transfer& transfer) {
  return fault.first == transfer.sender && fault.second == transfer.receiver;
}

bool is_between(const Fault& fault, int one, int other) {
  return (fault.first == one && fault.second == other) || (fault.first == other && fault.second == one);
}

bool is_spell(Trouble trouble) { return trouble == Trouble::unsteady || trouble == Trouble::jam; }

/// Whether a test of these nodes has no speed, and why. The gravest of several: no answer comes before no data, and no
/// data before wrong data.
void end_by(const Fault& fault, const Group& group, Outcome& outcome) {
  const auto end_as = [&outcome](Ending ending, std::string detail, double seconds) {
    if (ending <= outcome.ending) return;
    outcome.ending = ending;
    outcome.detail = std::move(detail);
    outcome.seconds = seconds;
  };
  const bool is_here = std::ranges::find(group, fault.first) != group.end();
  const bool are_both_here = is_here && std::ranges::find(group, fault.second) != group.end();
  if (fault.trouble == Trouble::dead && is_here) {
    end_as(Ending::failed, fmt::format("node{} does not answer", fault.first + 1), kSecondsOfAHang);
  }
  if (fault.trouble == Trouble::hung && are_both_here) {
    end_as(Ending::hung, fmt::format("nothing came in {} s", kSecondsOfAHang), kSecondsOfAHang);
  }
}

}  // namespace

bool hits_leaves(Trouble trouble) {
  return trouble == Trouble::uplink || trouble == Trouble::uplink_out || trouble == Trouble::jam;
}

bool hits_two(Trouble trouble) {
  return trouble == Trouble::link || trouble == Trouble::link_out || trouble == Trouble::fast ||
         trouble == Trouble::wrong || trouble == Trouble::hung || trouble == Trouble::jam;
}

bool has_share(Trouble trouble) {
  return trouble != Trouble::wrong && trouble != Trouble::hung && trouble != Trouble::dead &&
         trouble != Trouble::absent;
}

const std::vector<NamedNoise>& noises() {
  static const std::vector<NamedNoise> all{
      {"quiet", {.measurement = 0.01, .nodes = 0.005, .links = 0.002, .outliers = 0}},
      {"typical", {}},
      {"heavy", {.measurement = 0.03, .has_heavy_tails = true, .nodes = 0.015, .outliers = 0.03}},
      {"states", {.node_spells = 0.02, .fleet_spells = 0.2}}};
  return all;
}

PretendedCrew::PretendedCrew(PretendedCluster cluster) : cluster_(std::move(cluster)), random_(cluster_.seed) {
  const int nodes = cluster_.nodes;
  TUTTI_ASSERT(nodes >= 1 && cluster_.leaf_size >= 1, "{} nodes in leaves of {}", nodes, cluster_.leaf_size);
  TUTTI_ASSERT(cluster_.noise.multiples.empty() || std::ssize(cluster_.noise.multiples) == nodes,
               "{} multiples of noise for {} nodes", cluster_.noise.multiples.size(), nodes);
  const std::size_t rails = std::max<std::size_t>(cluster_.rails.size(), 1);
  while (rails_.size() < rails) add_rail();
  bare_rails_ = rails_;
  node_spells_.assign(at(nodes), false);
  fault_spells_.assign(cluster_.faults.size(), false);
  for (const Fault& fault : cluster_.faults) put_in(fault);
}

void PretendedCrew::add_rail() {
  const int nodes = cluster_.nodes;
  const double older = std::log1p(-cluster_.generation_cost);
  const auto first_older = static_cast<int>(std::lround(nodes * (1 - cluster_.generation)));
  const bool is_first = rails_.empty();
  Rail& rail = rails_.emplace_back();
  for (int node = 0; node < nodes; ++node) {
    const double generation = node >= first_older ? older : 0;
    rail.out.push_back(generation + normal() * cluster_.noise.nodes);
    rail.in.push_back(rail.out.back() + normal() * cluster_.noise.nodes / 3);
    if (is_first) alone_.push_back(generation + normal() * cluster_.noise.nodes);
  }
  rail.uplink_out.assign(at(leaf_of(nodes - 1) + 1), 0);
  rail.uplink_in = rail.uplink_out;
}

void PretendedCrew::put_in(const Fault& fault) {
  TUTTI_ASSERT(fault.rail >= kNoRail && fault.rail < std::ssize(rails_), "a fault of rail {}", fault.rail);
  const std::size_t most = hits_leaves(fault.trouble) ? rails_.front().uplink_out.size() : alone_.size();
  const bool is_part = at(fault.first) < most && (!hits_two(fault.trouble) || at(fault.second) < most);
  TUTTI_ASSERT(is_part, "a fault of {} and {}", fault.first, fault.second);
  TUTTI_ASSERT(fault.share >= 0 && fault.share < 1, "a share of {}", fault.share);
  TUTTI_ASSERT(!fault.is_of_library || !cluster_.library.empty(), "a fault of no library");
  if (fault.trouble == Trouble::node && !fault.is_of_library) alone_[at(fault.first)] += std::log1p(-fault.share);
  for (int rail = 0; rail < std::ssize(rails_); ++rail) {
    if (fault.rail != kNoRail && fault.rail != rail) continue;
    put_in(fault, rails_[at(rail)]);
    if (!fault.is_of_library) put_in(fault, bare_rails_[at(rail)]);
  }
}

void PretendedCrew::put_in(const Fault& fault, Rail& rail) {
  const double loss = std::log1p(-fault.share);
  const std::size_t part = at(fault.first);
  switch (fault.trouble) {
    case Trouble::node:
    case Trouble::nic:
      rail.in[part] += loss;
      [[fallthrough]];
    case Trouble::nic_out:
      rail.out[part] += loss;
      break;
    case Trouble::nic_in:
      rail.in[part] += loss;
      break;
    case Trouble::uplink:
      rail.uplink_in[part] += loss;
      [[fallthrough]];
    case Trouble::uplink_out:
      rail.uplink_out[part] += loss;
      break;
    case Trouble::fleet:
      rail.fleet += loss;
      break;
    default:
      break;  // of a link, or of a moment
  }
}

std::string PretendedCrew::name_of(int node) const { return fmt::format("node{}", node + 1); }

std::string PretendedCrew::absence_of(int node) const {
  const bool is_absent = std::ranges::any_of(cluster_.faults, [node](const Fault& fault) {
    return fault.trouble == Trouble::absent && fault.first == node && fault.rail == kNoRail;
  });
  return is_absent ? fmt::format("agent: exit 255 \"{}: no route to host\"", name_of(node)) : std::string();
}

std::string PretendedCrew::absence_of_rail(int node, int rail) const {
  const bool is_absent = std::ranges::any_of(cluster_.faults, [&](const Fault& fault) {
    return fault.trouble == Trouble::absent && fault.first == node && fault.rail == rail;
  });
  return is_absent ? fmt::format("'{}' is no interface of {}", cluster_.rails[at(rail)], name_of(node)) : std::string();
}

/// Box and Muller's.
double PretendedCrew::normal() {
  const double radius = std::sqrt(-2 * std::log(random_.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random_.uniform());
}

double PretendedCrew::noise_of(int one, int other) {
  const Noise& noise = cluster_.noise;
  double deviation = noise.measurement;
  if (!noise.multiples.empty()) deviation *= std::max(noise.multiples[at(one)], noise.multiples[at(other)]);
  double draw = normal();
  if (noise.has_heavy_tails) {  // a normal number over the root of a mean of 3 squares
    double squares = 0;
    for (int i = 0; i < 3; ++i) {
      const double number = normal();
      squares += number * number;
    }
    draw /= std::sqrt(squares / 3);
  }
  double sum = draw * deviation;
  if (random_.uniform() < noise.outliers) sum += std::log(0.3 + 0.6 * random_.uniform());
  return sum;
}

bool PretendedCrew::is_in_spell(bool was_in_spell, double share, double length) {
  const double leaves = 1 / length;
  const double enters = leaves * share / (1 - share);
  return was_in_spell ? random_.uniform() >= leaves : random_.uniform() < enters;
}

void PretendedCrew::step() {
  const Noise& noise = cluster_.noise;
  if (noise.fleet_spells > 0) is_fleet_in_spell_ = is_in_spell(is_fleet_in_spell_, noise.fleet_spells, kFleetSpell);
  for (std::size_t node = 0; noise.node_spells > 0 && node < node_spells_.size(); ++node) {
    node_spells_[node] = is_in_spell(node_spells_[node], noise.node_spells, kNodeSpell);
  }
  for (std::size_t i = 0; i < cluster_.faults.size(); ++i) {
    const Trouble trouble = cluster_.faults[i].trouble;
    if (!is_spell(trouble)) continue;
    fault_spells_[i] = is_in_spell(fault_spells_[i], trouble == Trouble::jam ? kJamShare : kUnsteadyShare, kNodeSpell);
  }
}

/// What the link itself adds: of a healthy one a little, always the same.
double PretendedCrew::link_of(const Transfer& transfer) const {
  std::uint64_t seed = scramble(cluster_.seed ^ scramble(static_cast<std::uint64_t>(transfer.sender) + 1));
  seed = scramble(seed ^ scramble(static_cast<std::uint64_t>(transfer.receiver) + 1));
  if (rail_ > 0) seed = scramble(seed ^ scramble(static_cast<std::uint64_t>(rail_)));
  const double uniform = static_cast<double>(seed >> 11U) * 0x1p-53;
  double sum = (2 * uniform - 1) * std::numbers::sqrt3 * cluster_.noise.links;
  for (const Fault& fault : cluster_.faults) {
    if (!is_here(fault)) continue;
    const bool is_both = is_between(fault, transfer.sender, transfer.receiver);
    const bool is_slow =
        (fault.trouble == Trouble::link && is_both) || (fault.trouble == Trouble::link_out && is_of(fault, transfer));
    if (is_slow) sum += std::log1p(-fault.share);
    if (fault.trouble == Trouble::fast && is_both) sum -= std::log1p(-fault.share);
  }
  return sum;
}

double PretendedCrew::spells_of(const Transfer& transfer) const {
  double sum = is_fleet_in_spell_ ? kFleetInSpell : 0;
  if (node_spells_[at(transfer.sender)] || node_spells_[at(transfer.receiver)]) sum += kNodeInSpell;
  for (std::size_t i = 0; i < cluster_.faults.size(); ++i) {
    const Fault& fault = cluster_.faults[i];
    if (!fault_spells_[i] || !is_here(fault)) continue;
    const bool is_met = fault.trouble == Trouble::jam
                            ? is_between(fault, leaf_of(transfer.sender), leaf_of(transfer.receiver))
                            : fault.first == transfer.sender || fault.first == transfer.receiver;
    if (is_met) sum += std::log1p(-fault.share);
  }
  return sum;
}

Outcome PretendedCrew::transfer_of(const Transfer& transfer) {
  const Rail& over = rail();
  double speed = std::min(over.out[at(transfer.sender)], over.in[at(transfer.receiver)]);
  const std::size_t from = at(leaf_of(transfer.sender)), to = at(leaf_of(transfer.receiver));
  if (from != to)
    speed = std::min({speed, over.uplink_out[from], over.uplink_in[to]}) + std::log1p(-cluster_.spine_cost);
  speed += link_of(transfer) + spells_of(transfer) + over.fleet + noise_of(transfer.sender, transfer.receiver);
  Outcome outcome{.log_speed = std::log(kBytesPerSecond) + speed, .seconds = kSecondsOfATest};
  for (const Fault& fault : cluster_.faults) {
    if (fault.trouble != Trouble::wrong || !is_of(fault, transfer) || !is_here(fault)) continue;
    outcome.ending = Ending::wrong;
    outcome.detail = "element 17 is 3, and has to be 4";
  }
  return outcome;
}

Outcome PretendedCrew::latency_of(const Transfer& transfer) {
  const bool is_far = leaf_of(transfer.sender) != leaf_of(transfer.receiver);
  const double speed = spells_of(transfer) / 4 + noise_of(transfer.sender, transfer.receiver) / 2;
  return {.log_speed = std::log(kPingsPerSecond) + speed - (is_far ? 0.2 : 0), .seconds = kSecondsOfATest / 4};
}

Outcome PretendedCrew::alone_of(int node) {
  const double speed = alone_[at(node)] + spells_of({.sender = node, .receiver = node}) + noise_of(node, node);
  Outcome outcome{.log_speed = std::log(kAloneBytesPerSecond) + speed, .seconds = kSecondsOfATest};
  outcome.members = {outcome.log_speed};
  return outcome;
}

double PretendedCrew::crowds_of(int node) const {
  double lost = 0;
  for (const Fault& fault : cluster_.faults) {
    if (fault.trouble == Trouble::crowd && fault.first == node && is_here(fault)) lost += std::log1p(-fault.share);
  }
  return lost;
}

Outcome PretendedCrew::ring_of(const Group& group) {
  Outcome all{.seconds = kSecondsOfATest};
  all.members.assign(group.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::size_t next = (i + 1) % group.size();
    const Outcome sent = transfer_of({.sender = group[i], .receiver = group[next]});
    if (sent.ending != Ending::measured) return sent;
    const double speed = sent.log_speed + std::min(crowds_of(group[i]), crowds_of(group[next]));
    for (const std::size_t end : {i, next}) all.members[end] = std::min(all.members[end], speed);
  }
  all.log_speed = std::ranges::min(all.members);
  return all;
}

Outcome PretendedCrew::collective_of(const Group& group, const Test& test) {
  // A bus bandwidth: the slowest part decides, and steps that take a latency each.
  Outcome all = ring_of(group);
  all.members.clear();
  if (all.ending != Ending::measured) return all;
  for (const int one : group) {
    for (const int other : group) {
      const bool is_wrong = std::ranges::any_of(cluster_.faults, [&](const Fault& fault) {
        return fault.trouble == Trouble::wrong && is_here(fault) && is_of(fault, {.sender = one, .receiver = other});
      });
      if (is_wrong && one != other) return {.ending = Ending::wrong, .detail = "element 17 is 3, and has to be 4"};
    }
  }
  const double steps = 2 * std::log2(static_cast<double>(group.size()));
  const double bytes = static_cast<double>(test.bytes);
  if (test.measure == Measure::all_reduce || test.measure == Measure::all_to_all) {
    const double seconds = bytes / std::exp(all.log_speed) + steps / kPingsPerSecond;
    all.log_speed = std::log(bytes / seconds);
    return all;
  }
  all.seconds = kSecondsOfASoak;
  constexpr double kStepsOfATraining = 16;
  all.log_speed = std::log((test.measure == Measure::soak ? bytes : kStepsOfATraining) / all.seconds);
  return all;
}

Outcome PretendedCrew::outcome_of(const Group& group, const Test& test) {
  const bool is_single = test.measure == Measure::alone;
  TUTTI_ASSERT(is_single ? group.size() == 1 : group.size() >= 2, "a group of {}", group.size());
  is_bare_ = test.is_bare;
  rail_ = is_single ? kNoRail : std::max(test.rail, 0);
  TUTTI_ASSERT(rail_ < std::ssize(rails_), "a test of rail {}", test.rail);
  Outcome outcome;
  switch (test.measure) {
    case Measure::bandwidth:
      outcome = transfer_of({.sender = group[0], .receiver = group[1]});
      break;
    case Measure::back:
      outcome = transfer_of({.sender = group[1], .receiver = group[0]});
      break;
    case Measure::latency:
      outcome = latency_of({.sender = group[0], .receiver = group[1]});
      break;
    case Measure::alone:
      outcome = alone_of(group[0]);
      break;
    case Measure::ring:
      outcome = ring_of(group);
      break;
    case Measure::all_reduce:
    case Measure::all_to_all:
    case Measure::soak:
    case Measure::training:
    case Measure::command:
      outcome = collective_of(group, test);
      break;
  }
  for (const Fault& fault : cluster_.faults) {
    if (is_here(fault)) end_by(fault, group, outcome);
  }
  if (outcome.ending != Ending::measured) {
    outcome.log_speed = 0;
    outcome.members.clear();
  }
  return outcome;
}

void PretendedCrew::pause() {
  constexpr int kTests = 60;
  for (int test = 0; test < kTests; ++test) step();
}

std::vector<std::vector<Outcome>> PretendedCrew::play(const std::vector<Group>& groups,
                                                      const std::vector<Test>& tests) {
  std::vector<bool> is_busy(alone_.size());
  for (const Group& group : groups) {
    for (const int node : group) {
      TUTTI_ASSERT(node >= 0 && node < nodes() && !is_busy[at(node)], "node {} is in two groups, or in none", node);
      TUTTI_ASSERT(absence_of(node).empty(), "node {} is absent", node);
      is_busy[at(node)] = true;
    }
  }
  std::vector<std::vector<Outcome>> outcomes(groups.size());
  for (const Test& test : tests) {
    step();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool has_failed = !outcomes[i].empty() && (outcomes[i].back().ending == Ending::hung ||
                                                       outcomes[i].back().ending == Ending::failed);
      outcomes[i].push_back(has_failed ? outcomes[i].back() : outcome_of(groups[i], test));
    }
  }
  return outcomes;
}

}  // namespace tutti::harness::accept

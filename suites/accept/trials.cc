// SPDX-License-Identifier: Apache-2.0
#include "suites/accept/trials.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/statistics/splitmix.h"
#include "harness/text/number.h"
#include "impl/types/status.h"

namespace tutti::suites {
namespace {

using harness::SplitMix;
using namespace harness::accept;

struct Kind {
  std::string_view name;
  Trouble trouble;
  Class what;
};
constexpr std::array kKinds{
    Kind{"node", Trouble::node, Class::node},          Kind{"nic", Trouble::nic, Class::nic},
    Kind{"nic-out", Trouble::nic_out, Class::nic_out}, Kind{"nic-in", Trouble::nic_in, Class::nic_in},
    Kind{"link", Trouble::link, Class::link},          Kind{"link-dir", Trouble::link_out, Class::link_dir},
    Kind{"uplink", Trouble::uplink, Class::uplink},    Kind{"uplink-dir", Trouble::uplink_out, Class::uplink_dir},
    Kind{"hung", Trouble::hung, Class::hung},          Kind{"dead", Trouble::dead, Class::dead},
    Kind{"wrong", Trouble::wrong, Class::wrong},       Kind{"too-fast", Trouble::fast, Class::too_fast}};

const Kind& kind_named(std::string_view name) { return *std::ranges::find(kKinds, name, &Kind::name); }

Fault drawn(const Kind& kind, const TrialCell& cell, SplitMix& random) {
  const int leaves = (cell.nodes + cell.leaf_size - 1) / cell.leaf_size;
  const int places = hits_leaves(kind.trouble) ? leaves : cell.nodes;
  Fault fault{.trouble = kind.trouble, .first = static_cast<int>(random.below(static_cast<std::size_t>(places)))};
  fault.second = fault.first;
  while (hits_two(kind.trouble) && fault.second == fault.first) {
    fault.second = static_cast<int>(random.below(static_cast<std::size_t>(places)));
  }
  if (has_share(kind.trouble)) fault.share = cell.share;
  return fault;
}

/// Faults of a mix do not touch each other, and one of them at most is of a leaf.
std::vector<Fault> mixed(const TrialCell& cell, SplitMix& random) {
  TUTTI_ASSERT(cell.nodes >= 3 * cell.faults, "{} faults that do not touch, on {} nodes", cell.faults, cell.nodes);
  std::vector<Fault> faults;
  std::set<int> used;
  bool has_leaf = false;
  while (std::ssize(faults) < cell.faults) {
    const Kind& kind = kKinds.at(random.below(kKinds.size()));
    const Fault fault = drawn(kind, cell, random);
    const bool is_of_leaf = hits_leaves(kind.trouble);
    if (is_of_leaf && (has_leaf || cell.nodes / cell.leaf_size < 3)) continue;
    if (!is_of_leaf && (used.contains(fault.first) || used.contains(fault.second))) continue;
    if (is_of_leaf) has_leaf = true;
    if (!is_of_leaf) used.insert({fault.first, fault.second});
    faults.push_back(fault);
  }
  return faults;
}

Class class_of(const Fault& fault) { return std::ranges::find(kKinds, fault.trouble, &Kind::trouble)->what; }

bool is_uplink(Class what) { return what == Class::uplink || what == Class::uplink_dir; }

/// Whether a finding names the part that the fault is in.
bool names(const Finding& finding, const Fault& fault) {
  if (is_uplink(finding.what) != hits_leaves(fault.trouble)) return false;
  if (!hits_two(fault.trouble)) return finding.first == fault.first && finding.second < 0;
  return std::minmax(finding.first, finding.second) == std::minmax(fault.first, fault.second);
}

bool has_right_class(const Finding& finding, const Fault& fault) {
  if (finding.what != class_of(fault)) return false;
  const bool is_directed = fault.trouble == Trouble::link_out || fault.trouble == Trouble::wrong;
  if (is_directed) return finding.first == fault.first && finding.second == fault.second;
  return fault.trouble != Trouble::uplink_out || finding.is_out;
}

/// Processor time of this process: others that take the cores do not count.
double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Counting final : public Crew {
 public:
  explicit Counting(PretendedCrew& crew) : crew_(crew) {}
  [[nodiscard]] int nodes() const override { return crew_.nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_.name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return crew_.leaf_of(node); }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    const double begin = processor_s();
    auto outcomes = crew_.play(groups, tests);
    playing_s += processor_s() - begin;
    tests_played += std::ssize(groups) * std::ssize(tests);
    ++rounds;
    return outcomes;
  }
  void pause() override {
    const double begin = processor_s();
    crew_.pause();
    playing_s += processor_s() - begin;
  }
  double playing_s = 0;
  long long tests_played = 0, rounds = 0;

 private:
  PretendedCrew& crew_;
};

void add(const PretendedCluster& cluster, const Findings& findings, TrialCounts& counts) {
  std::set<std::size_t> used;
  int false_parts = 0;
  for (const Fault& fault : cluster.faults) {
    ++counts.put_in;
    for (std::size_t i = 0; i < findings.parts.size(); ++i) {
      const Finding& finding = findings.parts[i];
      if (finding.judgement.verdict != Verdict::fail || used.contains(i) || !names(finding, fault)) continue;
      used.insert(i);
      ++counts.named;
      counts.classed += has_right_class(finding, fault);
      break;
    }
  }
  for (std::size_t i = 0; i < findings.parts.size(); ++i) {
    const Finding& finding = findings.parts[i];
    counts.splits += finding.what == Class::split;
    if (finding.judgement.verdict != Verdict::fail) ++counts.suspects;
    if (finding.judgement.verdict == Verdict::fail && !used.contains(i)) ++false_parts;
  }
  counts.false_parts += false_parts;
  counts.alarms += false_parts > 0;
  const bool is_silent = cluster.generation > 0 && findings.parts.empty();
  const bool is_wrong = false_parts > 0 || is_silent || std::ssize(used) < std::ssize(cluster.faults);
  if (!is_wrong || !counts.example.empty()) return;
  counts.example = fmt::format("seed {}:", cluster.seed);
  for (const Fault& fault : cluster.faults) {
    counts.example += fmt::format(" put in {} {} {};", to_string(class_of(fault)), fault.first, fault.second);
  }
  for (const Finding& finding : findings.parts) {
    counts.example +=
        fmt::format(" {} {} {} {} {:+.3f} [{:+.3f}, {:+.3f}] {} visits;", to_string(finding.judgement.verdict),
                    to_string(finding.what), finding.first, finding.second, finding.judgement.middle,
                    finding.judgement.low.value_or(0), finding.judgement.high.value_or(0), finding.visits);
  }
}

}  // namespace

double TrialCounts::f1() const {
  const int wrong = false_parts + put_in - named;
  return named == 0 ? 0 : 2.0 * named / (2.0 * named + wrong);
}

double TrialCounts::class_share() const { return named == 0 ? 0 : static_cast<double>(classed) / named; }

double older_share(std::string_view kind) {
  constexpr std::string_view kPrefix = "older-";
  if (!kind.starts_with(kPrefix)) return 0;
  return harness::text::number_in<double>(kind.substr(kPrefix.size())).value_or(0) / 100;
}

const std::vector<std::string_view>& trial_kinds() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Kind& kind : kKinds) list.push_back(kind.name);
    return list;
  }();
  return names;
}

TrialCounts try_clusters(const TrialCell& cell, int clusters, std::uint64_t seed) {
  TrialCounts counts;
  for (int number = 0; number < clusters; ++number) {
    const std::uint64_t own_seed = seed + static_cast<std::uint64_t>(number);
    SplitMix random(own_seed ^ 0x5eedULL);
    PretendedCluster cluster{
        .nodes = cell.nodes, .leaf_size = cell.leaf_size, .noise = cell.noise, .faults = {}, .seed = own_seed};
    if (cell.are_multiples_drawn) {
      for (int node = 0; node < cell.nodes; ++node) cluster.noise.multiples.push_back(1 + 2 * random.uniform());
    }
    if (const double older = older_share(cell.kind); older > 0) {
      cluster.generation = older;
      cluster.generation_cost = cell.share;
    } else if (cell.kind == "mixed") {
      cluster.faults = mixed(cell, random);
    } else if (cell.kind != "none") {
      cluster.faults = {drawn(kind_named(cell.kind), cell, random)};
    }
    PretendedCrew crew(cluster);
    Counting counting(crew);
    Observer observer;
    const double begin = processor_s();
    const PairsPlan plan{.is_full = cell.is_full, .seed = own_seed * 3 + 1};
    const Findings findings = examine_pairs(counting, plan, observer);
    const double whole = processor_s() - begin;
    ++counts.clusters;
    counts.tests += counting.tests_played;
    counts.rounds += counting.rounds;
    const PairsForecast forecast = pairs_forecast(cell.nodes, plan);
    counts.within_forecast += counting.rounds <= forecast.rounds + forecast.repeats;
    counts.analysis_s += whole - counting.playing_s;
    counts.worst_s = std::max(counts.worst_s, whole - counting.playing_s);
    add(cluster, findings, counts);
  }
  return counts;
}

std::string line_of(const TrialCell& cell, const TrialCounts& counts) {
  return fmt::format(
      "N {:<5} {:<10} {:3.0f} %  F1 {:.3f} class {:.3f}  missed {:>3} false {:>3} alarms {:>3}/{:<4} open {:>3} split "
      "{:>3}  tests {:>8.0f} rounds {:>5.0f} analysis {:.3f} s, at most {:.3f} s",
      cell.nodes, cell.kind, 100 * cell.share, counts.f1(), counts.class_share(), counts.put_in - counts.named,
      counts.false_parts, counts.alarms, counts.clusters, counts.suspects, counts.splits,
      static_cast<double>(counts.tests) / counts.clusters, static_cast<double>(counts.rounds) / counts.clusters,
      counts.analysis_s / counts.clusters, counts.worst_s);
}

}  // namespace tutti::suites

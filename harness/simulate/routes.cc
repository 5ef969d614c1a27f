// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/routes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <fmt/format.h>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::simulate {
namespace {

int up_to(int number, int multiple) { return (number + multiple - 1) / multiple; }

/// What a part that has lost `share` of its speed takes longer.
double factor_of(double share) { return 1 / (1 - share); }

}  // namespace

std::string node_text(int node) { return fmt::format("node{}", node + 1); }

std::string leaf_text(int leaf) {
  constexpr int kLetters = 26;
  return leaf < kLetters ? std::string(1, static_cast<char>('A' + leaf)) : fmt::format("leaf {}", leaf + 1);
}

Routes::Routes(const Machine& machine, int ranks, int period)
    : machine_(machine),
      network_(machine.network),
      rails_(machine.rails > 0 ? machine.rails : machine.ranks_per_node),
      nodes_(std::max(machine.network.nodes, up_to(ranks, machine.ranks_per_node))),
      interfaces_(up_to(period > 0 ? period : ranks, machine.ranks_per_node) * rails_) {
  place(up_to(ranks, machine.ranks_per_node));
  if (network_.has_leaves()) {
    leaves_ = up_to(nodes_, network_.leaf);
    const int of_period = machine.ranks_per_node * network_.leaf;
    walked_leaves_ = period > 0 ? std::max(1, period / of_period) : leaves_;
  }
  make_links();
  add_faults();
}

void Routes::place(int used) {
  if (network_.placing == Placing::contiguous) return;
  if (network_.placing == Placing::random) {
    placed_.resize(static_cast<std::size_t>(nodes_));
    std::iota(placed_.begin(), placed_.end(), 0);
    statistics::SplitMix random(network_.seed);
    random.shuffle(placed_);
    placed_.resize(static_cast<std::size_t>(used));
    return;
  }
  if (!network_.has_leaves()) return;
  for (int at = 0; static_cast<int>(placed_.size()) < used; ++at) {
    const int leaves = up_to(nodes_, network_.leaf);
    const int node = at % leaves * network_.leaf + at / leaves;
    if (node < nodes_ && at / leaves < network_.leaf) placed_.push_back(node);
  }
}

void Routes::make_links() {
  const auto count = [](int number) { return static_cast<std::size_t>(number); };
  switch (network_.shape) {
    case Shape::one_switch:
      break;
    case Shape::fat_tree:
      shares_.assign(count(2 * walked_leaves_), network_.taper / (network_.leaf * rails_));
      break;
    case Shape::rails:
      shares_.assign(count(2 * walked_leaves_ * rails_), network_.taper / network_.leaf);
      break;
    case Shape::dragonfly:
      shares_.assign(count(walked_leaves_) * count(leaves_), 1 / network_.links);
      break;
    case Shape::torus:
      shares_.assign(count(nodes_) * 2 * network_.sides.size(), 1);
      break;
  }
}

void Routes::add_faults() {
  has_faults_ = !machine_.faults.empty();
  if (!has_faults_) return;
  processors_.assign(static_cast<std::size_t>(nodes_), 1);
  out_ = in_ = processors_;
  rail_factors_.assign(static_cast<std::size_t>(rails_), 1);
  for (const SlowFault& fault : machine_.faults) {
    const double slow = factor_of(fault.share);
    const auto first = static_cast<std::size_t>(fault.first);
    const bool is_both = fault.part == SlowPart::nic || fault.part == SlowPart::uplink || fault.part == SlowPart::link;
    switch (fault.part) {
      case SlowPart::node:
        if (first < processors_.size()) processors_[first] *= slow;
        break;
      case SlowPart::nic:
      case SlowPart::nic_out:
      case SlowPart::nic_in:
        if (first >= out_.size()) break;
        if (is_both || fault.part == SlowPart::nic_out) out_[first] *= slow;
        if (is_both || fault.part == SlowPart::nic_in) in_[first] *= slow;
        break;
      case SlowPart::rail:
        if (first < rail_factors_.size()) rail_factors_[first] *= slow;
        break;
      case SlowPart::link:
      case SlowPart::link_out:
        pairs_.try_emplace({fault.first, fault.second}, 1).first->second *= slow;
        if (is_both) pairs_.try_emplace({fault.second, fault.first}, 1).first->second *= slow;
        break;
      case SlowPart::uplink:
      case SlowPart::uplink_out: {
        const int each = network_.shape == Shape::rails ? rails_ : 1;
        for (int rail = 0; rail < each; ++rail) {
          const std::size_t up = 2 * (first * static_cast<std::size_t>(each) + static_cast<std::size_t>(rail));
          if (up + 1 >= shares_.size()) break;
          shares_[up] *= slow;
          if (is_both) shares_[up + 1] *= slow;
        }
        break;
      }
    }
  }
}

double Routes::out_factor(int rank) const { return factor(out_, node_at(rank)) * factor(rail_factors_, rail_of(rank)); }
double Routes::in_factor(int rank) const { return factor(in_, node_at(rank)) * factor(rail_factors_, rail_of(rank)); }

double Routes::pair_factor(int from, int to) const {
  const auto found = pairs_.find({node_at(from), node_at(to)});
  return found == pairs_.end() ? 1 : found->second;
}

int Routes::interface_of(int rank) const { return machine_.node_of(rank) * rails_ + rail_of(rank); }

std::string Routes::interface_name(int interface) const {
  const int own = interface / rails_;
  const std::string node = node_text(placed_.empty() ? own : placed_[static_cast<std::size_t>(own)]);
  return rails_ == 1 ? fmt::format("interface of {}", node)
                     : fmt::format("interface {} of {}", interface % rails_, node);
}

int Routes::find(int from_rank, int to_rank, std::vector<int>& links) const {
  links.clear();
  const int from = node_at(from_rank), to = node_at(to_rank);
  if (network_.shape == Shape::one_switch) return 0;
  if (network_.shape == Shape::torus) return find_in_torus(from, to, links);
  const int a = from / network_.leaf, b = to / network_.leaf;
  if (network_.shape == Shape::dragonfly) {
    if (a == b) return 0;
    links.push_back(a % walked_leaves_ * leaves_ + (walked_leaves_ == leaves_ ? b : (b - a + leaves_) % leaves_));
    return 1;
  }
  const int rail_a = rail_of(from_rank), rail_b = rail_of(to_rank);
  const bool has_rails = network_.shape == Shape::rails;
  if (a == b && (!has_rails || rail_a == rail_b)) return 0;
  const auto of = [&](int leaf, int rail) {
    return has_rails ? leaf % walked_leaves_ * rails_ + rail : leaf % walked_leaves_;
  };
  links.push_back(2 * of(a, rail_a));
  links.push_back(2 * of(b, rail_b) + 1);
  return 1;
}

/// The shorter way around in each dimension; up if both are as long.
int Routes::find_in_torus(int from, int to, std::vector<int>& links) const {
  const int dimensions = static_cast<int>(network_.sides.size());
  int step = 1, node = from;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    const int side = network_.sides[static_cast<std::size_t>(dimension)];
    const int goal = to / step % side;
    int here = from / step % side;
    const int up = (goal - here + side) % side;
    const bool is_up = 2 * up <= side;
    for (int left = is_up ? up : side - up; left > 0; --left) {
      links.push_back((node * dimensions + dimension) * 2 + (is_up ? 0 : 1));
      const int next = (here + (is_up ? 1 : side - 1)) % side;
      node += (next - here) * step;
      here = next;
    }
    step *= side;
  }
  return std::max(0, static_cast<int>(links.size()) - 1);
}

std::string Routes::name(int link) const {
  switch (network_.shape) {
    case Shape::one_switch:
      break;
    case Shape::fat_tree:
      return fmt::format("{} of leaf {}", link % 2 == 0 ? "uplink" : "downlink", leaf_text(link / 2));
    case Shape::rails:
      return fmt::format("{} of rail {} of leaf {}", link % 2 == 0 ? "uplink" : "downlink", link / 2 % rails_,
                         leaf_text(link / 2 / rails_));
    case Shape::dragonfly:
      return fmt::format("links from group {} to {}", leaf_text(link / leaves_), leaf_text(link % leaves_));
    case Shape::torus: {
      const int dimensions = static_cast<int>(network_.sides.size());
      constexpr const char* kNames = "xyzw";
      return fmt::format("link {}{} of {}", link % 2 == 0 ? "+" : "-", kNames[link / 2 % dimensions],
                         node_text(link / 2 / dimensions));
    }
  }
  return {};
}

}  // namespace tutti::harness::simulate

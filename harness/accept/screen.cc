// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/screen.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tutti::harness::accept {
namespace {

constexpr double kSuspicious = 0.6;  // of the margin
constexpr double kSuspiciousLink = 0.8;
constexpr double kSuspiciouslyFast = 0.8;  // of the limit
constexpr int kTurns = 4;
constexpr int kLeavesForUplinks = 3;  // two leaves do not say which uplink is slow
constexpr int kNodesForLinks = 4;     // in a triangle a slow side reads as a slow node

using IsGood = std::function<bool(int sender, int receiver)>;

class Screen {
 public:
  Screen(const Matrix& cells, const std::vector<int>& leaves, int nodes, const Limits& limits, const Baseline* right)
      : cells_(cells),
        leaves_(leaves),
        playing_(nodes),
        limits_(limits),
        right_(right),
        suspicion_(suspicion(limits)),
        found_(cells.nodes()) {
    const int leaf_count = *std::ranges::max_element(leaves) + 1;
    found_.nodes.resize(leaves.size());
    found_.uplinks.resize(at(leaf_count));
  }

  Suspects run() {
    for (int turn = 0; turn < kTurns; ++turn) {
      set_relative(turn == 0);
      if (std::ssize(found_.uplinks) >= kLeavesForUplinks) find_uplinks();
      const std::vector<BothWays> before = found_.nodes;
      find_nodes();
      const bool is_settled = std::ranges::equal(before, found_.nodes, [](const BothWays& one, const BothWays& other) {
        return (one.out < 0) == (other.out < 0) && (one.in < 0) == (other.in < 0);
      });
      if (turn > 0 && is_settled) break;
    }
    if (std::ssize(found_.uplinks) >= kLeavesForUplinks) blame_leaves();
    if (playing_ >= kNodesForLinks) find_links();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_far(int one, int other) const { return leaves_[at(one)] != leaves_[at(other)]; }
  [[nodiscard]] bool have_good_nodes(int sender, int receiver) const {
    return found_.nodes[at(sender)].out == 0 && found_.nodes[at(receiver)].in == 0;
  }
  [[nodiscard]] bool has_good_uplinks(int sender, int receiver) const {
    return !is_far(sender, receiver) ||
           (found_.uplinks[at(leaves_[at(sender)])].out == 0 && found_.uplinks[at(leaves_[at(receiver)])].in == 0);
  }

  /// The median of the cells that `is_good` allows; NaN if it allows none that was measured.
  [[nodiscard]] double level_of(bool of_far, const IsGood& is_good) const {
    const int nodes = cells_.nodes();
    std::vector<double> medians, row;
    double most = kNothing;
    for (int sender = 0; sender < nodes; ++sender) {
      row.clear();
      for (int receiver = 0; receiver < nodes; ++receiver) {
        const double cell = cells_(sender, receiver);
        if (is_far(sender, receiver) != of_far || std::isnan(cell) || !is_good(sender, receiver)) continue;
        row.push_back(cell);
        most = std::isnan(most) ? cell : std::max(most, cell);
      }
      medians.push_back(median_of_numbers(row));
    }
    constexpr int kTriangle = 3, kFew = 4;
    if (playing_ == kTriangle) return most;
    return playing_ <= kFew ? high_median_of_numbers(medians) : median_of_numbers(medians);
  }

  /// `is_first`: no uplink is known to be slow.
  void set_relative(bool is_first) {
    const auto level = [this](bool of_far) {
      const double good = level_of(of_far, [this](int sender, int receiver) {
        return have_good_nodes(sender, receiver) && has_good_uplinks(sender, receiver);
      });
      return std::isnan(good) ? level_of(of_far, [](int, int) { return true; }) : good;
    };
    if (right_ != nullptr) {
      found_.near = right_->near;
      found_.far = right_->far;
    } else {
      found_.near = level(false);
      set_far_levels(level(true), is_first);
    }
    for (int sender = 0; sender < cells_.nodes(); ++sender) {
      for (int receiver = 0; receiver < cells_.nodes(); ++receiver) {
        found_.relative(sender, receiver) =
            sender == receiver ? kNothing
                               : cells_(sender, receiver) - found_.level(leaves_[at(sender)], leaves_[at(receiver)]);
      }
    }
  }

  /// One slow uplink of three leaves slows most far cells, and of two leaves all that go one way. So with few leaves
  /// the level is that of the second fastest path between two leaves at first, and of two leaves each way has its own.
  void set_far_levels(double usual, bool is_first) {
    constexpr int kFewLeaves = 4;
    found_.far = usual;
    const int leaves = static_cast<int>(found_.uplinks.size());
    if (leaves < 2 || leaves > kFewLeaves || std::isnan(usual)) return;
    std::vector<double> paths;
    for (int from = 0; from < leaves; ++from) {
      for (int to = 0; to < leaves; ++to) {
        if (from != to) paths.push_back(path_level(from, to));
      }
    }
    if (leaves == 2) {
      found_.far = paths[0];
      found_.far_back = paths[1];
      return;
    }
    if (!is_first) return;
    std::erase_if(paths, [](double path) { return std::isnan(path); });
    std::ranges::sort(paths, std::greater<>());
    if (paths.size() >= 2) found_.far = paths[1];
  }

  /// The median of the cells from one leaf to another.
  [[nodiscard]] double path_level(int from, int to) const {
    std::vector<double> cells;
    for (int sender = 0; sender < cells_.nodes(); ++sender) {
      for (int receiver = 0; receiver < cells_.nodes(); ++receiver) {
        const bool is_of_path = leaves_[at(sender)] == from && leaves_[at(receiver)] == to;
        if (is_of_path && have_good_nodes(sender, receiver)) cells.push_back(cells_(sender, receiver));
      }
    }
    return median_of_numbers(cells);
  }

  /// The median over the nodes of a leaf of the medians of their cells to, or from, good nodes of good leaves.
  [[nodiscard]] double outside(int leaf, Way way) const {
    std::vector<double> medians, cells;
    for (int own = 0; own < cells_.nodes(); ++own) {
      if (leaves_[at(own)] != leaf) continue;
      cells.clear();
      for (int other = 0; other < cells_.nodes(); ++other) {
        const int other_leaf = leaves_[at(other)];
        const int sender = way == Way::out ? own : other, receiver = way == Way::out ? other : own;
        const Way other_way = way == Way::out ? Way::in : Way::out;
        if (other_leaf == leaf || found_.uplinks[at(other_leaf)].of(other_way) != 0) continue;
        if (have_good_nodes(sender, receiver)) cells.push_back(found_.relative(sender, receiver));
      }
      medians.push_back(median_of_numbers(cells));
    }
    return median_of_numbers(medians);
  }

  [[nodiscard]] double within(int leaf) const {
    std::vector<double> cells;
    for (int sender = 0; sender < cells_.nodes(); ++sender) {
      for (int receiver = 0; receiver < cells_.nodes(); ++receiver) {
        if (leaves_[at(sender)] == leaf && leaves_[at(receiver)] == leaf) {
          cells.push_back(found_.relative(sender, receiver));
        }
      }
    }
    return or_zero(median_of_numbers(cells));
  }

  /// An uplink is a suspect if most of its nodes are slow outside, and not within. The worst one comes first; the
  /// others are then judged without it.
  void find_uplinks() {
    found_.uplinks.assign(found_.uplinks.size(), {});
    std::vector<double> inside;
    for (int leaf = 0; leaf < std::ssize(found_.uplinks); ++leaf) inside.push_back(std::min(0.0, within(leaf)));
    while (true) {
      int worst = -1;
      Way worst_way = Way::out;
      double worst_depth = suspicion_, worst_value = 0;
      for (int leaf = 0; leaf < std::ssize(found_.uplinks); ++leaf) {
        for (const Way way : kWays) {
          if (found_.uplinks[at(leaf)].of(way) != 0) continue;
          const double value = outside(leaf, way), depth = value - inside[at(leaf)];
          if (!(depth < worst_depth)) continue;
          worst = leaf;
          worst_way = way;
          worst_depth = depth;
          worst_value = value;
        }
      }
      if (worst < 0) return;
      found_.uplinks[at(worst)].of(worst_way) = worst_value;
    }
  }

  /// The worst row or column leaves first; the others are then judged without it.
  void find_nodes() {
    Matrix alive = found_.relative;
    const int nodes = alive.nodes();
    for (int sender = 0; sender < nodes; ++sender) {
      for (int receiver = 0; receiver < nodes; ++receiver) {
        if (!has_good_uplinks(sender, receiver)) alive(sender, receiver) = kNothing;
      }
    }
    found_.nodes.assign(found_.nodes.size(), {});
    std::vector<double> rows = medians_of_rows(alive), columns = medians_of_columns(alive);
    for (double& value : rows) value = or_zero(value);
    for (double& value : columns) value = or_zero(value);
    std::vector<double> values;
    for (int turn = 0; turn < 2 * nodes; ++turn) {
      const auto row = std::ranges::min_element(rows), column = std::ranges::min_element(columns);
      if (std::min(*row, *column) >= suspicion_) return;
      const bool is_row = *row <= *column;
      const int node = static_cast<int>(is_row ? row - rows.begin() : column - columns.begin());
      found_.nodes[at(node)].of(is_row ? Way::out : Way::in) = is_row ? *row : *column;
      (is_row ? rows : columns)[at(node)] = 0;
      for (int other = 0; other < nodes; ++other) (is_row ? alive(node, other) : alive(other, node)) = kNothing;
      // The others of which this cell was a part are near the limit, or good whether it counts or not.
      std::vector<double>& crossing = is_row ? columns : rows;
      for (int other = 0; other < nodes; ++other) {
        const bool is_bad = found_.nodes[at(other)].of(is_row ? Way::in : Way::out) != 0;
        if (crossing[at(other)] >= suspicion_ / 2 || is_bad) continue;
        values.clear();
        for (int k = 0; k < nodes; ++k) values.push_back(is_row ? alive(k, other) : alive(other, k));
        crossing[at(other)] = or_zero(median_of_numbers(values));
      }
    }
  }

  /// If most nodes of a leaf are suspects, the uplink is one too: the repeats tell which it is.
  void blame_leaves() {
    constexpr double kMost = 0.75;
    for (int leaf = 0; leaf < std::ssize(found_.uplinks); ++leaf) {
      for (const Way way : kWays) {
        std::vector<double> slow;
        int members = 0;
        for (std::size_t node = 0; node < leaves_.size(); ++node) {
          if (leaves_[node] != leaf) continue;
          ++members;
          if (found_.nodes[node].of(way) < 0) slow.push_back(found_.nodes[node].of(way));
        }
        const bool are_most = members > 1 && static_cast<double>(slow.size()) >= kMost * members;
        if (are_most && found_.uplinks[at(leaf)].of(way) == 0)
          found_.uplinks[at(leaf)].of(way) = median_of_numbers(slow);
      }
    }
  }

  /// Cells between good nodes over good uplinks that are off by more than their nodes are.
  void find_links() {
    Matrix rest = found_.relative;
    const int nodes = rest.nodes();
    for (int sender = 0; sender < nodes; ++sender) {
      for (int receiver = 0; receiver < nodes; ++receiver) {
        if (!have_good_nodes(sender, receiver) || !has_good_uplinks(sender, receiver))
          rest(sender, receiver) = kNothing;
      }
    }
    const std::vector<double> rows = medians_of_rows(rest);
    for (int sender = 0; sender < nodes; ++sender) {
      for (int receiver = 0; receiver < nodes; ++receiver) rest(sender, receiver) -= or_zero(rows[at(sender)]);
    }
    const std::vector<double> columns = medians_of_columns(rest);
    const double slow = kSuspiciousLink * margin_of(limits_),
                 fast = kSuspiciouslyFast * std::log1p(limits_.too_fast);
    for (int sender = 0; sender < nodes; ++sender) {
      for (int receiver = 0; receiver < nodes; ++receiver) {
        const double value = rest(sender, receiver) - or_zero(columns[at(receiver)]);
        if (value < slow || value > fast) found_.links.push_back({.sender = sender, .receiver = receiver});
      }
    }
  }

  const Matrix& cells_;
  const std::vector<int>& leaves_;
  int playing_;
  const Limits& limits_;
  const Baseline* right_;
  double suspicion_;
  Suspects found_;
};

}  // namespace

double suspicion(const Limits& limits) { return kSuspicious * margin_of(limits); }

Suspects suspects_in(const Matrix& cells, const std::vector<int>& leaves, int nodes, const Limits& limits,
                     const Baseline* right) {
  return Screen(cells, leaves, nodes, limits, right).run();
}

}  // namespace tutti::harness::accept

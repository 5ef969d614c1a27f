// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/leaves_by_speed.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace tutti::harness::accept {
namespace {

constexpr std::size_t kLeastNodes = 4, kLeastInLeaf = 2;
constexpr double kConsistent = 0.85;            // of the pairs; by chance it is about half of them
constexpr double kMiddle = 0.5, kUpper = 0.75;  // half of the pairs of a small leaf may be of a slow node
constexpr int kNoLeaf = -1;

class LeavesBySpeed {
 public:
  LeavesBySpeed(const Matrix& cells, const std::vector<int>& nodes)
      : nodes_(nodes), both_(cells.nodes()), of_tops_(cells.nodes()), leaf_(at(cells.nodes()), kNoLeaf) {
    for (const int one : nodes) {
      for (const int other : nodes) {
        const double there = cells(one, other), back = cells(other, one);
        both_(one, other) = std::isnan(there) ? back : std::isnan(back) ? there : (there + back) / 2;
      }
    }
    // A node that is slow with all is not far from all.
    std::vector<double> tops(at(cells.nodes()), kNothing);
    for (const int one : nodes) tops[at(one)] = top_of(one);
    for (const int one : nodes) {
      for (const int other : nodes) of_tops_(one, other) = both_(one, other) - std::min(tops[at(one)], tops[at(other)]);
    }
  }

  std::optional<std::vector<int>> run(double least_gap) {
    if (nodes_.size() < kLeastNodes || !find_levels(least_gap)) return std::nullopt;
    gather();
    if (!are_leaves()) return std::nullopt;
    std::vector<int> numbers(leaf_.size(), kNoLeaf), leaves(leaf_.size(), 0);
    int next = 0;
    for (std::size_t node = 0; node < leaf_.size(); ++node) {
      if (leaf_[node] == kNoLeaf) continue;  // it does not play
      int& number = numbers[at(leaf_[node])];
      if (number == kNoLeaf) number = next++;
      leaves[node] = number;
    }
    return leaves;
  }

 private:
  /// The second fastest of its pairs.
  [[nodiscard]] double top_of(int node) const {
    std::vector<double> speeds;
    for (const int other : nodes_) {
      if (other != node && !std::isnan(both_(node, other))) speeds.push_back(both_(node, other));
    }
    if (speeds.empty()) return kNothing;
    std::ranges::sort(speeds, std::greater<>());
    return speeds[std::min<std::size_t>(speeds.size() > 4 ? 1 : 0, speeds.size() - 1)];
  }

  /// The two levels of all pairs between which the variance is largest (Otsu, 1979).
  bool find_levels(double least_gap) {
    std::vector<double> all;
    for (const int one : nodes_) {
      for (const int other : nodes_) {
        if (one < other && !std::isnan(of_tops_(one, other))) all.push_back(of_tops_(one, other));
      }
    }
    if (all.size() < 2) return false;
    std::ranges::sort(all);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    const auto count = static_cast<double>(all.size());
    double low_sum = 0, most = -1, low = 0, high = 0;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      low_sum += all[i];
      const auto low_count = static_cast<double>(i + 1);
      const double low_mean = low_sum / low_count, high_mean = (sum - low_sum) / (count - low_count);
      const double variance = low_count * (count - low_count) * (high_mean - low_mean) * (high_mean - low_mean);
      if (variance <= most) continue;
      most = variance;
      low = low_mean;
      high = high_mean;
    }
    gap_ = high - low;
    threshold_ = (high + low) / 2;
    return gap_ > least_gap;
  }

  [[nodiscard]] bool are_near(int one, int other) const { return of_tops_(one, other) > threshold_; }

  /// Nodes with the fewest near ones choose first: one that is near to all by chance joins a leaf that is there.
  void gather() {
    std::vector<int> order = nodes_;
    const auto near_ones = [this](int node) {
      return std::ranges::count_if(nodes_, [&](int other) { return other != node && are_near(node, other); });
    };
    std::ranges::stable_sort(order, {}, near_ones);
    int leaf = 0;
    for (const int node : order) {
      if (leaf_[at(node)] != kNoLeaf) continue;
      std::vector<int> members{node};
      for (const int other : nodes_) {
        if (other != node && leaf_[at(other)] == kNoLeaf && are_near(node, other)) members.push_back(other);
      }
      // Who is near to the first by chance is far from the others.
      std::vector<int> kept;
      std::ranges::copy_if(members, std::back_inserter(kept), [&](int one) {
        const auto near =
            std::ranges::count_if(members, [&](int other) { return other != one && are_near(one, other); });
        return one == node || 2 * near >= std::ssize(members) - 1;
      });
      for (const int one : kept) leaf_[at(one)] = leaf;
      ++leaf;
    }
    merge(leaf);
    // Who was far from the first of its leaf by chance is near to most of it.
    constexpr int kTurns = 3;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (const int node : nodes_) leaf_[at(node)] = nearest_leaf(node, leaf);
    }
  }

  /// Leaves whose nodes are near to each other are one.
  void merge(int leaves) {
    for (int one = 0; one < leaves; ++one) {
      for (int other = one + 1; other < leaves; ++other) {
        std::vector<double> speeds;
        for (const int node : nodes_) {
          for (const int partner : nodes_) {
            if (leaf_[at(node)] == one && leaf_[at(partner)] == other) speeds.push_back(of_tops_(node, partner));
          }
        }
        if (!(median_of_numbers(speeds) > threshold_)) continue;
        for (int& leaf : leaf_) leaf = leaf == other ? one : leaf;
      }
    }
  }

  [[nodiscard]] int nearest_leaf(int node, int leaves) const {
    int best = leaf_[at(node)];
    double most = kNothing;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      std::vector<double> speeds;
      for (const int other : nodes_) {
        if (other != node && leaf_[at(other)] == leaf) speeds.push_back(of_tops_(node, other));
      }
      const double middle = median_of_numbers(speeds);
      if (std::isnan(middle) || (!std::isnan(most) && middle <= most)) continue;
      most = middle;
      best = leaf;
    }
    return best;
  }

  [[nodiscard]] bool are_leaves() const {
    const int leaves = *std::ranges::max_element(leaf_) + 1;
    std::vector<std::vector<int>> members(at(leaves));
    for (const int node : nodes_) members[at(leaf_[at(node)])].push_back(node);
    std::erase_if(members, [](const std::vector<int>& one) { return one.empty(); });
    if (members.size() < 2) return false;
    if (std::ranges::any_of(members, [](const auto& one) { return one.size() < kLeastInLeaf; })) return false;
    int pairs = 0, consistent = 0;
    for (const int one : nodes_) {
      for (const int other : nodes_) {
        if (one >= other || std::isnan(of_tops_(one, other))) continue;
        ++pairs;
        consistent += are_near(one, other) == (leaf_[at(one)] == leaf_[at(other)]);
      }
    }
    if (consistent < kConsistent * pairs) return false;
    std::vector<double> within;
    for (const auto& one : members) within.push_back(level_between(one, one, kUpper));
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        const double between = level_between(members[i], members[j], kMiddle);
        if (!(between < std::min(within[i], within[j]) - gap_ / 2)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] double level_between(const std::vector<int>& some, const std::vector<int>& others,
                                     double quantile) const {
    std::vector<double> speeds;
    for (const int one : some) {
      for (const int other : others) {
        if (one != other) speeds.push_back(both_(one, other));
      }
    }
    return quantile_of_numbers(speeds, quantile);
  }

  const std::vector<int>& nodes_;
  Matrix both_;     ///< the mean of both directions
  Matrix of_tops_;  ///< less what the slower one of its nodes reaches at best
  std::vector<int> leaf_;
  double gap_ = 0, threshold_ = 0;
};

}  // namespace

std::optional<std::vector<int>> leaves_by_speed(const Matrix& cells, const std::vector<int>& nodes,
                                                const Limits& limits) {
  return LeavesBySpeed(cells, nodes).run(-margin_of(limits));
}

}  // namespace tutti::harness::accept

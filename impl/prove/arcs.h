// SPDX-License-Identifier: Apache-2.0
// A set of ranks as intervals: small where they come in order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti {

class Arcs {
 public:
  Arcs() = default;
  explicit Arcs(int only) : list_{{only, only + 1}} {}
  /// The ranks [begin, end).
  Arcs(int begin, int end) : list_{{begin, end}} {}

  [[nodiscard]] bool holds_all(int ranks) const {
    return list_.size() == 1 && list_[0].first == 0 && list_[0].second == ranks;
  }
  [[nodiscard]] bool is_only(int rank) const {
    return list_.size() == 1 && list_[0].first == rank && list_[0].second == rank + 1;
  }
  /// With all of `other`.
  void join(const Arcs& other) {
    if (list_.size() == 1 && other.list_.size() == 1 && list_[0].first <= other.list_[0].first &&
        list_[0].second >= other.list_[0].first) {  // the usual case
      list_[0].second = std::max(list_[0].second, other.list_[0].second);
      return;
    }
    std::vector<std::pair<int, int>> all(list_.size() + other.list_.size());
    std::merge(list_.begin(), list_.end(), other.list_.begin(), other.list_.end(), all.begin());
    list_.clear();
    for (const auto& [begin, end] : all) {
      if (!list_.empty() && begin <= list_.back().second) {
        list_.back().second = std::max(list_.back().second, end);
      } else {
        list_.emplace_back(begin, end);
      }
    }
  }
  [[nodiscard]] bool holds(int rank) const {
    return std::any_of(list_.begin(), list_.end(),
                       [rank](const auto& arc) { return arc.first <= rank && rank < arc.second; });
  }

 private:
  std::vector<std::pair<int, int>> list_;  ///< [begin, end), in order, apart
};

}  // namespace tutti

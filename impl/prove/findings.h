// SPDX-License-Identifier: Apache-2.0
// Where the parts of the prover put what they find. Keeps the first few: what follows a wrong step is rarely news.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "impl/prove/prove.h"

namespace tutti {

class Findings {
 public:
  static constexpr std::size_t kMost = 8;

  template <class... Args>
  void add(int rank, std::int64_t step, fmt::format_string<Args...> format, Args&&... args) {
    if (list_.size() < kMost) {
      list_.push_back(
          {.rank = rank, .step = static_cast<int>(step), .message = fmt::format(format, std::forward<Args>(args)...)});
    }
  }
  [[nodiscard]] bool is_empty() const { return list_.empty(); }
  [[nodiscard]] std::vector<Finding> take() { return std::move(list_); }

 private:
  std::vector<Finding> list_;
};

/// Whether rank `rank` of `ranks` belongs to `set`.
[[nodiscard]] inline bool contains(const RankSet& set, int rank, int ranks) {
  if (set.n == 1) return set.at(0, ranks) == rank;
  if (set.stride == 1) return (rank - set.first % ranks + ranks) % ranks < set.n;
  for (int i = 0; i < set.n; ++i) {
    if (set.at(i, ranks) == rank) return true;
  }
  return false;
}

}  // namespace tutti

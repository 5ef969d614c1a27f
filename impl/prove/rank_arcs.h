// SPDX-License-Identifier: Apache-2.0
// Large sets of ranks without looking at each of their pairs: whether what many give to many covers what many take, and
// sums over ranks that change. Of P sets, each in time P log P instead of P x P.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/schedule/schedule.h"

namespace tutti::steps {

/// From so many ranks on a set is treated as a whole.
inline constexpr int kLargeSet = 4;
[[nodiscard]] inline bool is_large(const RankSet& set) { return set.stride == 1 && set.n >= kLargeSet; }

/// The ranks [begin, end).
struct RankArc {
  int begin;
  int end;
};
/// Calls f(arc) for the arcs of `set`, but for rank `without`, which may be none. Requires: stride 1, or one rank.
template <class F>
void for_arcs(const RankSet& set, int ranks, int without, F f) {
  const auto pass = [&](int begin, int end) {
    if (without >= begin && without < end) {
      if (begin < without) f(RankArc{begin, without});
      if (without + 1 < end) f(RankArc{without + 1, end});
    } else if (begin < end) {
      f(RankArc{begin, end});
    }
  };
  const int end = set.first + set.n;
  pass(set.first, std::min(end, ranks));
  if (end > ranks) pass(0, end - ranks);
}

/// Sums over ranks (Fenwick's tree).
template <class T>
class RankSums {
 public:
  explicit RankSums(int ranks) : sums_(static_cast<std::size_t>(ranks) + 1) {}

  void add(int rank, T value) {
    for (auto i = static_cast<std::size_t>(rank) + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += value;
  }
  [[nodiscard]] T over(RankArc arc) const { return before(arc.end) - before(arc.begin); }

 private:
  [[nodiscard]] T before(int rank) const {
    T sum{};
    for (auto i = static_cast<std::size_t>(rank); i > 0; i &= i - 1) sum += sums_[i];
    return sum;
  }
  std::vector<T> sums_;
};

/// Givers give to sets of ranks, takers take from arcs of ranks; a pair may be given once.
class Coverage {
 public:
  explicit Coverage(int ranks) : ranks_(ranks) {}

  void give(int giver, const RankSet& to) {
    if (to.stride != 1 && to.n > 1) {
      for (int i = 0; i < to.n; ++i) give(giver, only(to.at(i, ranks_)));
      return;
    }
    for_arcs(to, ranks_, -1, [&](RankArc arc) {
      changes_.push_back({.at = arc.begin, .giver = giver, .by = 1});
      changes_.push_back({.at = arc.end, .giver = giver, .by = -1});
    });
  }
  /// `id` is the caller's.
  void take(int taker, RankArc from, std::size_t id) { takes_.push_back({.taker = taker, .from = from, .id = id}); }

  /// Calls f(id) for what was taken of which something was not given.
  template <class F>
  void for_uncovered(F f) {
    std::ranges::sort(changes_, {}, &Change::at);
    std::ranges::stable_sort(takes_, {}, &Take::taker);
    RankSums<int> giving(ranks_);
    std::size_t next = 0;
    for (const Take& take : takes_) {
      for (; next < changes_.size() && changes_[next].at <= take.taker; ++next) {
        giving.add(changes_[next].giver, changes_[next].by);
      }
      if (giving.over(take.from) != take.from.end - take.from.begin) f(take.id);
    }
  }

 private:
  struct Change {
    int at;  ///< from this taker on
    int giver;
    int by;
  };
  struct Take {
    int taker;
    RankArc from;
    std::size_t id;
  };

  int ranks_;
  std::vector<Change> changes_;
  std::vector<Take> takes_;
};

/// Which ranks have signalled one phase, and when.
class PhaseBoard {
 public:
  explicit PhaseBoard(int ranks) {
    while (size_ < static_cast<std::size_t>(ranks)) size_ *= 2;
    latest_.assign(2 * size_, kNever);
  }

  void signal(int rank, std::int64_t clock) {
    std::size_t at = size_ + static_cast<std::size_t>(rank);
    latest_[at] = clock;
    for (at /= 2; at > 0; at /= 2) {
      const std::int64_t left = latest_[2 * at], right = latest_[2 * at + 1];
      latest_[at] = left == kNever || right == kNever ? kNever : std::max(left, right);
    }
  }
  /// The latest clock of these ranks; kNever: not all have signalled.
  [[nodiscard]] std::int64_t latest(RankArc arc) const {
    std::int64_t result = 0;
    auto begin = size_ + static_cast<std::size_t>(arc.begin), end = size_ + static_cast<std::size_t>(arc.end);
    for (; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) result = std::max(result, latest_[begin++]);
      if (end % 2 == 1) result = std::max(result, latest_[--end]);
    }
    return result;
  }
  [[nodiscard]] bool has_signalled(int rank) const { return latest_[size_ + static_cast<std::size_t>(rank)] != kNever; }
  /// The first of these ranks that has not signalled. Requires: there is one.
  [[nodiscard]] int first_missing(RankArc arc) const {
    int low = arc.begin, high = arc.end;  // all before `low` have, one before `high` has not
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      if (latest({low, middle}) == kNever) {
        high = middle;
      } else {
        low = middle;
      }
    }
    return low;
  }

  static constexpr std::int64_t kNever = INT64_MAX;

 private:
  std::size_t size_ = 1;
  std::vector<std::int64_t> latest_;  ///< a tree; kNever where one below has not signalled
};

}  // namespace tutti::steps

// SPDX-License-Identifier: Apache-2.0
// Memory as a sorted list of runs: byte intervals that hold one symbolic value each. Neighbours of equal value are
// merged, so that slices of one message become one run again; what no run covers has never been written.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti {

template <class Value>
class Runs {
 public:
  struct Run {
    std::int64_t begin;
    std::int64_t end;
    Value value;
  };

  [[nodiscard]] const std::vector<Run>& list() const { return runs_; }
  void clear() { runs_.clear(); }

  /// The run that holds byte `at`, or nullptr.
  [[nodiscard]] const Run* find(std::int64_t at) const {
    const std::size_t index = first_ending_after(at);
    return index < runs_.size() && runs_[index].begin <= at ? &runs_[index] : nullptr;
  }

  /// Where the first run after byte `at`, which no run holds, begins; `limit` if that is later.
  [[nodiscard]] std::int64_t gap_end(std::int64_t at, std::int64_t limit) const {
    const std::size_t index = first_ending_after(at);
    return index < runs_.size() ? std::min(runs_[index].begin, limit) : limit;
  }
  [[nodiscard]] bool overlaps(std::int64_t begin, std::int64_t end) const {
    const std::size_t index = first_ending_after(begin);
    return index < runs_.size() && runs_[index].begin < end;
  }

  /// [begin, end) now holds `value`.
  void write(std::int64_t begin, std::int64_t end, const Value& value) {
    std::size_t low = first_ending_after(begin);
    if (low < runs_.size() && runs_[low].begin == begin && runs_[low].end == end) {
      if (runs_[low].value == value) return;
      runs_[low].value = value;
    } else {
      low = splice(low, {begin, end, value});
    }
    merge_with_next(low);
    if (low > 0) merge_with_next(low - 1);
  }

 private:
  [[nodiscard]] bool is_first_ending_after(std::size_t index, std::int64_t at) const {
    return runs_[index].end > at && (index == 0 || runs_[index - 1].end <= at);
  }
  /// Most looks go where the last one went, or to the run behind it.
  [[nodiscard]] std::size_t first_ending_after(std::int64_t at) const {
    if (runs_.empty() || runs_.back().end <= at) return runs_.size();
    for (std::size_t near = last_; near < std::min(last_ + 2, runs_.size()); ++near) {
      if (is_first_ending_after(near, at)) return last_ = near;
    }
    return last_ = search(at);
  }
  [[nodiscard]] std::size_t search(std::int64_t at) const {
    std::size_t low = 0;
    for (std::size_t n = runs_.size(); n > 0;) {
      const std::size_t half = n / 2;
      if (runs_[low + half].end <= at) {
        low += half + 1;
        n -= half + 1;
      } else {
        n = half;
      }
    }
    return low;
  }

  /// Puts `run` in place of whatever it covers, `low` being the first run that ends after its begin; returns its index.
  std::size_t splice(std::size_t low, Run run) {
    std::size_t high = low;
    while (high < runs_.size() && runs_[high].begin < run.end) ++high;
    std::vector<Run>& replacement = scratch_;
    replacement.clear();
    std::size_t index = low;
    if (low < high && runs_[low].begin < run.begin) {
      replacement.push_back({runs_[low].begin, run.begin, runs_[low].value});
      ++index;
    }
    replacement.push_back(run);
    if (low < high && runs_[high - 1].end > run.end)
      replacement.push_back({run.end, runs_[high - 1].end, runs_[high - 1].value});

    const std::size_t common = std::min(high - low, replacement.size());
    const auto at = [this](std::size_t i) { return runs_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::copy_n(replacement.begin(), common, at(low));
    if (replacement.size() > common) {
      runs_.insert(at(low + common), replacement.begin() + static_cast<std::ptrdiff_t>(common), replacement.end());
    } else {
      runs_.erase(at(low + common), at(high));
    }
    return index;
  }

  void merge_with_next(std::size_t index) {
    if (index + 1 >= runs_.size()) return;
    Run &left = runs_[index], &right = runs_[index + 1];
    if (left.end != right.begin || !(left.value == right.value)) return;
    left.end = right.end;
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  }

  std::vector<Run> runs_;
  std::vector<Run> scratch_;
  mutable std::size_t last_ = 0;  ///< what was found last
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Hypotheses about reductions: which ranks' contributions, or sums of some ranks, are missing, doubled, old or damaged.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include <fmt/ranges.h>

#include "harness/verify/accumulation.h"
#include "harness/verify/input_values.h"
#include "harness/verify/suspect.h"

namespace tutti::harness::verify {
namespace {

constexpr int kMostRanksForSets = 6;  // up to here, every set of ranks may have been added up on the way

using Ranks = std::vector<int>;

/// Sets of `size` of the ranks that contribute.
std::vector<Ranks> sets_of(int size, const Origin& origin) {
  std::vector<Ranks> sets;
  if (size == 1) {
    for (int rank = origin.first; rank <= origin.last; ++rank) sets.push_back({rank});
    return sets;
  }
  for (unsigned mask = 0; mask < 1U << static_cast<unsigned>(origin.ranks()); ++mask) {
    if (std::popcount(mask) != size) continue;
    Ranks& set = sets.emplace_back();
    for (int i = 0; i < origin.ranks(); ++i) {
      if ((mask >> static_cast<unsigned>(i) & 1U) != 0) set.push_back(origin.first + i);
    }
  }
  return sets;
}

bool has(const Ranks& set, int rank) { return std::ranges::find(set, rank) != set.end(); }

std::string those_of(const Ranks& set) { return fmt::format("the contributions of ranks {}", fmt::join(set, " and ")); }

}  // namespace

template <class T>
class Suspect::Columns {
 public:
  /// Columns holds the inputs of this operation and of `oldest` operations before it.
  Columns(const Suspect& suspect, bool roundly, int oldest = 0)
      : suspect_(suspect), ranks_(suspect.operation_.problem.ranks), roundly_(roundly) {
    const Operation& operation = suspect.operation_;
    Operation then = operation;
    for (int back = 0; back <= oldest; ++back, --then.salt) {
      auto& inputs = inputs_.emplace_back();
      for (const WrongElement& sample : suspect.samples_) {
        for (int rank = 0; rank < ranks_; ++rank) {
          const Count element = suspect.element_of(rank, suspect.reduced_block(), sample.index);
          const T value = value_of<T>(suspect.input(then, rank, element));
          inputs.push_back(operation.op == Op::premul_sum ? scaled(value, factor_of(rank)) : value);
        }
      }
    }
  }

  /// What `rank` contributes to sample `s`, or did `back` operations ago.
  [[nodiscard]] T at(std::size_t s, int rank, int back = 0) const {
    return inputs_[static_cast<std::size_t>(back)]
                  [s * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::uint64_t result(std::span<const T> values) const {
    const Op op = suspect_.operation_.op;
    if (values.empty()) return bits_of(finish<T>({}, op, ranks_));
    auto total = Accumulation<T>::load(values[0]);
    for (const T value : values.subspan(1)) total = combine<T>(total, value, op);
    return bits_of(finish<T>(total, op, ranks_));
  }
  /// Whether every sample holds the result of `values(s)`; roundly: or what roundings on the way may make of it.
  template <class Values>
  [[nodiscard]] bool are_explained_by(Values values) const {
    std::vector<T> all;
    for (std::size_t s = 0; s < suspect_.samples_.size(); ++s) {
      all.clear();
      values(s, all);
      const std::uint64_t actual = suspect_.samples_[s].actual;
      if (result(all) != actual && !(roundly_ && is_near(all, actual))) return false;
    }
    return true;
  }

 private:
  /// One rounding of the sum of all magnitudes away.
  [[nodiscard]] bool is_near(std::span<const T> values, std::uint64_t actual) const {
    if constexpr (std::is_integral_v<T>) {
      return false;
    } else {
      double sum = 0;
      for (const T value : values) sum += std::abs(static_cast<double>(Accumulation<T>::load(value)));
      if (suspect_.operation_.op == Op::avg) sum /= ranks_;
      const auto number = [](std::uint64_t bits) {
        return static_cast<double>(Accumulation<T>::load(value_of<T>(bits)));
      };
      return std::abs(number(result(values)) - number(actual)) <= std::ldexp(sum, -Format<T>::kMantissaBits);
    }
  }

  const Suspect& suspect_;
  int ranks_;
  bool roundly_;
  std::vector<std::vector<T>> inputs_;  // [operations back][sample and rank]
};

template <class T>
std::string Suspect::contribution_of(bool roundly) const {
  const Origin from = origin();
  const int ranks = from.ranks();
  if (operation_.problem.ranks < 2) return {};
  constexpr int kOldestOfSets = 8;  // with more sets times more operations, one fits by chance
  const Columns<T> columns(*this, roundly, oldest());
  const auto with = [&](const Ranks& set, int times, int back) {
    return columns.are_explained_by([&, times, back](std::size_t s, std::vector<T>& values) {
      for (int rank = from.first; rank <= from.last; ++rank) {
        if (!has(set, rank)) values.push_back(columns.at(s, rank));
      }
      for (int i = 0; i < times; ++i) {
        for (const int rank : set) values.push_back(columns.at(s, rank, back));
      }
    });
  };
  const int largest = ranks <= kMostRanksForSets && is_telling() ? ranks : 1;
  for (int size = 1; size <= largest; ++size) {
    // Few or coarse samples may fit several ranks: all are named. Of sets the first.
    Ranks missing, doubled;
    const int oldest = size == 1 ? this->oldest() : std::min(this->oldest(), kOldestOfSets);
    std::vector<Ranks> stale(static_cast<std::size_t>(oldest) + 1);
    for (const Ranks& set : sets_of(size, from)) {
      const auto note = [&](Ranks& fitting) {
        if (size == 1 || fitting.empty()) fitting.insert(fitting.end(), set.begin(), set.end());
      };
      if (size < std::max(std::min(ranks, 2), ranks - 1) && with(set, 0, 0)) note(missing);  // all but one: one_input
      if (with(set, 2, 0)) note(doubled);
      for (int back = 1; back <= oldest; ++back) {
        if (with(set, 1, back)) note(stale[static_cast<std::size_t>(back)]);
      }
    }
    const auto tell = [&](const Ranks& fitting, std::string_view of_one, std::string_view of_many) {
      if (size > 1) return fmt::format("{} {}", those_of(fitting), of_many);
      return fmt::format("rank {}{}", fmt::join(fitting, " or "), of_one);
    };
    if (!missing.empty()) return tell(missing, "'s contribution is missing", "are missing");
    if (!doubled.empty()) return tell(doubled, "'s contribution is counted twice", "are counted twice");
    for (int back = 1; back <= oldest; ++back) {
      const Ranks& fitting = stale[static_cast<std::size_t>(back)];
      const std::uint64_t salt = operation_.salt - static_cast<std::uint64_t>(back);
      const std::string what = back == 1 ? "previous data" : "data of an earlier operation";
      if (!fitting.empty() && size == 1)
        return tell(fitting, fmt::format(" contributed its {}, of salt {}", what, salt), "");
      if (!fitting.empty()) return tell(fitting, "", fmt::format("are {}, of salt {}", what, salt));
    }
  }
  return {};
}

template <class T>
std::string Suspect::other_prefix_of() const {
  const Origin right = origin();
  const Columns<T> columns(*this, false);
  for (int last = right.first; last < operation_.problem.ranks; ++last) {
    const bool fits = columns.are_explained_by([&](std::size_t s, std::vector<T>& values) {
      for (int rank = right.first; rank <= last; ++rank) values.push_back(columns.at(s, rank));
    });
    if (last == right.last || !fits) continue;
    return fmt::format("holds what ranks {} to {} come to, instead of ranks {} to {}", right.first, last, right.first,
                       right.last);
  }
  return {};
}

template <class T>
std::string Suspect::flipped_on_the_way_of() const {
  const Origin from = origin();
  const int ranks = from.ranks();
  if (samples_.size() != 1) return {};
  const Columns<T> columns(*this, false);
  const auto partial = [&](const Ranks& set) {
    auto total = Accumulation<T>::load(columns.at(0, set[0]));
    for (const int rank : std::span(set).subspan(1)) total = combine<T>(total, columns.at(0, rank), operation_.op);
    return Accumulation<T>::store(total);
  };
  for (int size = 1; size <= (ranks <= kMostRanksForSets ? ranks : 1); ++size) {
    for (const Ranks& set : sets_of(size, from)) {
      const std::uint64_t right = bits_of(partial(set));
      for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) {
        const bool fits = columns.are_explained_by([&](std::size_t, std::vector<T>& values) {
          values.push_back(value_of<T>(right ^ (std::uint64_t{1} << bit)));
          for (int rank = from.first; rank <= from.last; ++rank) {
            if (!has(set, rank)) values.push_back(columns.at(0, rank));
          }
        });
        if (fits && size == 1)
          return fmt::format("bit {} of rank {}'s contribution was flipped on the way", bit, set[0]);
        if (fits) return fmt::format("bit {} was flipped on the way, in {} as reduced", bit, those_of(set));
      }
    }
  }
  return {};
}

std::string Suspect::contribution() const {
  return visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) { return contribution_of<T>(false); });
}

std::string Suspect::other_prefix() const {
  return visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) { return other_prefix_of<T>(); });
}

std::string Suspect::contribution_roundly() const {
  constexpr std::size_t kLeast = 16;  // samples: fewer are near something by chance
  const Op op = operation_.op;
  if (samples_.size() < kLeast || (op != Op::sum && op != Op::avg && op != Op::premul_sum)) return {};
  const std::string text =
      visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) { return contribution_of<T>(true); });
  return text.empty() ? "" : text + ", but for roundings";
}

std::string Suspect::flipped_on_the_way() const {
  return visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) { return flipped_on_the_way_of<T>(); });
}

}  // namespace tutti::harness::verify

// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/diagnose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include "harness/verify/accumulation.h"
#include "harness/verify/buffers.h"

namespace tutti::harness {
namespace {

constexpr int kFarthestShift = 64;      // elements
constexpr int kMostRanksForPairs = 64;  // up to here, every block of every rank is tried

template <class T>
T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// The wrong elements of one output block, and what else could have been there.
class Suspect {
 public:
  Suspect(const Operation& operation, int rank, const Evidence& evidence) : operation_(operation), rank_(rank) {
    const Count first = evidence.wrong.front().index;
    const auto holds = [&](Count index) { return index >= place_.first && index - place_.first < place_.count; };
    for (place_ = operation.output_place(rank, 0); !holds(first);) place_ = operation.output_place(rank, ++block_);
    for (const WrongElement& element : evidence.wrong) {
      if (!holds(element.index)) break;
      samples_.push_back({element.index - place_.first, element.expected, element.actual});
    }
  }

  [[nodiscard]] int block() const { return block_; }

  /// Whether `predict(element of the block)` is what every sample holds.
  template <class Predict>
  [[nodiscard]] bool is_explained_by(Predict predict) const {
    return std::all_of(samples_.begin(), samples_.end(),
                       [&](const WrongElement& sample) { return predict(sample.index) == sample.actual; });
  }

  [[nodiscard]] std::string stale() const {
    Operation previous = operation_;
    --previous.salt;
    if (is_explained_by([&](Count i) { return expected(previous, block_, i); })) {
      return fmt::format("holds previous data: the result of salt {} instead of {}", previous.salt, operation_.salt);
    }
    if (is_explained_by([&](Count i) { return poison_bits(operation_.dtype, previous.salt, place_.first + i); })) {
      return fmt::format("holds previous poison, of salt {}: neither refilled nor written", previous.salt);
    }
    return {};
  }

  [[nodiscard]] std::string contribution() const {
    return visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) { return contribution_of<T>(); });
  }

  [[nodiscard]] std::string undivided() const {
    Operation sum = operation_;
    sum.op = Op::sum;
    if (operation_.op != Op::avg || !is_explained_by([&](Count i) { return expected(sum, block_, i); })) return {};
    return fmt::format("holds the sum: avg was not divided by {}", operation_.problem.ranks);
  }

  [[nodiscard]] std::string one_input() const {
    for (int offset = 0; offset < operation_.problem.ranks; ++offset) {
      const int rank = (rank_ + offset) % operation_.problem.ranks;  // its own first
      if (holds_input({.every_rank = false, .rank = rank, .block = reduced_block()})) {
        return fmt::format("holds the input of rank {}, reduced with no other", rank);
      }
    }
    return {};
  }

  [[nodiscard]] std::string other_block() const {
    const int ranks = operation_.problem.ranks;
    for (int block = 0; block < output_blocks(operation_.problem, rank_); ++block) {
      if (block != block_ && holds_input(origin_of(operation_.problem, rank_, block))) {
        return fmt::format("block {} holds block {}", block_, block);
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int block = 0; block < std::max(1, input_blocks(operation_.problem, rank)); ++block) {
        if (ranks > kMostRanksForPairs && rank != rank_ && block != block_) continue;
        if (!holds_input({.every_rank = false, .rank = rank, .block = block})) continue;
        const Origin right = origin_of(operation_.problem, rank_, block_);
        return fmt::format("block {} holds input block {} of rank {} instead of input block {} of rank {}", block_,
                           block, rank, right.block, right.rank);
      }
    }
    return {};
  }

  [[nodiscard]] std::string shifted() const {
    for (int distance = 1; distance <= kFarthestShift; ++distance) {
      for (const int shift : {distance, -distance}) {
        if (is_shifted_by(shift)) {
          return fmt::format("data are shifted: element i holds what belongs to element i{:+}", shift);
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::string constant() const {
    if (is_explained_by([](Count) { return std::uint64_t{0}; })) return "holds zeros";
    const std::uint64_t difference = samples_[0].expected ^ samples_[0].actual;
    if (samples_.size() != 1 || std::popcount(difference) != 1) return {};
    return fmt::format("one bit differs: bit {}", std::countr_zero(difference));
  }

 private:
  /// The input block that is reduced to the suspect one.
  [[nodiscard]] int reduced_block() const { return origin_of(operation_.problem, rank_, block_).block; }

  [[nodiscard]] std::uint64_t expected(const Operation& operation, int block, Count element) const {
    std::array<std::byte, 8> bytes;
    const std::span one = std::span(bytes).first(size_of(operation.dtype));
    fill_expected(one, operation, {.rank = rank_, .block = block, .first = element});
    return element_bits(one, operation.dtype);
  }

  /// Where element `i` of an input block of `rank` lies in its buffer.
  [[nodiscard]] Count element_of(int rank, int block, Count i) const {
    return operation_.input_place(rank, block).first + i;
  }

  [[nodiscard]] std::uint64_t input(const Operation& operation, int rank, Count element) const {
    std::array<std::byte, 8> bytes;
    const std::span one = std::span(bytes).first(size_of(operation.dtype));
    fill_input(one, input_of(operation, rank), element);
    return element_bits(one, operation.dtype);
  }

  [[nodiscard]] bool is_shifted_by(int shift) const {
    int fitting = 0;
    for (const WrongElement& sample : samples_) {
      const Count from = sample.index + shift;
      if (from < 0 || from >= place_.count) continue;  // came from outside the block: anything
      if (expected(operation_, block_, from) != sample.actual) return false;
      ++fitting;
    }
    return fitting >= 2;  // one element fits some shift too easily
  }

  [[nodiscard]] bool holds_input(const Origin& origin) const {
    return is_explained_by(
        [&](Count i) { return input(operation_, origin.rank, element_of(origin.rank, origin.block, i)); });
  }

  /// The result of sample i if `suspect` had contributed `instead` (possibly nothing) in place of its input.
  template <class T>
  [[nodiscard]] std::uint64_t result_with(std::span<const T> inputs, int suspect, std::span<const T> instead) const {
    typename Accumulation<T>::Type total{};
    bool is_first = true;
    const auto add = [&](T value) {
      total = std::exchange(is_first, false) ? Accumulation<T>::load(value) : combine<T>(total, value, operation_.op);
    };
    for (int rank = 0; rank < operation_.problem.ranks; ++rank) {
      if (rank != suspect) add(inputs[static_cast<std::size_t>(rank)]);
    }
    for (const T value : instead) add(value);
    return bits_of(finish<T>(total, operation_.op, operation_.problem.ranks));
  }

  /// What `rank` adds to an element: its input, times its factor where it has one.
  template <class T>
  [[nodiscard]] T contributed(const Operation& operation, int rank, Count element) const {
    const T value = value_of<T>(input(operation, rank, element));
    return operation.op == Op::premul_sum ? scaled(value, factor_of(rank)) : value;
  }

  template <class T>
  [[nodiscard]] std::string contribution_of() const {
    const int ranks = operation_.problem.ranks;
    if (ranks < 2) return {};
    Operation previous = operation_;
    --previous.salt;
    std::vector<std::vector<T>> inputs(samples_.size());  // [sample][rank]
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Count element = element_of(rank, reduced_block(), samples_[s].index);
        inputs[s].push_back(contributed<T>(operation_, rank, element));
      }
    }
    std::vector<int> missing;
    std::vector<int> doubled;
    std::vector<int> stale;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto fits = [&](auto instead) {
        for (std::size_t s = 0; s < samples_.size(); ++s) {
          const std::vector<T> values = instead(s);
          if (result_with<T>(inputs[s], rank, values) != samples_[s].actual) return false;
        }
        return true;
      };
      const auto own = [&](std::size_t s) { return inputs[s][static_cast<std::size_t>(rank)]; };
      const auto old = [&](std::size_t s) {
        return contributed<T>(previous, rank, element_of(rank, reduced_block(), samples_[s].index));
      };
      if (fits([](std::size_t) { return std::vector<T>{}; })) missing.push_back(rank);
      if (fits([&](std::size_t s) { return std::vector<T>{own(s), own(s)}; })) doubled.push_back(rank);
      if (fits([&](std::size_t s) { return std::vector<T>{old(s)}; })) stale.push_back(rank);
    }
    // Few or coarse samples may fit several ranks: all are named.
    if (!missing.empty()) return fmt::format("rank {}'s contribution is missing", fmt::join(missing, " or "));
    if (!doubled.empty()) return fmt::format("rank {}'s contribution is counted twice", fmt::join(doubled, " or "));
    if (!stale.empty()) {
      return fmt::format("rank {} contributed its previous data, of salt {}", fmt::join(stale, " or "), previous.salt);
    }
    return {};
  }

  const Operation& operation_;
  int rank_;
  int block_ = 0;
  Place place_;                        // of the block
  std::vector<WrongElement> samples_;  // indices within the block
};

}  // namespace

std::string diagnose(const Operation& operation, int rank, const Evidence& evidence) {
  if (evidence.poisoned == evidence.result.checked) return "output still holds the poison: nothing was written";
  if (evidence.poisoned == evidence.result.wrong) {
    return fmt::format("{} elements still hold the poison: they were not written", evidence.poisoned);
  }
  const Suspect suspect(operation, rank, evidence);
  std::string text = suspect.stale();
  const bool reduces = origin_of(operation.problem, rank, suspect.block()).every_rank;
  if (text.empty() && reduces && operation.problem.ranks > 2) text = suspect.contribution();
  if (text.empty() && reduces) text = suspect.undivided();
  if (text.empty() && reduces) text = suspect.one_input();
  if (text.empty() && reduces) text = suspect.contribution();
  if (text.empty() && !reduces) text = suspect.other_block();
  if (text.empty()) text = suspect.shifted();
  if (text.empty()) text = suspect.constant();
  return text;
}

std::uint64_t element_bits(std::span<const std::byte> bytes, Dtype dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), size_of(dtype));
  return bits;
}

std::uint64_t poison_bits(Dtype dtype, std::uint64_t salt, Count index) {
  std::array<std::byte, 8> bytes;
  fill_poison(bytes, salt);
  return element_bits(std::span(bytes).subspan(size_of(dtype) == 1 ? static_cast<std::size_t>(index % 2) : 0), dtype);
}

std::string element_text(std::uint64_t bits, Dtype dtype) {
  return visit_dtype(dtype, [bits]<class T>(std::type_identity<T>) {
    const T value = value_of<T>(bits);
    constexpr std::size_t kDigits = 2 * sizeof(T);
    if constexpr (std::is_arithmetic_v<T>) {
      return fmt::format("{} (0x{:0{}x})", +value, bits, kDigits);  // a number, also where it is a character
    } else {
      return fmt::format("{} (0x{:0{}x})", value.to_float(), bits, kDigits);
    }
  });
}

}  // namespace tutti::harness

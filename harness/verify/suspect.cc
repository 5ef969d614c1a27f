// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/suspect.h"

#include <array>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "harness/verify/buffers.h"
#include "harness/verify/input_values.h"

namespace tutti::harness::verify {
namespace {

constexpr int kFarthestShift = 64;                // elements
constexpr int kMostRanksForPairs = 64;            // up to here, every block of every rank is tried
constexpr Count kMostSearched = Count{1} << 20U;  // elements of a block, for parts that changed places

/// Significant bits of a float, or bits that an integer needs, with its sign.
template <class T>
int bits_in_use(T value) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if constexpr (std::is_signed_v<T>) {
      const auto magnitude = static_cast<Unsigned>(value < 0 ? ~value : value);
      return static_cast<int>(std::bit_width(magnitude)) + 1;
    }
    return static_cast<int>(std::bit_width(static_cast<Unsigned>(value)));
  } else {
    using Code = typename Format<T>::Code;
    constexpr int kMantissa = Format<T>::kMantissaBits;
    const auto mantissa = static_cast<Code>(std::bit_cast<Code>(value) & ((Code{1} << kMantissa) - 1U));
    return mantissa == 0 ? 1 : 1 + kMantissa - std::countr_zero(mantissa);
  }
}
template <class T>
constexpr int bits_there_are() {
  if constexpr (std::is_integral_v<T>)
    return 8 * static_cast<int>(sizeof(T));
  else
    return Format<T>::kMantissaBits + 1;
}

/// The operation with a count of `by` elements more.
Operation with_count_off_by(Operation operation, Count by) {
  operation.count = std::max<Count>(0, operation.count + by);
  if (operation.blocks != nullptr) {
    const Counts lengths = lengths_off_by(operation.problem, *operation.blocks, by);
    operation.blocks = std::make_shared<const CellBlocks>(operation.problem, lengths, 0);
  }
  return operation;
}

/// The block of an output that holds element `index`, and which of its elements that is.
struct InBlock {
  int block;
  Count element;
};
std::optional<InBlock> block_at(const Operation& operation, int rank, Count index) {
  for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
    const Place place = operation.output_place(rank, block);
    if (index >= place.first && index - place.first < place.count) return InBlock{block, index - place.first};
  }
  return std::nullopt;
}

}  // namespace

Suspect::Suspect(const Operation& operation, int rank, const WrongOutput& wrong_output)
    : operation_(operation), rank_(rank), wrong_output_(wrong_output) {
  const Count first = wrong_output.wrong.front().index;
  const auto holds = [&](Count index) { return index >= place_.first && index - place_.first < place_.count; };
  for (place_ = operation.output_place(rank, 0); !holds(first);) place_ = operation.output_place(rank, ++block_);
  for (const WrongElement& element : wrong_output.wrong) {
    if (!holds(element.index)) break;
    samples_.push_back({element.index - place_.first, element.expected, element.actual});
  }
}

bool Suspect::is_lonely() const {
  constexpr Count kMany = 8;
  return wrong_output_.result.wrong == 1 && wrong_output_.result.checked >= kMany;
}

bool Suspect::is_telling() const {
  constexpr std::size_t kBytes = 16, kSamples = 3;
  if (operation_.dtype == Dtype::boolean) return samples_.size() >= kBytes;  // each tells one bit
  return samples_.size() >= kSamples || samples_.size() * size_of(operation_.dtype) >= kBytes;
}

int Suspect::oldest() const {
  const int most = is_telling() ? oldest_of(operation_.problem.ranks) : 1;
  return static_cast<int>(std::min(static_cast<std::uint64_t>(most), operation_.salt));
}

std::uint64_t Suspect::expected(const Operation& operation, int block, Count element) const {
  std::array<std::byte, 8> bytes;
  const std::span one = std::span(bytes).first(size_of(operation.dtype));
  fill_expected(one, operation, {.rank = rank_, .block = block, .first = element});
  return element_bits(one, operation.dtype);
}

std::uint64_t Suspect::input(const Operation& operation, int rank, Count element) const {
  std::array<std::byte, 8> bytes;
  const std::span one = std::span(bytes).first(size_of(operation.dtype));
  fill_input(one, input_of(operation, rank), element);
  return element_bits(one, operation.dtype);
}

bool Suspect::holds_input(const Origin& origin) const {
  return is_explained_by(
      [&](Count i) { return input(operation_, origin.first, element_of(origin.first, origin.block, i)); });
}

bool Suspect::output_holds(Count index, int block, Count element) const {
  const std::size_t size = size_of(operation_.dtype);
  const std::size_t at = static_cast<std::size_t>(index) * size;
  const std::span<const std::byte> output = wrong_output_.output();
  if (at + size > output.size()) return false;
  return element_bits(output.subspan(at), operation_.dtype) == expected(operation_, block, element);
}

std::string Suspect::stale() const {
  Operation earlier = operation_;
  for (int back = 1; back <= oldest(); ++back) {
    --earlier.salt;
    if (is_explained_by([&](Count i) { return expected(earlier, block_, i); })) {
      return fmt::format("holds {}: the result of salt {} instead of {}",
                         back == 1 ? "previous data" : "data of an earlier operation", earlier.salt, operation_.salt);
    }
    if (back > 1) continue;
    if (is_explained_by([&](Count i) { return poison_bits(operation_.dtype, earlier.salt, place_.first + i); })) {
      return fmt::format("holds previous poison, of salt {}: neither refilled nor written", earlier.salt);
    }
  }
  return {};
}

std::string Suspect::undivided() const {
  Operation sum = operation_;
  sum.op = Op::sum;
  if (operation_.op != Op::avg || !is_explained_by([&](Count i) { return expected(sum, block_, i); })) return {};
  return fmt::format("holds the sum: avg was not divided by {}", operation_.problem.ranks);
}

std::string Suspect::one_input() const {
  for (int offset = 0; offset < operation_.problem.ranks; ++offset) {
    const int rank = (rank_ + offset) % operation_.problem.ranks;  // its own first
    if (holds_input(from_one(rank, reduced_block()))) {
      return fmt::format("holds the input of rank {}, reduced with no other", rank);
    }
  }
  return {};
}

std::string Suspect::other_count() const {
  for (const Count by : {-1, 1}) {
    const Operation other = with_count_off_by(operation_, by);
    int known = 0;
    const auto fits = [&](const WrongElement& sample) {
      const auto at = block_at(other, rank_, place_.first + sample.index);
      if (!at) return sample.actual == poison_bits(operation_.dtype, operation_.salt, place_.first + sample.index);
      const Origin origin = origin_of(other.problem, rank_, at->block);
      const int from = is_reducing(operation_.problem.collective) ? rank_ : origin.first;
      // What it reads after the end of an input may be anything.
      if (other.input_place(from, origin.block).first + at->element >= operation_.input_elements(from)) return true;
      ++known;
      return expected(other, at->block, at->element) == sample.actual;
    };
    if (std::ranges::all_of(samples_, fits) && known > 0) {
      return fmt::format("holds what it would if every block had {} element{}: the count is one too {}",
                         by < 0 ? "one" : "one more", by < 0 ? " less" : "", by < 0 ? "small" : "large");
    }
  }
  return {};
}

std::string Suspect::other_root() const {
  if (!is_rooted(operation_.problem.collective)) return {};
  for (int root = 0; root < operation_.problem.ranks; ++root) {
    Operation other = operation_;
    other.problem.root = root;
    if (root == operation_.problem.root) continue;
    if (!is_explained_by([&](Count i) { return expected(other, block_, i); })) continue;
    if (root != rank_) return fmt::format("holds what it would if rank {} were the root", root);
    return fmt::format("holds its own data: as if rank {} were the root, or nothing had arrived", root);
  }
  return {};
}

std::string Suspect::other_block() const {
  const int ranks = operation_.problem.ranks;
  for (int block = 0; block < output_blocks(operation_.problem, rank_); ++block) {
    if (block == block_ || !holds_input(origin_of(operation_.problem, rank_, block))) continue;
    const Place other = operation_.output_place(rank_, block);
    const bool are_swapped = std::ranges::all_of(samples_, [&](const WrongElement& sample) {
      return sample.index >= other.count || output_holds(other.first + sample.index, block_, sample.index);
    });
    return are_swapped ? fmt::format("blocks {} and {} are swapped", block_, block)
                       : fmt::format("block {} holds block {}", block_, block);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    for (int block = 0; block < std::max(1, input_blocks(operation_.problem, rank)); ++block) {
      if (ranks > kMostRanksForPairs && rank != rank_ && block != block_) continue;
      if (!holds_input(from_one(rank, block))) continue;
      const Origin right = origin_of(operation_.problem, rank_, block_);
      return fmt::format("block {} holds input block {} of rank {} instead of input block {} of rank {}", block_, block,
                         rank, right.block, right.first);
    }
  }
  return {};
}

bool Suspect::is_shifted_by(Count shift) const {
  int fitting = 0;
  for (const WrongElement& sample : samples_) {
    const Count from = sample.index + shift;
    if (from < 0 || from >= place_.count) continue;  // came from outside the block: anything
    if (expected(operation_, block_, from) != sample.actual) return false;
    ++fitting;
  }
  return fitting >= 2;  // one element fits some shift too easily
}

std::string Suspect::shifted() const {
  for (int distance = 1; distance <= kFarthestShift; ++distance) {
    for (const int shift : {distance, -distance}) {
      if (is_shifted_by(shift)) {
        return fmt::format("data are shifted: element i holds what belongs to element i{:+}", shift);
      }
    }
  }
  return {};
}

std::string Suspect::swapped_parts() const {
  if (place_.count > kMostSearched || samples_.size() < 2) return {};
  const WrongElement& first = samples_.front();
  const std::size_t size = size_of(operation_.dtype);
  std::vector<std::byte> right(static_cast<std::size_t>(place_.count - first.index) * size);
  fill_expected(right, operation_, {.rank = rank_, .block = block_, .first = first.index});
  for (Count apart = 1; first.index + apart < place_.count; ++apart) {
    const std::span there = std::span(right).subspan(static_cast<std::size_t>(apart) * size);
    if (element_bits(there, operation_.dtype) != first.actual) continue;
    // Those of the other part among the samples came the other way.
    const bool fits = std::ranges::all_of(samples_, [&](const WrongElement& sample) {
      for (const Count from : {sample.index + apart, sample.index - apart}) {
        if (from < 0 || from >= place_.count) continue;
        if (expected(operation_, block_, from) != sample.actual) continue;
        return output_holds(place_.first + from, block_, sample.index);
      }
      return false;
    });
    if (!fits) continue;
    return fmt::format("parts of block {} are swapped: from element {} on lies what belongs {} elements later", block_,
                       first.index, apart);
  }
  return {};
}

std::string Suspect::constant() const {
  return is_explained_by([](Count) { return std::uint64_t{0}; }) ? "holds zeros" : "";
}

std::string Suspect::flipped() const {
  const std::uint64_t difference = samples_[0].expected ^ samples_[0].actual;
  if (samples_.size() != 1 || std::popcount(difference) != 1) return {};
  return fmt::format("one bit differs: bit {}", std::countr_zero(difference));
}

std::string Suspect::narrow() const {
  constexpr std::size_t kLeast = 3, kMany = 16;
  if (samples_.size() < kLeast || operation_.dtype == Dtype::boolean) return {};
  return visit_dtype(operation_.dtype, [&]<class T>(std::type_identity<T>) -> std::string {
    constexpr int kBits = bits_there_are<T>();
    constexpr int kFew = (kBits + 1) / 2;
    int most = 0;
    std::size_t rounded = 0;
    for (const WrongElement& sample : samples_) {
      most = std::max(most, bits_in_use(value_of<T>(sample.actual)));
      if (bits_in_use(value_of<T>(sample.expected)) > kFew) ++rounded;
    }
    const bool is_rounded = 2 * rounded >= samples_.size() || samples_.size() >= kMany;
    if (most > kFew || !is_rounded) return {};
    return fmt::format("no wrong result has more than {} of {}'s {} bits: reduced in too narrow a type", most,
                       to_string(operation_.dtype), kBits);
  });
}

std::string Suspect::lost() const {
  const CheckResult& result = wrong_output_.result;
  if (is_lonely()) return "a single element is wrong: most likely a bit of it was flipped on the way";
  const Count run = result.last_bad - result.first_bad + 1;
  if (samples_.size() < 2 || run > 2 * result.wrong || run >= result.checked) return {};
  return fmt::format("elements {} to {}, {} bytes in a row, hold nothing of this operation: as if a message was lost",
                     result.first_bad, result.last_bad, static_cast<std::size_t>(run) * size_of(operation_.dtype));
}

}  // namespace tutti::harness::verify

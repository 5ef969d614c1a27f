// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/counts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>

#include <fmt/ranges.h>

#include "harness/cases/counts_name.h"
#include "harness/cases/drawn_counts.h"
#include "harness/cases/kinds.h"
#include "harness/text/counted.h"
#include "harness/text/read_file.h"
#include "impl/types/number.h"
#include "impl/types/scramble.h"

namespace tutti::harness::cases {
namespace {

// All but `file`, which has a name for each.
constexpr std::array kPatterns{
    Named{Pattern::equal, "equal"},       Named{Pattern::ramp, "ramp"},     Named{Pattern::one_heavy, "one-heavy"},
    Named{Pattern::zeros, "zeros"},       Named{Pattern::random, "random"}, Named{Pattern::zipf, "zipf"},
    Named{Pattern::rotating, "rotating"}, Named{Pattern::burst, "burst"},   Named{Pattern::empty, "empty"}};
constexpr std::array kUnits{Named{CountsUnit::elements, "elements"}, Named{CountsUnit::bytes, "bytes"}};
constexpr std::string_view kFilePrefix = "file-";
constexpr std::string_view kSeedMark = "-seed";  ///< between the name of a pattern that is drawn and its seed
constexpr std::size_t kHashDigits = 8;

/// The numbers of one line.
Status append_line(std::size_t line, const std::string& text, std::vector<Count>& numbers) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Count number = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, failure] = std::from_chars(word.data(), end, number);
    if (failure == std::errc() && stop == end && number >= 0 && number <= kMostCount) {
      numbers.push_back(number);
      continue;
    }
    return error(Code::invalid_argument, "line {}: '{}' is not a count: whole numbers from 0 to {}", line, shown(word),
                 kMostCount);
  }
  return {};
}

std::uint64_t weight_of(Pattern pattern, int block, int ranks, Count elements) {
  const auto index = static_cast<std::uint64_t>(block);
  switch (pattern) {
    case Pattern::ramp:
      return index + 1;
    case Pattern::one_heavy:
      return block == ranks / 2 ? static_cast<std::uint64_t>(std::max(1, 3 * (ranks - 1))) : 1;
    case Pattern::zeros:
      return index % 2 == 0 ? 1 : 0;
    case Pattern::random: {
      const std::uint64_t draw = scramble(scramble(static_cast<std::uint64_t>(elements)) + index);
      return block > 0 && draw % 4 == 0 ? 0 : 1 + draw / 4 % 16;
    }
    default:
      return 1;
  }
}

/// A pattern by its name. A seed that is written behind it is its own.
Result<Counts> parse_pattern(std::string_view text) {
  const std::size_t mark = text.rfind(kSeedMark);
  if (mark == text.npos) {
    TUTTI_ASSIGN_OR_RETURN(const Pattern pattern, parse_kind("counts", text, kPatterns));
    return Counts{.pattern = pattern, .name = std::string(name_in(kPatterns, pattern))};
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  TUTTI_ASSIGN_OR_RETURN(const Pattern pattern, parse_kind("counts", text.substr(0, mark), kPatterns));
  if (!is_drawn(pattern)) {
    return error(Code::invalid_argument, "counts '{}': {} is not drawn, so it has no seed: did you mean '{}'?",
                 shown(text), name_in(kPatterns, pattern), name_in(kPatterns, pattern));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::uint64_t seed,
                         parse_number<std::uint64_t>(text.substr(mark + kSeedMark.size()), "a seed", 0, kMost));
  return drawn_counts(pattern, seed);
}

/// Whether each rank of a form that divides both buffers has lengths of its own.
bool takes_matrix(const Problem& problem) { return has_counts(problem.collective) && divides_both(problem.collective); }

}  // namespace

std::string counts_name_of(const std::vector<Count>& numbers) {
  std::uint64_t hash = numbers.size();
  for (const Count number : numbers) hash = scramble(hash ^ static_cast<std::uint64_t>(number));
  return fmt::format("{}{:08x}", kFilePrefix, hash >> 32U);
}

Result<Counts> parse_counts(std::string_view text) {
  auto pattern = parse_pattern(text);
  if (pattern.is_ok()) return pattern;
  std::error_code ignored;
  if (!std::filesystem::exists(text, ignored)) {
    return error(Code::invalid_argument, "counts '{}' are neither a pattern ({}) nor a file that can be read{}",
                 shown(text), fmt::join(names_in(kPatterns), " "), suggestion(text, names_in(kPatterns)));
  }
  TUTTI_ASSIGN_OR_RETURN(std::string lines, read_file(std::string(text), kMostInList));
  std::istringstream file(std::move(lines));
  auto counts = read_counts(file);
  if (counts.is_ok()) return counts;
  return error(counts.status().code(), "counts '{}': {}", shown(text), counts.status().message());
}

Result<Counts> read_counts(std::istream& file) {
  Counts counts{.pattern = Pattern::file, .name = {}, .numbers = {}};
  std::size_t number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    TUTTI_RETURN_IF_ERROR(append_line(number, line, counts.numbers));
  }
  if (counts.numbers.empty() || file.bad()) {
    return error(Code::invalid_argument, "there are none in the file: P numbers, or P x P for all_to_all_v");
  }
  counts.name = counts_name_of(counts.numbers);
  return counts;
}

Result<Counts> counts_of_name(std::string_view name) {
  const auto pattern = parse_pattern(name);
  if (pattern.is_ok()) return with_seed(pattern.value(), kUsualSeed);
  const bool is_file = name.starts_with(kFilePrefix) && name.size() == kFilePrefix.size() + kHashDigits &&
                       name.substr(kFilePrefix.size()).find_first_not_of("0123456789abcdef") == name.npos;
  if (is_file) return Counts{.pattern = Pattern::file, .name = std::string(name), .numbers = {}};
  return pattern.status();
}

Result<CountsUnit> parse_counts_unit(std::string_view name) { return parse_kind("counts-unit", name, kUnits); }

Result<Counts> in_elements(Counts counts, CountsUnit unit, Dtype dtype) {
  if (unit == CountsUnit::elements || counts.pattern != Pattern::file) return counts;
  const auto element = static_cast<Count>(size_of(dtype));
  for (Count& number : counts.numbers) {
    if (number % element != 0) {
      return error(Code::invalid_argument, "counts: {} bytes are no multiple of the {} of a {}: did you mean '{}'?",
                   number, element, to_string(dtype), (number + element / 2) / element * element);
    }
    number /= element;
  }
  counts.name = counts_name_of(counts.numbers);
  return counts;
}

bool fits(const Counts& counts, const Problem& problem) {
  if (is_drawn(counts.pattern)) return !takes_matrix(problem) || problem.ranks <= kMostDrawnRanks;
  if (counts.pattern != Pattern::file) return true;
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  return counts.numbers.size() == ranks || (takes_matrix(problem) && counts.numbers.size() == ranks * ranks);
}

std::string misfit(const Counts& counts, const Problem& problem) {
  if (is_drawn(counts.pattern)) {
    return fmt::format("counts '{}' are one for each pair of ranks: {} has them on 1 to {} ranks", counts.name,
                       to_string(problem.collective), kMostDrawnRanks);
  }
  const std::string matrix =
      takes_matrix(problem) ? fmt::format(" or {}", problem.ranks * problem.ranks) : std::string();
  return fmt::format("a file of {}: {} on {} needs {}{}", counted(counts.numbers.size(), "count"),
                     to_string(problem.collective), counted(problem.ranks, "rank"), problem.ranks, matrix);
}

Counts drawn_counts(Pattern pattern, std::uint64_t seed) {
  TUTTI_ASSERT(is_drawn(pattern), "pattern {} is not drawn", static_cast<int>(pattern));
  const std::string_view name = name_in(kPatterns, pattern);
  return {.pattern = pattern,
          .name = seed == kUsualSeed ? std::string(name) : fmt::format("{}{}{}", name, kSeedMark, seed),
          .numbers = {},
          .seed = seed};
}

Counts with_seed(Counts counts, std::uint64_t seed) {
  return is_drawn(counts.pattern) && !counts.seed ? drawn_counts(counts.pattern, seed) : std::move(counts);
}

Counts lengths_off_by(const Problem& problem, const CellBlocks& blocks, Count by) {
  Counts counts{.pattern = Pattern::file, .name = "file"};
  const auto add = [&](Count length) { counts.numbers.push_back(std::max<Count>(0, length + by)); };
  const bool is_matrix = divides_both(problem.collective);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    if (!is_matrix) add(blocks.own_count(rank));
    for (int block = 0; is_matrix && block < problem.ranks; ++block) add(blocks.input(rank, block).count);
  }
  return counts;
}

CellBlocks::CellBlocks(const Problem& problem, const Counts& counts, Count elements) : problem_(problem) {
  TUTTI_ASSERT(fits(counts, problem), "{} counts for {} ranks", counts.numbers.size(), problem.ranks);
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  if (counts.pattern == Pattern::file) {
    counts_ = counts.numbers;
    is_matrix_ = counts_.size() != ranks;
  } else {
    is_matrix_ = is_drawn(counts.pattern) && takes_matrix(problem);
    share(counts, elements);
  }
  if (!is_matrix_) total_ = extent_ = std::accumulate(counts_.begin(), counts_.end(), Count{0});
  add_up();
  if (counts.pattern == Pattern::random) scatter_places(elements);
}

void CellBlocks::share(const Counts& counts, Count elements) {
  const int ranks = problem_.ranks;
  if (counts.pattern == Pattern::equal) {
    counts_.assign(static_cast<std::size_t>(ranks), elements / ranks);
    return;
  }
  if (is_drawn(counts.pattern)) {
    const int rows = is_matrix_ ? ranks : 1;
    return share_by(drawn_weights(counts, rows, ranks, elements), elements * rows);
  }
  std::vector<std::uint64_t> weights;
  for (int block = 0; block < ranks; ++block) weights.push_back(weight_of(counts.pattern, block, ranks, elements));
  share_by(weights, elements);
}

/// Block b has what lies between the shares of the blocks before it and of those up to it, so that all elements are
/// given out.
void CellBlocks::share_by(const std::vector<std::uint64_t>& weights, Count elements) {
  const std::uint64_t all = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  __extension__ using Wide = unsigned __int128;
  std::uint64_t weight = 0;
  Count given = 0;
  for (const std::uint64_t each : weights) {
    weight += each;
    const auto share = static_cast<Count>(static_cast<Wide>(elements) * weight / all);
    counts_.push_back(share - given);
    given = share;
  }
}

void CellBlocks::add_up() {
  const int rows = is_matrix_ ? problem_.ranks : 1;
  firsts_.resize(counts_.size());
  if (is_matrix_) column_firsts_.resize(counts_.size());
  for (int row = 0; row < rows; ++row) {
    Count in_row = 0, in_column = 0;
    for (int i = 0; i < problem_.ranks; ++i) {
      firsts_[at(row, i)] = in_row;
      in_row += counts_[at(row, i)];
      if (!is_matrix_) continue;
      column_firsts_[at(row, i)] = in_column;
      in_column += counts_[at(i, row)];
    }
  }
}

/// Another order, and a gap of up to 8 elements before each block.
void CellBlocks::scatter_places(Count elements) {
  const auto draw = [&](std::size_t index) {
    return scramble(scramble(~static_cast<std::uint64_t>(elements)) + index);
  };
  std::vector<std::size_t> order(counts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, draw);
  Count next = 0;
  for (const std::size_t block : order) {
    next += static_cast<Count>(draw(block) % 9);
    firsts_[block] = next;
    next += counts_[block];
  }
  extent_ = next;
  is_scattered_ = true;
}

void CellBlocks::set_apart(std::uint64_t seed) {
  const auto draw = [seed](std::size_t index) { return scramble(scramble(seed) + index); };
  const auto ranks = static_cast<std::size_t>(problem_.ranks);
  std::array<std::vector<Count>, 2> firsts, ends;
  for (const bool is_output : {false, true}) {
    firsts[is_output].resize(ranks * ranks);
    for (int rank = 0; rank < problem_.ranks; ++rank) {
      std::vector<int> order(ranks);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, {}, [&](int block) { return draw(at(rank, block)); });
      Count next = 0;
      for (const int block : order) {
        next += static_cast<Count>(draw(~at(rank, block)) % 9);
        firsts[is_output][at(rank, block)] = next;
        next += divided(rank, block, is_output).count;
      }
      ends[is_output].push_back(next);
    }
  }
  own_firsts_ = std::move(firsts);
  own_ends_ = std::move(ends);
}

Place CellBlocks::divided(int rank, int block, bool is_output) const {
  Place place = side_by_side(rank, block, is_output);
  if (!own_firsts_[is_output].empty()) place.first = own_firsts_[is_output][at(rank, block)];
  return place;
}

Place CellBlocks::side_by_side(int rank, int block, bool is_output) const {
  const auto index = static_cast<std::size_t>(block);
  if (is_matrix_) {
    return is_output ? Place{.first = column_firsts_[at(rank, block)], .count = counts_[at(block, rank)]}
                     : Place{.first = firsts_[at(rank, block)], .count = counts_[at(rank, block)]};
  }
  if (!has_own_lengths()) return {.first = firsts_[index], .count = counts_[index]};
  // Rank r has the P blocks from number r on, once around.
  const int number = (rank + block) % problem_.ranks;
  const auto which = static_cast<std::size_t>(number);
  Count first = firsts_[which];
  if (!is_scattered_) {
    first -= firsts_[static_cast<std::size_t>(rank)];
    if (number < rank) first += total_;
  }
  return {.first = first, .count = counts_[which]};
}

Place CellBlocks::input(int rank, int block) const {
  if (divides_input(problem_.collective)) return divided(rank, block, false);
  return {.first = 0, .count = own_count(rank)};
}

Place CellBlocks::output(int rank, int block) const {
  if (divides_output(problem_.collective)) return divided(rank, block, true);
  return {.first = 0, .count = own_count(rank)};
}

Count CellBlocks::input_elements(int rank) const {
  const int blocks = input_blocks(problem_, rank);
  if (blocks == 0) return 0;
  if (!divides_input(problem_.collective)) return own_count(rank);
  if (!own_ends_[0].empty()) return own_ends_[0][static_cast<std::size_t>(rank)];
  if (!is_matrix_) return extent_;
  const Place last = divided(rank, blocks - 1, false);
  return last.first + last.count;
}

Count CellBlocks::output_elements(int rank) const {
  const int blocks = output_blocks(problem_, rank);
  if (blocks == 0) return 0;
  if (!divides_output(problem_.collective)) return own_count(rank);
  if (!own_ends_[1].empty()) return own_ends_[1][static_cast<std::size_t>(rank)];
  if (!is_matrix_) return extent_;
  const Place last = divided(rank, blocks - 1, true);
  return last.first + last.count;
}

Count CellBlocks::largest() const { return std::ranges::max(counts_); }

bool CellBlocks::is_same_both_ways() const {
  for (int row = 0; is_matrix_ && row < problem_.ranks; ++row) {
    for (int column = 0; column < row; ++column) {
      if (counts_[at(row, column)] != counts_[at(column, row)]) return false;
    }
  }
  return true;
}

Count CellBlocks::most_elements() const {
  if (!is_matrix_) return total_;
  Count most = 0;
  for (int rank = 0; rank < problem_.ranks; ++rank) {
    most = std::max({most, input_elements(rank), output_elements(rank)});
  }
  return most;
}

BlockTable CellBlocks::table(int rank, std::size_t element_bytes) const {
  const auto element = static_cast<std::int64_t>(element_bytes);
  const auto block_at = [element](const Place& place) {
    return Block{.offset = place.first * element, .bytes = place.count * element};
  };
  BlockTable table;
  for (int i = 0; i < input_blocks(problem_, rank); ++i) table.input.push_back(block_at(input(rank, i)));
  for (int i = 0; i < output_blocks(problem_, rank); ++i) table.output.push_back(block_at(output(rank, i)));
  if (has_own_lengths()) return table;
  for (const Count count : counts_) table.shared.push_back(count * element);
  return table;
}

}  // namespace tutti::harness::cases

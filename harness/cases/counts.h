// SPDX-License-Identifier: Apache-2.0
// --counts: how long the blocks of a v form are. A pattern shares a number of elements out among P blocks; a file says
// the elements of each block itself.
//
// Block b of gather_v, all_gather_v, scatter_v and reduce_scatter_v has counts[b] elements. Rank i of all_to_all_v
// sends counts[(i + j) mod P] to rank j. So every rank sends and receives the same number of elements, and as much to
// each peer as it gets from it. Where a file has P x P numbers, rank i sends number j of row i to rank j. So it is of
// patterns that are drawn (drawn_counts.h).
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/collective/blocks.h"
#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

enum class Pattern : std::uint8_t {
  equal,      ///< all the same
  ramp,       ///< block b is as long as b + 1
  one_heavy,  ///< three quarters in block P/2; the others share the rest
  zeros,      ///< those of odd numbers are empty; the others are the same
  random,     ///< any length, some empty, in any order, with gaps between them
  file,       ///< as a file says
  zipf,       ///< drawn: the k-th most popular peer gets 1 / k of what the first one gets, from every rank
  rotating,   ///< drawn: three quarters go to one peer, the next one where the elements are twice as many
  burst,      ///< drawn: one pair in eight sends 64 times as much as each other one
  empty,      ///< drawn: a quarter of the ranks sends nothing, each other one to a quarter of its peers
};

/// Whether a seed draws the lengths: traffic of a mixture of experts. Of all_to_all_v they are P x P.
[[nodiscard]] constexpr bool is_drawn(Pattern pattern) { return pattern > Pattern::file; }
inline constexpr int kMostDrawnRanks = 256;     ///< of all_to_all_v: P x P numbers at each rank
inline constexpr std::uint64_t kUsualSeed = 1;  ///< which a name leaves out

struct Counts {
  Pattern pattern = Pattern::equal;
  std::string name = "equal";       ///< in ids and rows; of a file: file-<hash of its numbers>; drawn: zipf-seed7
  std::vector<Count> numbers = {};  ///< of a file; empty where only its name is known
  std::optional<std::uint64_t> seed = {};  ///< of what is drawn; empty: nobody has chosen it

  bool operator==(const Counts&) const = default;
};

/// What the numbers of a file are.
enum class CountsUnit : std::uint8_t { elements, bytes };
[[nodiscard]] Result<CountsUnit> parse_counts_unit(std::string_view name);

inline constexpr Count kMostCount = Count{1} << 38U;  ///< of one block in a file

/// The name of a pattern, of one that is drawn also with a seed (zipf-seed7), or a file of numbers between blanks.
/// Errors: invalid_argument: a file that cannot be read, naming the nearest pattern; a line that is not made of counts,
/// with its number.
[[nodiscard]] Result<Counts> parse_counts(std::string_view text);
/// What stands in a file. Errors: invalid_argument naming the line and the word.
[[nodiscard]] Result<Counts> read_counts(std::istream& file);
/// The name in an id: of a pattern, or of a file whose numbers are then not known.
/// Errors: invalid_argument naming the nearest right one.
[[nodiscard]] Result<Counts> counts_of_name(std::string_view name);
/// Counts of a file in elements of `dtype`, named by these; patterns as they are. Errors: invalid_argument: bytes that
/// are no multiple of an element.
[[nodiscard]] Result<Counts> in_elements(Counts counts, CountsUnit unit, Dtype dtype);
/// Counts that are drawn, with their name.
[[nodiscard]] Counts drawn_counts(Pattern pattern, std::uint64_t seed);
/// Those that are drawn get this seed, unless their name had one.
[[nodiscard]] Counts with_seed(Counts counts, std::uint64_t seed);
/// Whether a file's numbers are as many as the problem needs: P, or P x P for all_to_all_v. Of what is drawn, whether
/// the ranks are not too many.
[[nodiscard]] bool fits(const Counts& counts, const Problem& problem);
/// Why they do not fit, for messages: "a file of 3 counts: gather_v on 4 ranks needs 4".
[[nodiscard]] std::string misfit(const Counts& counts, const Problem& problem);

class CellBlocks;
/// The lengths of blocks as a file would say them, each `by` longer, and none below 0.
[[nodiscard]] Counts lengths_off_by(const Problem& problem, const CellBlocks& blocks, Count by);

/// A block of a buffer, in elements.
struct Place {
  Count first = 0;
  Count count = 0;
  bool operator==(const Place&) const = default;
};

/// Where the blocks of all ranks lie.
class CellBlocks {
 public:
  /// `elements`: what the pattern shares out, of P x P numbers in each row on average; unused with a file. Requires:
  /// fits.
  CellBlocks(const Problem& problem, const Counts& counts, Count elements);
  /// Puts each rank's blocks elsewhere: in an order of its own, with a gap of up to 8 elements before each. Blocks of
  /// the same lengths lie alike in a rank's input and output. Memory: P x P numbers.
  void set_apart(std::uint64_t seed);

  /// Block `block` of the input (output) of `rank`, which has it.
  [[nodiscard]] Place input(int rank, int block) const;
  [[nodiscard]] Place output(int rank, int block) const;
  /// Elements from the first to the last, gaps included.
  [[nodiscard]] Count input_elements(int rank) const;
  [[nodiscard]] Count output_elements(int rank) const;
  /// Elements of the undivided buffer of `rank`.
  [[nodiscard]] Count own_count(int rank) const { return counts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Count largest() const;
  /// Whether every rank of all_to_all_v sends to each peer what it gets from it, as in place demands.
  [[nodiscard]] bool is_same_both_ways() const;
  /// Elements that the larger of one rank's buffers moves, the most of all ranks.
  [[nodiscard]] Count most_elements() const;

  /// In elements of `element_bytes` bytes.
  [[nodiscard]] BlockTable table(int rank, std::size_t element_bytes) const;

 private:
  [[nodiscard]] bool has_own_lengths() const { return divides_both(problem_.collective); }
  [[nodiscard]] std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(problem_.ranks) + static_cast<std::size_t>(column);
  }
  [[nodiscard]] Place divided(int rank, int block, bool is_output) const;
  /// The same before set_apart.
  [[nodiscard]] Place side_by_side(int rank, int block, bool is_output) const;
  void share(const Counts& counts, Count elements);
  void share_by(const std::vector<std::uint64_t>& weights, Count elements);
  void scatter_places(Count elements);
  void add_up();

  Problem problem_;
  bool is_matrix_ = false;
  std::vector<Count> counts_;         ///< of the P blocks; [from][to] of a matrix
  std::vector<Count> firsts_;         ///< of the P blocks; of a matrix: in its row
  std::vector<Count> column_firsts_;  ///< of a matrix
  Count total_ = 0;                   ///< of the P blocks
  Count extent_ = 0;                  ///< with the gaps between them
  bool is_scattered_ = false;
  /// Where set_apart put them: [input, output], and there [rank][block]; likewise the end of each rank's last one.
  std::array<std::vector<Count>, 2> own_firsts_, own_ends_;
};

}  // namespace tutti::harness::cases

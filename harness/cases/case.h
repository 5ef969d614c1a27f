// SPDX-License-Identifier: Apache-2.0
// A cell is what is compared: one collective with everything that fixes the work, but not the backend that does it. A
// case is a cell with a backend and an algorithm. Its id is one line that names a case in every output and selects it
// on the command line:
//
//   broadcast/tutti.knomial/shm/float/none/P4.processes/root1/1048576B/out/private/isolated
//   <collective>/<backend>.<algorithm>/<transport>/<dtype>/<op>/P<ranks>.<ranks as>/root<root>/<bytes>B/<placement>/
//   <buffers>/<cadence>
//
// An algorithm may have a tuning behind it (impl/schedule/tuning.h): tutti.two_shot+64K.
//
// The bytes of a v form with blocks of different lengths name their pattern: 1048576B.ramp. Those of a collective with
// a window are one message's, and name the window: 1048576B.window64. Where one pair of ranks plays, it stands in the
// place of the root: pair0-3. The ranks of a case of a contention name its group, how the ranks are dealt, and whether
// the group ran alone: P8.processes.group0of2x4.together. If groups run different collectives, the deal follows.
//
// Parts that do not apply are `none`:
// - the op of a collective that does not reduce
// - the root of a collective without a root
// - dtype, placement and buffers of a collective without data
// - the algorithm of a reference, which chooses for itself and does not tell
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/counts.h"
#include "harness/cases/ranks_as.h"
#include "impl/collective/collective.h"
#include "impl/schedule/bind.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

inline constexpr int kMaxRanks = 4096;
inline constexpr std::string_view kNone = "none";         ///< stands where a part does not apply
inline constexpr std::string_view kOwnBackend = "tutti";  ///< every other backend is a reference
inline constexpr std::string_view kTwin = ":2";           ///< ends the name of a backend's second system, its twin
inline constexpr char kPartSeparator = ':';  ///< between a backend and which of its systems it is; also in backend_of

/// Ranks 0 and 1, 2 and 3, ... are pairs, and all of them play at once.
inline constexpr std::string_view kNeighbours = "neighbours";

/// Whether it has only letters of names: a to z, A to Z, 0 to 9, '_' and '-'. So it is no path.
[[nodiscard]] bool is_name(std::string_view text);

/// A backend that is named twice is two systems under test, so that it is held against itself (A/A).
[[nodiscard]] constexpr bool is_twin(std::string_view system) { return system.ends_with(kTwin); }
/// A backend with its settings (settings.h): what is loaded and started. A system's twin and compositions are of it.
[[nodiscard]] constexpr std::string_view instance_of(std::string_view system) {
  const std::size_t end = system.rfind('}');
  return system.substr(0, system.find(kPartSeparator, end == std::string_view::npos ? 0 : end));
}
/// The backend that a system under test is, without settings.
[[nodiscard]] constexpr std::string_view backend_of(std::string_view system) {
  return system.substr(0, system.find_first_of("{:"));
}
/// Whether it names a backend, with settings or without them, its twin or one of its compositions (compositions.h).
[[nodiscard]] bool is_system(std::string_view text);

enum class Placement : std::uint8_t { out, in };
/// `isolated`: the ranks synchronise before every sample. `streaming`: a sample is a loop of operations back to back,
/// and the ranks synchronise before the loop only.
enum class Cadence : std::uint8_t { isolated, streaming };

/// The best transport for these ranks: that of a cell where nobody chose another one.
[[nodiscard]] const std::string& usual_transport(RanksAs ranks_as);

[[nodiscard]] std::string_view to_string(RanksAs ranks_as);
[[nodiscard]] std::string_view to_string(Placement placement);
[[nodiscard]] std::string_view to_string(Cadence cadence);
/// Errors: invalid_argument naming the value, the nearest right name and all names.
[[nodiscard]] Result<RanksAs> parse_ranks_as(std::string_view name);
[[nodiscard]] Result<Placement> parse_placement(std::string_view name);
[[nodiscard]] Result<Buffers> parse_buffers(std::string_view name);
[[nodiscard]] Result<Cadence> parse_cadence(std::string_view name);

/// The place of a cell in a contention (groups.h): the cell is what one group of the job's ranks runs, by itself or at
/// the same time as all other groups.
struct Among {
  std::string groups = {};   ///< how the ranks are dealt: `2x4`, `MOD:2`; empty: there are no groups
  int group = 0;             ///< from 0
  int ranks = 0;             ///< of the group; 0: there are no groups
  bool is_together = false;  ///< all groups run at once; false: the other groups wait
  std::string deal = {};     ///< what each group runs, see deal_of; empty: all groups run the same

  [[nodiscard]] bool is_any() const { return ranks > 0; }
  bool operator==(const Among&) const = default;
};
/// How a group of a contention runs, as ids and rows name it.
inline constexpr std::string_view kAlone = "alone";
inline constexpr std::string_view kTogether = "together";

/// Fields that do not apply to the collective hold their defaults (op: none), so that equal work is an equal cell.
struct Cell {
  Collective collective = Collective::barrier;
  std::string transport = usual_transport(RanksAs::processes);
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int ranks = 1;
  RanksAs ranks_as = RanksAs::processes;
  int root = 0;
  /// The larger of one rank's input and output, as really moved; of a window one message's; where counts are drawn
  /// (is_drawn) what a rank sends in the mean.
  std::int64_t bytes = 0;
  Count count = 0;     ///< elements per block; of a v form those of the largest
  Counts counts = {};  ///< of a v form
  bool is_in_place = false;
  Buffers buffers = Buffers::private_;
  Cadence cadence = Cadence::isolated;
  Pairing pairing = {};  ///< of a collective of pairs
  Among among = {};      ///< of a contention; `ranks` are then those of the job

  bool operator==(const Cell&) const = default;
  /// Ranks that take part in the collective.
  [[nodiscard]] int ranks_of_call() const { return among.is_any() ? among.ranks : ranks; }
  [[nodiscard]] Problem problem() const {
    return {.collective = collective, .ranks = ranks_of_call(), .root = root, .pairing = pairing};
  }
};

/// Sets bytes and count of a cell whose other fields are set, from the bytes asked for: those really moved. Where the
/// counts are those of a file they alone decide; without its numbers the bytes are taken as they are.
void set_bytes(Cell& cell, std::int64_t bytes);
/// The blocks of a v form. Requires: the numbers of a file are known.
[[nodiscard]] CellBlocks blocks_of(const Cell& cell);
/// Bytes of the larger of one rank's buffers, gaps between blocks and all messages of a window included.
[[nodiscard]] std::int64_t largest_buffer_bytes(const Cell& cell);

struct Case : Cell {
  std::string backend = std::string(kOwnBackend);
  std::string algorithm = std::string(kNone);  ///< in an id and a row the one that ran, never `auto`

  bool operator==(const Case&) const = default;
};

/// The parts of ids and rows that are `none` where they do not apply.
[[nodiscard]] std::string_view dtype_name(const Cell& cell);
[[nodiscard]] std::string_view placement_name(const Cell& cell);
[[nodiscard]] std::string_view buffers_name(const Cell& cell);

/// `neighbours`, or `0-3` where one pair plays; empty of a collective that cannot be played by one.
[[nodiscard]] std::string pair_name(const Cell& cell);

/// `none` but for a v form.
[[nodiscard]] std::string_view counts_name(const Cell& cell);

[[nodiscard]] std::string case_id(const Case& one);

/// The same work as the ranks of the group see it, which are then all there are.
[[nodiscard]] Case within_group(Case one);

/// The case whose id this is: case_id(parse_case_id(id)) == id. Backend, algorithm and transport are taken as names;
/// the code that runs the case knows which there are. Errors: invalid_argument naming the part that is wrong, what it
/// holds and the nearest right one.
[[nodiscard]] Result<Case> parse_case_id(std::string_view id);

/// Gives a case that was read from its id the numbers of its file, which is among `known`.
/// Errors: invalid_argument where it is not, or does not fit the case.
[[nodiscard]] Status complete_counts(Case& one, const std::vector<Counts>& known);

}  // namespace tutti::harness::cases

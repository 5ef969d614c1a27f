// SPDX-License-Identifier: Apache-2.0
// The result record: one row says what one case gave in one launch. Every report is a rendering of rows. The CSV
// header, the keys of a JSON row, the JSON Schema and the docs come from the one table of columns below.
//
// Readers go by name; columns are only ever appended. An empty field means "not measured". Times are in microseconds,
// bandwidths in 1e9 bytes/s.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/statistics/statistics.h"
#include "impl/types/host_list.h"

namespace tutti::harness::record {

/// No default passes: a row that nobody judged is `unchecked`.
enum class Verdict : std::uint8_t { ok, wrong, unchecked, skipped, error };
[[nodiscard]] std::string_view to_string(Verdict verdict);
[[nodiscard]] std::span<const Verdict> all_verdicts();

struct Row {
  std::string case_id = {};
  std::string collective = {};
  std::string backend = {};
  std::string algorithm = {};
  std::string transport = {};
  std::string buffers = {};
  std::int64_t ranks = 0;
  std::string dtype = {};
  std::string op = {};
  std::optional<std::int64_t> root = {};
  std::string placement = {};
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  std::string cadence = {};
  std::int64_t launch = 1;
  std::int64_t launches = 1;
  std::int64_t samples = 0;
  std::optional<double> time_median = {};
  std::optional<double> time_ci_low = {};
  std::optional<double> time_ci_high = {};
  std::optional<double> time_min = {};
  std::optional<double> time_p95 = {};
  std::optional<double> time_p99 = {};
  std::optional<double> time_max = {};
  std::optional<double> algbw = {};
  std::optional<double> busbw = {};
  std::optional<double> limit_fraction = {};
  Verdict verdict = Verdict::unchecked;
  std::optional<std::int64_t> wrong = {};
  std::optional<std::int64_t> slowest_rank = {};
  std::optional<double> line_ns = {};
  std::string reason = {};
  std::string ranks_as = {};
  std::int64_t operations = 1;
  std::string checked_on = {};
  std::string counts = {};
  std::optional<double> time_p90 = {};
  std::optional<double> autocorrelation = {};
  std::int64_t warm_up = 0;
  std::string marks = {};
  std::optional<double> limit_time = {};
  /// By column: what it was measured under, as text. Without a column nothing was measured, or it was as usual.
  std::map<std::string, std::string, std::less<>> conditions = {};
  std::optional<double> error_ulp = {};
  std::optional<double> error_ulp_mean = {};
  std::string same_on_ranks = {};
  std::string same_on_repeats = {};
  std::optional<double> invalid_share = {};
  std::optional<double> arrival_skew = {};
  std::optional<double> time_from_last = {};
  std::optional<std::int64_t> last_rank = {};
  std::optional<std::int64_t> buffer_sets = {};
  std::optional<double> overlap = {};
  std::optional<double> overlap_called = {};
  std::optional<double> time_pure = {};
  std::optional<double> time_computing = {};
  std::optional<double> time_overlapped = {};
  std::optional<double> time_overlapped_called = {};
  std::string disturbed = {};
  std::string machine = {};
  std::string host = {};
  std::string timestamp = {};
  std::optional<std::int64_t> window = {};
  std::string pair = {};
  std::optional<double> message_rate = {};
  std::optional<double> rank_time_min = {};
  std::optional<double> rank_time_mean = {};
  std::optional<double> rank_time_max = {};
  std::string starter = {};
  std::string gpu = {};
  std::optional<double> time_on_gpu = {};
  std::string memory = {};
  std::string verified_by = {};
  std::string limit_way = {};
  std::optional<double> net_ns = {};
  std::string graph = {};
  std::optional<std::int64_t> grouped = {};
  std::string registered = {};
  std::optional<double> clocks_bound = {};
  std::string step = {};
  std::string groups = {};
  std::optional<std::int64_t> group = {};
  std::string contention = {};
  std::string deal = {};
  std::optional<double> slowdown = {};
  std::optional<double> slowdown_low = {};
  std::optional<double> slowdown_high = {};
  std::string table = {};

  bool operator==(const Row&) const = default;
};

/// What `marks` may hold, separated by "; ".
inline constexpr std::string_view kNoisy = "noisy";
inline constexpr std::string_view kNearFloor = "near floor";
inline constexpr std::string_view kLimitTooLow = "limit too low";
inline constexpr std::string_view kLateStarts = "late starts";
inline constexpr std::string_view kFewerIterations = "fewer iterations";
inline constexpr std::string_view kFromFormula = "from the cost formula";
inline constexpr std::string_view kSimulatedOn = "simulated on ";  ///< and the name of the machine
inline constexpr std::string_view kFlatOnHosts = "flat on unequal hosts";
[[nodiscard]] bool has_mark(const Row& row, std::string_view mark);
/// Adds it where it is not there.
void add_mark(Row& row, std::string_view mark);
/// The same for what `disturbed` holds, of which there may be several in `words`.
void add_disturbances(std::string& seen, std::string_view words);
/// Whether `disturbed` has this word, on any host.
[[nodiscard]] bool is_disturbed_by(const Row& row, std::string_view cause);
/// The parts of `marks` or `disturbed`, which `text` outlives.
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view text);

/// The column `hosts`; empty: the row is of one host.
[[nodiscard]] std::string hosts_text(const Row& row);
/// The hosts in that column; empty: there are none, or they cannot be read.
[[nodiscard]] std::vector<NamedHost> named_hosts(const Row& row);

/// What started the ranks where no MPI did: a value of `starter`.
inline constexpr std::string_view kOwnSpawn = "spawn";
/// The fields that the case alone decides; the rest is not measured and `unchecked`.
[[nodiscard]] Row row_of(const Case& one);
/// Whether their buffers lie in memory of one kind, as far as that is known: otherwise their times are not compared.
[[nodiscard]] bool have_like_memory(const Row& row, const Row& other);
/// Its backend, with the algorithm where that tells it.
[[nodiscard]] std::string system_of(const Row& row);

/// Fills the columns of those conditions that have a meaning for the collective.
void set_conditions(Row& row, Collective collective, const Conditions& values);
/// Of a row that is not measured: those that say what the ranks are.
void set_conditions_of_ranks(Row& row, const Conditions& values);

/// What one rank of a pair, or of a collective, moves in one direction: `bytes`, with a window of all its messages.
[[nodiscard]] double bytes_one_way(const Row& row);
/// The times of `summary` (in microseconds) and the bandwidths that follow from its median and the bytes of `problem`.
/// Bandwidths stay empty where there are no bytes. With a window, the rate of messages too.
void set_times(Row& row, const Summary& summary, const Problem& problem);

/// Where a column lives in a row; the alternative is the column's type. An optional may be empty, and so may a number
/// among the conditions; the others never are.
using Member = std::variant<std::string Row::*, std::int64_t Row::*, std::optional<std::int64_t> Row::*,
                            std::optional<double> Row::*, Verdict Row::*, const Condition*>;

struct Column {
  std::string_view name;
  std::string_view unit;  ///< empty: none
  std::string_view description;
  Member member;

  [[nodiscard]] bool is_text() const;  ///< or a verdict
  [[nodiscard]] bool is_integer() const;
  [[nodiscard]] bool may_be_empty() const;
};
/// Sets a condition's column; false where `text` is not of its type.
[[nodiscard]] bool set_field(Row& row, const Condition& condition, std::string_view text);
[[nodiscard]] std::span<const Column> columns();
/// The first 31 are in every file that was ever written; those after them were appended one by one.
inline constexpr std::size_t kFirstColumns = 31;
/// Whether `column`, one of columns(), was appended after those: an older row is without it.
[[nodiscard]] bool is_appended(const Column& column);

/// The field as text: numbers in the fewest digits that read back as the same value. Empty: not measured, which is also
/// what a number that is not finite becomes.
[[nodiscard]] std::optional<std::string> field_text(const Row& row, const Column& column);

}  // namespace tutti::harness::record

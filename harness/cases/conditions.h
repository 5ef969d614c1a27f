// SPDX-License-Identifier: Apache-2.0
// The conditions of a run: what a user can ask of how cells are measured, beside the cells themselves. Conditions is
// the one record of them, and every specification of a measurement holds it. The table conditions() has a row for each
// field: its option, its help, its text both ways, its column and what it cannot stand beside. Options, the text that
// ranks are sent, columns and refusals follow from the table.
//
// A new condition is a field of Conditions, a row of the table, and the code that obeys it. Those that say where the
// ranks are have a record and a file of their own (topology_options.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/topology_options.h"
#include "impl/communicator/selection_table.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// Which results are verified.
enum class Checking : std::uint8_t {
  every,   ///< of every sample, each on data of its own: what was cached of the buffers is gone each time
  sample,  ///< in each block of the last timed one and one that is drawn, and of one more call on other data
  none,    ///< the verdict is then unchecked
};

/// What inputs are made of.
enum class Values : std::uint8_t {
  exact,    ///< every order of reduction gives the same bits
  random,   ///< floats that are rounded: results are compared within a bound (harness/verify/rounding.h)
  special,  ///< NaN, infinities, zeros, subnormals, overflow; every order gives the same bits but those of a NaN
};

/// Where the buffers are when an operation begins.
enum class CacheState : std::uint8_t {
  hot,     ///< where the operation before left them
  cold,    ///< in memory: every line of them is flushed from all caches before each call
  rotate,  ///< in memory: each call takes the next of several sets of them (harness/measure/rotation.h)
};

/// How the ranks come together before a sample.
enum class Synchronisation : std::uint8_t {
  roundtime,      ///< all start at an announced instant of the common clock; if one arrives late, it is repeated
  dissemination,  ///< all leave a barrier of the harness and start at once
  library,        ///< all leave the barrier of the system under test and start at once
};

[[nodiscard]] std::string_view to_string(Checking checking);
[[nodiscard]] std::string_view to_string(Values values);
[[nodiscard]] std::string_view to_string(CacheState cache);
[[nodiscard]] std::string_view to_string(Synchronisation how);
/// Errors: invalid_argument naming the text, the nearest right name and all names.
[[nodiscard]] Result<Checking> parse_checking(std::string_view text);
[[nodiscard]] Result<Values> parse_values(std::string_view text);
[[nodiscard]] Result<CacheState> parse_cache_state(std::string_view text);
[[nodiscard]] Result<Synchronisation> parse_synchronisation(std::string_view text);

/// A rank whose MOVEs take `percent` % longer, on purpose.
struct SlowRank {
  int rank = -1;  ///< -1: there is none
  int percent = 0;
  bool operator==(const SlowRank&) const = default;
};
/// Two ranks between which MOVEs take `percent` % longer, in both directions.
struct SlowLink {
  int first = -1;  ///< the lower one; -1: there is none
  int second = -1;
  int percent = 0;
  bool operator==(const SlowLink&) const = default;
};

/// A selection table that was read. Two are equal if they have one name and the same bytes.
struct ReadTable {
  std::shared_ptr<const SelectionTable> table = nullptr;  ///< null: none was

  bool operator==(const ReadTable& other) const;
};

struct Conditions {
  Checking checking = Checking::sample;
  Values values = Values::exact;
  CacheState cache = CacheState::hot;
  Synchronisation sync = Synchronisation::roundtime;
  std::chrono::nanoseconds skew{};  ///< by how much one rank, another one in each call, enters after the others
  SlowRank slow_rank = {};
  SlowLink slow_link = {};
  int overlap_calls = 0;          ///< above 0: overlap is measured, with this many calls while computing
  int misalign = 0;               ///< bytes by which every buffer begins after a cache line
  int crowd = 0;                  ///< busy threads beside the ranks, on each machine
  bool has_limit = true;          ///< the machine's limit is measured in every cell that has one
  std::int64_t iterations = 0;    ///< above 0: this many samples of each row; 0: until the interval is narrow
  bool tells_ranks = false;       ///< rows say what the fastest rank, the mean one and the slowest took
  ReadTable selection = {};       ///< by which `auto` chooses; what is built in if none was read
  TopologyOptions topology = {};  ///< where the ranks are

  [[nodiscard]] bool is_slowed() const { return slow_rank.rank >= 0 || slow_link.first >= 0; }
  /// A limit waits for no rank: with skew there is none.
  [[nodiscard]] bool measures_limit() const { return has_limit && skew.count() == 0; }
  bool operator==(const Conditions&) const = default;
};

/// The variable that names the table where no option does.
inline constexpr const char* kTableVariable = "TUTTI_TABLE";
/// That by which `auto` chooses.
[[nodiscard]] const SelectionTable& table_of(const Conditions& conditions);
/// Its name and hash.
[[nodiscard]] std::map<std::string, std::string> table_facts(const Conditions& conditions);

/// What else of a sweep a condition may be at odds with.
struct Beside {
  Cadence cadence = Cadence::isolated;
  RanksAs ranks_as = RanksAs::processes;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::vector<Dtype> dtypes = {};  ///< of cells that have data
  // Of a Topology, for its options:
  RanksOn ranks_on = RanksOn::cores;
  int ranks = 0;
};

/// Two options that cannot stand beside each other.
struct Clash {
  std::string_view own;                      ///< the condition's text; empty: any but the usual one
  std::string_view option;                   ///< the other: of a condition, or --cadence, --ranks-as
  std::string_view value;                    ///< its text; empty: any but the usual one
  bool (*kinds)(const RankKind&) = nullptr;  ///< of --ranks-as, in place of `value`: the kinds that clash
  std::string_view why;                      ///< "which is measured without computing"
  std::string_view meant;                    ///< "--cache hot"
};

/// The column of a row that says what the condition was. A row in which nothing was measured leaves it empty, unless it
/// says what the ranks are.
struct ConditionColumn {
  enum class Type : std::uint8_t { text, integer, number };
  std::string_view name = {};  ///< empty: there is none
  Type type = Type::text;
  std::string_view unit = {};
  std::string_view description = {};
  std::string_view usual = "none";  ///< as messages name it
  /// Of what is unusual, with {} for the field; empty: the column's name and the field.
  std::string_view words = {};
  bool is_of_ranks = false;
};

/// A condition without a column of its own, which `checked_on` tells among other things.
struct ToldElsewhere {
  std::string_view column = {};
  std::string (*unusual)(std::string_view field) = nullptr;  ///< what the field says of it; empty: as usual
};

struct Condition {
  std::string_view option;  ///< `--cache`
  std::string_view value;   ///< what stands for its value in the help; empty: a flag
  std::string_view usual;   ///< its text where nobody asks; empty: it has none
  std::string_view help;
  std::string_view example;  ///< a text that is not the usual one
  /// Errors: invalid_argument; unavailable where this machine cannot.
  Status (*read)(Conditions& conditions, std::string_view text);
  std::string (*text)(const Conditions& conditions);  ///< `read` takes it, unless it is empty
  ConditionColumn column = {};
  ToldElsewhere told = {};
  /// The field; without it, the text. Empty: the row leaves it out.
  std::string (*field)(const Conditions& conditions) = nullptr;
  std::span<const Clash> clashes = {};
  /// What else its value has to fit; null: nothing. Errors: invalid_argument, without the option.
  Status (*check)(const Conditions& values, const Beside& beside) = nullptr;
  std::vector<std::string> (*names)() = nullptr;  ///< of its values, where these have names
  bool (*has_meaning)(Collective) = nullptr;      ///< null: for all
  std::string_view lacks = {};                    ///< of a collective for which it has none: "no data"
};

/// The whole table.
[[nodiscard]] std::span<const Condition> conditions();
/// The rows of Conditions::topology.
[[nodiscard]] std::span<const Condition> topology_options();
/// Null where there is none.
[[nodiscard]] const Condition* condition_of_option(std::string_view option);
[[nodiscard]] const Condition* condition_of_column(std::string_view column);
/// The field of its column.
[[nodiscard]] std::string field_of(const Condition& condition, const Conditions& values);

/// What flags have for text.
inline constexpr std::string_view kAsked = "yes";

/// What cannot stand beside what, of these rows. Errors: invalid_argument naming the option, and the other one.
[[nodiscard]] Status check_conditions(std::span<const Condition> rows, const Conditions& values, const Beside& beside);
/// The same of all rows but topology_options(), which topology_of checks.
[[nodiscard]] Status check_conditions(const Conditions& values, const Beside& beside);

}  // namespace tutti::harness::cases

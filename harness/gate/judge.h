// SPDX-License-Identifier: Apache-2.0
// The gate: is this build as fast as another one, cell by cell? The files of the folder:
// - judge: from evidence to an opinion
// - pairs: from rows to evidence
// - contest: which blocks there are
// - forecast: how long they take
// - power: which steps they can show
// - baseline: a recorded CSV as the other side
// - plan: from cells to command lines
// - program_run: running them
// - counters and footprint: what is compared without a clock
// - report: table, JUnit XML, Markdown
//
// What is compared are launches, not samples: what differs from one start of the ranks to the next stays as it is
// within one. Blocks of launches hold this side and the other in turn: A B B A, then B A A B, so that what drifts
// evenly cancels. They give pairs, one launch of each side in one state of the machine. Each pair gives the logarithm
// of a ratio. Of these the Hodges-Lehmann estimate and its exact signed-rank interval are taken. A cell is slower where
// the whole interval lies above a floor, and again in fresh launches: two independent mistakes of 1 % each. What is not
// known is told as not known: nothing is green because it is noisy, or because its floor is too large a share of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::gate {

/// In the order of what outweighs what: of several that apply, the last.
enum class Opinion : std::uint8_t {
  same,       ///< the whole interval lies within the floors
  faster,     ///< the whole interval lies below the floor
  too_short,  ///< as same, but it says nothing: the floor is more than kMostFloor of the time
  undecided,  ///< neither: too noisy, or too few blocks
  invalid,    ///< what was measured cannot be compared, or too little of it can
  missing,    ///< one of the sides has no result
  slower,     ///< the whole interval lies above the floor, twice; or a counter is larger
  wrong,      ///< a result was wrong
};
[[nodiscard]] std::string_view to_string(Opinion opinion);
[[nodiscard]] std::span<const Opinion> all_opinions();

inline constexpr double kGateConfidence = 0.99;  ///< 8 pairs are the fewest that have an interval of it

/// The share of the other side's time below which more time is no difference. It is 5 % from 1 MiB on and 10 % below.
/// It is never less than half a microsecond in a sample, which its `operations` share. What is faster has gained as
/// much: 1/(1 + share), and half a microsecond.
[[nodiscard]] double gate_floor(std::int64_t bytes, double other_us, double operations = 1);

/// A larger floor makes a cell too short to be judged: what is slower by less would pass.
inline constexpr double kMostFloor = 0.25;

struct TimedLaunch {
  double time_us = 0;             ///< its median
  std::optional<double> trip_ns;  ///< the state of the machine: see state_of
};

/// Everything known of one cell. Ratios are this side's time / the other's.
struct Evidence {
  std::string cell;
  std::string collective;
  std::int64_t bytes = 0;
  std::vector<double> log_ratios;    ///< one per pair of launches
  std::vector<double> confirmation;  ///< the same, of the launches after it was found slower
  std::vector<double> this_us;       ///< medians of the launches in pairs
  std::vector<double> other_us;
  std::vector<double> operations;  ///< in a sample of each launch that gave a time; where it is empty, one
  /// Launches that no other was seen to go with yet. Both may hold some: of other states.
  std::vector<TimedLaunch> waiting_mine;
  std::vector<TimedLaunch> waiting_other;
  /// Of a recorded other side: how far its own time may lie below and above, as logarithms; both >= 0.
  double doubt_below = 0;
  double doubt_above = 0;
  int recorded_launches = 0;  ///< of these; 0: the other side is measured too
  // The first reason for each; empty where there is no reason.
  std::string wrong;
  std::string missing;
  std::string invalid;
  std::string counters;  ///< exact counters of which this side has more
  std::string note;      ///< told behind every reason, and not judged: another algorithm
  std::string untimed;   ///< why a launch gave no time: it is no partner of any
  // Told, and not judged either: rows of both sides, recorded ones too, and those that something disturbed.
  int rows = 0;
  int disturbed_rows = 0;
  std::string disturbed;                   ///< by what, as in a row
  std::string_view pairs_of = "launches";  ///< what a pair is of, in messages
  std::string this_case = {};              ///< the ids of both sides, where they are two cases of one launch
  std::string other_case = {};
};

struct Judgement {
  Opinion opinion = Opinion::undecided;
  std::optional<double> ratio;  ///< of all pairs before the confirmation
  std::optional<double> low;    ///< its interval, the doubt of a recorded side within
  std::optional<double> high;
  std::optional<double> floor;  ///< see gate_floor
  std::string reason;           ///< empty only where the numbers say all
};

/// An interval of the logarithm of this side's time / the other's.
struct LogInterval {
  double middle = 0;
  double low = 0;
  double high = 0;
};
/// What the interval says against the floors, and no reason beside it: same, faster, slower, undecided or too short.
/// Of the evidence it takes the bytes, the other side's times and the operations; `of` names what the interval is of.
[[nodiscard]] Judgement judge_interval(const Evidence& evidence, const LogInterval& interval, std::string_view of);

/// Before there is a confirmation `slower` means: to be confirmed.
[[nodiscard]] Judgement judge(const Evidence& evidence);
/// Whether more blocks may change what judge says, confirmation aside.
[[nodiscard]] bool is_open(const Evidence& evidence);
/// What the confirmation says by itself; empty while its pairs are too few.
[[nodiscard]] std::optional<Opinion> confirmed_opinion(const Evidence& evidence);
/// The last word: what is not confirmed is undecided.
[[nodiscard]] Judgement judge_finally(const Evidence& evidence);
/// The last word of a gate that ended early: what holds whatever the times say stands, all else is undecided for `why`.
[[nodiscard]] Judgement judge_unfinished(const Evidence& evidence, const std::string& why);
/// "3 of 32 rows were disturbed: load; steal"; empty where none was.
[[nodiscard]] std::string disturbance_text(const Evidence& evidence);

}  // namespace tutti::harness::gate

// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/pairs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tutti::harness::gate {
namespace {

/// Less than is_same_state grants. Two hyperthreads of a core are 62 ns apart, two cores beside each other 80 to 120
/// ns: their times at 1 MiB differ up to twofold.
constexpr double kOneState = 1.25;

void note(std::string& target, std::string text) {
  if (target.empty()) target = std::move(text);
}

/// Whether no row of a side is wrong or failed; notes what is.
bool are_right(Evidence& evidence, std::span<const Row> rows, const std::string& name) {
  bool all = true;
  for (const Row& row : rows) {
    if (row.verdict == Verdict::ok) continue;
    all = false;
    const std::string text = fmt::format("{}: {}: {}", name, to_string(row.verdict), row.reason);
    note(row.verdict == Verdict::wrong ? evidence.wrong : evidence.missing, text);
  }
  return all;
}

/// The launches that gave a time. A right result gives no time where ranks came late to every sample.
std::vector<TimedLaunch> timed(Evidence& evidence, std::span<const Row> rows, const std::string& name) {
  std::vector<TimedLaunch> launches;
  for (const Row& row : rows) {
    if (row.time_median && *row.time_median > 0) {
      launches.push_back({.time_us = *row.time_median, .trip_ns = state_of(row)});
      evidence.operations.push_back(static_cast<double>(row.operations));
    } else {
      note(evidence.untimed, fmt::format("{}: {}", name, row.reason.empty() ? "no time was measured" : row.reason));
    }
  }
  return launches;
}

/// Takes the first of `waiting` that saw the state of `launch` too; nothing where none did.
std::optional<TimedLaunch> take_partner(std::vector<TimedLaunch>& waiting, const TimedLaunch& launch) {
  const auto partner =
      std::ranges::find_if(waiting, [&](const TimedLaunch& one) { return saw_one_state(one.trip_ns, launch.trip_ns); });
  if (partner == waiting.end()) return std::nullopt;
  const TimedLaunch taken = *partner;
  waiting.erase(partner);
  return taken;
}

void add_pair(Evidence& evidence, const TimedLaunch& mine, const TimedLaunch& other, bool confirms) {
  evidence.this_us.push_back(mine.time_us);
  evidence.other_us.push_back(other.time_us);
  (confirms ? evidence.confirmation : evidence.log_ratios).push_back(std::log(mine.time_us / other.time_us));
}

}  // namespace

std::vector<GateSide> order_of_block(int block) {
  if (block % 2 == 0) return {GateSide::other, GateSide::mine, GateSide::mine, GateSide::other};
  return {GateSide::mine, GateSide::other, GateSide::other, GateSide::mine};
}

bool saw_one_state(std::optional<double> trip_ns, std::optional<double> other_trip_ns) {
  if (!trip_ns || !other_trip_ns) return true;
  return std::max(*trip_ns, *other_trip_ns) <= kOneState * std::min(*trip_ns, *other_trip_ns);
}

void note_disturbances(Evidence& evidence, std::span<const Row> rows) {
  for (const Row& row : rows) {
    ++evidence.rows;
    evidence.disturbed_rows += row.disturbed.empty() ? 0 : 1;
    add_disturbances(evidence.disturbed, row.disturbed);
  }
}

void add_block(Evidence& evidence, const BlockRows& rows, const SideNames& names, bool confirms) {
  note_disturbances(evidence, rows.mine);
  if (evidence.recorded_launches == 0) note_disturbances(evidence, rows.other);  // else done when they were read
  const bool is_mine_right = are_right(evidence, rows.mine, names.mine);
  const bool is_other_right = are_right(evidence, rows.other, names.other);
  if (!is_mine_right || !is_other_right || rows.mine.empty() || rows.other.empty()) return;
  if (!have_like_memory(rows.mine.front(), rows.other.front())) {
    note(evidence.missing,
         fmt::format("buffers of {} lie in memory of the {}, those of {} in that of the {}: their times "
                     "are not compared",
                     names.mine, rows.mine.front().memory, names.other, rows.other.front().memory));
    return;
  }
  if (rows.mine.front().backend == rows.other.front().backend &&
      rows.mine.front().algorithm != rows.other.front().algorithm) {
    note(evidence.note,
         fmt::format("algorithm {}, of {} {}", rows.mine.front().algorithm, names.other, rows.other.front().algorithm));
  }
  const std::vector<TimedLaunch> mine = timed(evidence, rows.mine, names.mine);
  const std::vector<TimedLaunch> other = timed(evidence, rows.other, names.other);
  for (std::size_t i = 0; i < std::max(mine.size(), other.size()); ++i) {
    if (i < mine.size()) {
      const auto partner = take_partner(evidence.waiting_other, mine[i]);
      partner ? add_pair(evidence, mine[i], *partner, confirms) : evidence.waiting_mine.push_back(mine[i]);
    }
    if (i < other.size()) {
      const auto partner = take_partner(evidence.waiting_mine, other[i]);
      partner ? add_pair(evidence, *partner, other[i], confirms) : evidence.waiting_other.push_back(other[i]);
    }
  }
}

}  // namespace tutti::harness::gate

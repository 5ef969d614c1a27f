// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/blocks.h"

#include <algorithm>
#include <cmath>

#include "harness/measure/block.h"

namespace tutti::harness {
namespace {

void note(std::string& target, std::string text) {
  if (target.empty()) target = std::move(text);
}

/// Whether all rows of a side are right; notes why not.
bool are_right(Evidence& evidence, std::span<const Row> rows, const std::string& name) {
  bool all = true;
  for (const Row& row : rows) {
    const bool is_right = row.verdict == Verdict::ok && row.time_median && *row.time_median > 0;
    all &= is_right;
    if (is_right) continue;
    const std::string text = fmt::format("{}: {}: {}", name, to_string(row.verdict),
                                         row.reason.empty() ? "no time was measured" : row.reason);
    note(row.verdict == Verdict::wrong ? evidence.wrong : evidence.missing, text);
  }
  return all;
}

bool are_of_one_state(const BlockRows& rows) {
  std::vector<double> lines;
  for (const std::vector<Row>* side : {&rows.mine, &rows.other}) {
    for (const Row& row : *side) {
      if (row.line_ns) lines.push_back(*row.line_ns);
    }
  }
  if (lines.empty()) return true;
  const auto [least, most] = std::ranges::minmax(lines);
  return is_same_state(least, most);
}

double mean_log(std::span<const Row> rows) {
  double sum = 0;
  for (const Row& row : rows) sum += std::log(*row.time_median);
  return sum / static_cast<double>(rows.size());
}

}  // namespace

std::vector<GateSide> order_of_block(int block) {
  if (block % 2 == 0) return {GateSide::other, GateSide::mine, GateSide::mine, GateSide::other};
  return {GateSide::mine, GateSide::other, GateSide::other, GateSide::mine};
}

void add_block(Evidence& evidence, const BlockRows& rows, const SideNames& names, bool confirms) {
  const bool is_mine_right = are_right(evidence, rows.mine, names.mine);
  const bool is_other_right = are_right(evidence, rows.other, names.other);
  if (!is_mine_right || !is_other_right || rows.mine.empty() || rows.other.empty()) return;
  if (rows.mine.front().backend == rows.other.front().backend &&
      rows.mine.front().algorithm != rows.other.front().algorithm) {
    note(evidence.note,
         fmt::format("algorithm {}, of {} {}", rows.mine.front().algorithm, names.other, rows.other.front().algorithm));
  }
  if (!are_of_one_state(rows)) {
    ++evidence.unsteady;
    return;
  }
  for (const Row& row : rows.mine) evidence.this_us.push_back(*row.time_median);
  for (const Row& row : rows.other) evidence.other_us.push_back(*row.time_median);
  (confirms ? evidence.confirmation : evidence.log_ratios).push_back(mean_log(rows.mine) - mean_log(rows.other));
}

}  // namespace tutti::harness

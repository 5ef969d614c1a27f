// SPDX-License-Identifier: Apache-2.0
#include "harness/tune/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/statistics/paired.h"

namespace tutti::harness::tune {
namespace {

using guidelines::Comparison;
using guidelines::Found;
using guidelines::Measured;

/// Segments that are tried of what is taken, in bytes of a block.
constexpr std::array<std::int64_t, 2> kSegments{std::int64_t{16} << 10, std::int64_t{64} << 10};

/// Other ways to run an algorithm.
std::vector<Tuning> tunings_for(const Case& one, const Tuning& taken) {
  std::vector<Tuning> tunings{Tuning()};
  if (!has_data(one.collective) || one.bytes < kLeastTunedBytes) return tunings;
  for (const Stores stores : {Stores::plain, Stores::streamed}) tunings.push_back({.stores = stores});
  if (one.buffers == Buffers::private_) tunings.push_back({.stores = Stores::single_copy});
  const std::int64_t block_bytes = one.count * static_cast<std::int64_t>(size_of(one.dtype));
  for (const std::int64_t bytes : kSegments) {
    if (bytes < block_bytes) tunings.push_back({.segment_bytes = bytes});
  }
  append_new(tunings, taken);
  return tunings;
}

/// The cases of a cell, what is taken first.
std::vector<Case> cases_of_cell(const Cell& cell, const Sweep& sweep, const TakenOf& taken_of) {
  const std::vector<Case> all = cases_of(cell, sweep);
  if (all.empty()) return {};
  Case taken = all.front();
  taken.algorithm = kAuto;
  taken.algorithm = taken_of(taken);
  std::vector<Case> cases{taken};
  for (const Case& one : all) append_new(cases, one);
  const auto tuned = find_tuned(cell.collective, taken.algorithm);
  if (!tuned.is_ok()) return cases;
  for (const Tuning& tuning : tunings_for(taken, tuned.value().tuning)) {
    Case one = taken;
    one.algorithm = to_text({.algorithm = tuned.value().algorithm, .tuning = tuning});
    append_new(cases, std::move(one));
  }
  return cases;
}

/// What both passes say; nothing if one of them has no interval.
std::optional<Gain> gain_of(const Found& found) {
  const gate::Judgement& first = found.cell.judgement;
  const std::vector<double>& again = found.cell.evidence.confirmation;
  if (found.state != Found::State::judged || !first.low || again.empty()) return std::nullopt;
  const MiddleOfPairs second = middle_of_pairs(again, gate::kGateConfidence);
  if (!second.low) return std::nullopt;
  return Gain{.middle = *first.ratio,
              .low = std::min(*first.low, std::exp(*second.low)),
              .high = std::max(*first.high, std::exp(*second.high))};
}

/// Its comparisons, by cell.
std::map<std::size_t, std::vector<Found>> found_by_cell(const guidelines::Plan& plan, const Measured& first,
                                                        const Measured& again) {
  std::map<std::size_t, std::vector<Found>> by_cell;
  for (const Comparison& one : plan.comparisons) {
    by_cell[one.native.cell].push_back(judge_comparison(one, plan.cells, first, &again));
  }
  return by_cell;
}

/// The gravest, and of as grave ones the one with the largest ratio.
std::pair<gate::Opinion, double> gravity_of(const Found& found) {
  return {found.cell.judgement.opinion, found.cell.judgement.low.value_or(0)};
}

/// An interval that ends below the floor says enough here: what is taken is not slower, whether faster or not.
void settle(gate::Judgement& judgement) {
  const bool is_open = judgement.opinion == gate::Opinion::undecided && judgement.high && judgement.floor;
  if (!is_open || *judgement.high > 1 + *judgement.floor) return;
  judgement.opinion = gate::Opinion::same;
  judgement.reason.clear();
}

}  // namespace

bool may_be_better(const Found& found) {
  return found.state == Found::State::judged && found.cell.judgement.low.value_or(0) > kLeastGain;
}

std::span<const Collective> collectives() {
  static const std::vector<Collective> list = [] {
    std::vector<Collective> all;
    for (const Collective one : every_collective()) {
      if (!has_counts(one) && !has_window(one) && algorithms_of(one).size() > 1) all.push_back(one);
    }
    return all;
  }();
  return list;
}

Result<guidelines::Plan> plan_of(const Sweep& sweep, const TakenOf& taken_of) {
  Sweep every = sweep;
  every.algorithms = {std::string(kAll)};
  TUTTI_ASSIGN_OR_RETURN(const Expansion expansion, expand(every));
  guidelines::Plan plan;
  for (const Cell& cell : expansion.cells) {
    if (cell.bytes == 0 && has_data(cell.collective)) continue;
    std::vector<Case> cases = cases_of_cell(cell, every, taken_of);
    if (cases.size() < 2) continue;
    const std::size_t at = plan.cells.size();
    for (std::size_t other = 1; other < cases.size(); ++other) {
      plan.comparisons.push_back(
          {.guideline = fmt::format("{} {}: {} <= {}", to_string(cell.collective), buffers_name(cell),
                                    cases.front().algorithm, cases[other].algorithm),
           .native = {.cell = at, .at = 0},
           .other = {.cell = at, .at = other}});
    }
    plan.cells.push_back(std::move(cases));
  }
  return plan;
}

std::vector<Finding> findings_of(const guidelines::Plan& plan, const Measured& first, const Measured& again) {
  const auto by_cell = found_by_cell(plan, first, again);
  std::vector<Finding> findings;
  for (std::size_t cell = 0; cell < plan.cells.size(); ++cell) {
    const std::vector<Case>& cases = plan.cells[cell];
    Finding finding{.taken = cases.front(), .chosen = cases.front(), .is_measured = true};
    bool is_compared = false;
    const auto found = by_cell.find(cell);
    for (std::size_t other = 0; found != by_cell.end() && other < found->second.size(); ++other) {
      const Found& one = found->second[other];
      if (one.state != Found::State::judged) continue;  // this machine cannot run it so
      is_compared = true;
      if (!one.cell.judgement.low && finding.is_measured) {
        finding.is_measured = false;
        finding.lack = one.cell.judgement.reason;
      }
      const std::optional<Gain> gain = gain_of(one);
      if (!gain || gain->low < kLeastGain || (finding.gain && gain->low <= finding.gain->low)) continue;
      finding.gain = gain;
      finding.chosen = cases[other + 1];
    }
    if (!is_compared) {
      finding.is_measured = false;
      finding.lack = "nothing else was measured";
    }
    const Measured::Side* const side = first.find(case_id(cases.front()), case_id(finding.chosen));
    if (side != nullptr) finding.chosen_us = side->row.time_median;
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<TableRow> rows_of(const guidelines::Plan& plan, std::span<const Finding> findings, const TableOf& of) {
  // The sizes of a collective on some ranks are those that its cells come to.
  std::map<std::tuple<Collective, int, Buffers>, std::vector<std::int64_t>> sizes;
  for (const std::vector<Case>& cell : plan.cells) {
    const Case& one = cell.front();
    append_new(sizes[{one.collective, one.ranks, one.buffers}], one.bytes);
  }
  for (auto& [_, list] : sizes) std::ranges::sort(list);
  std::vector<TableRow> rows;
  for (const Finding& finding : findings) {
    const Case& one = finding.taken;
    const auto chosen = find_tuned(one.collective, finding.chosen.algorithm);
    if (!finding.is_measured || !chosen.is_ok()) continue;
    const std::vector<std::int64_t>& list = sizes[{one.collective, one.ranks, one.buffers}];
    const auto at = std::ranges::find(list, one.bytes) - list.begin();
    TableRow row{.collective = one.collective,
                 .is_crowded = one.ranks > of.cores,
                 .algorithm = chosen.value().algorithm,
                 .tuning = chosen.value().tuning,
                 .otherwise = one.algorithm,
                 .record = of.record};
    cover_bytes(row, list, static_cast<std::size_t>(at));
    cover_ranks(row, of.ranks, one.ranks);
    if (has_data(one.collective)) row.buffers = one.buffers;
    if (finding.gain) {
      row.gain = fmt::format("{:.3f}", finding.gain->middle);
      row.gain_low = fmt::format("{:.3f}", finding.gain->low);
      row.gain_high = fmt::format("{:.3f}", finding.gain->high);
    }
    if (finding.chosen_us) row.time_us = fmt::format("{:.4g}", *finding.chosen_us);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<gate::GateCell> fits_of(const guidelines::Plan& plan, const Measured& first, const Measured& again) {
  std::vector<gate::GateCell> cells;
  auto by_cell = found_by_cell(plan, first, again);
  for (auto& [cell, found] : by_cell) {
    const Found* gravest = nullptr;
    for (Found& one : found) {
      if (one.state != Found::State::judged) continue;
      settle(one.cell.judgement);
      if (gravest == nullptr || gravity_of(one) > gravity_of(*gravest)) gravest = &one;
    }
    if (gravest != nullptr) cells.push_back(gravest->cell);
  }
  return cells;
}

}  // namespace tutti::harness::tune

// SPDX-License-Identifier: Apache-2.0
#include "harness/guidelines/guidelines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "harness/cases/compositions.h"
#include "harness/cases/sweep.h"
#include "harness/gate/pairs.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::guidelines {
namespace {

constexpr std::array kCollectives{Collective::broadcast,      Collective::reduce,     Collective::all_reduce,
                                  Collective::gather,         Collective::all_gather, Collective::scatter,
                                  Collective::reduce_scatter, Collective::all_to_all};

/// Of as many bytes, more ranks do more: each rank has whole buffers.
bool is_monotone_in_ranks(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::broadcast ||
         collective == Collective::reduce;
}

std::string guideline_text(Collective collective, std::string_view other) {
  return fmt::format("{} <= {}", to_string(collective), other);
}

/// With the same work but for the number of ranks.
bool differ_in_ranks_only(Case one, const Case& other) {
  one.ranks = other.ranks;
  one.algorithm = other.algorithm;
  return one == other;
}

/// The native call and everything that it is compared with on the same ranks.
void add_cell(Plan& plan, const Case& native) {
  const std::size_t cell = plan.cells.size();
  std::vector<Case> cases{native};
  const auto compare = [&](Case other, std::string_view name) {
    plan.comparisons.push_back({.guideline = guideline_text(native.collective, name),
                                .native = {.cell = cell, .at = 0},
                                .other = {.cell = cell, .at = cases.size()}});
    cases.push_back(std::move(other));
  };
  for (const Composition& one : kCompositions) {
    if (one.of != native.collective) continue;
    Case composed = native;
    composed.backend += fmt::format("{}{}", kPartSeparator, one.name);
    composed.algorithm = kNone;
    compare(std::move(composed), one.name);
  }
  if (native.bytes <= std::numeric_limits<std::int64_t>::max() / 2) {
    Case larger = native;
    set_bytes(larger, 2 * native.bytes);
    compare(std::move(larger), "larger");
  }
  plan.cells.push_back(std::move(cases));
}

void compare_ranks(Plan& plan) {
  for (std::size_t few = 0; few < plan.cells.size(); ++few) {
    const Case& native = plan.cells[few].front();
    if (!is_monotone_in_ranks(native.collective)) continue;
    for (std::size_t many = few + 1; many < plan.cells.size(); ++many) {
      const Case& other = plan.cells[many].front();
      if (other.ranks <= native.ranks || !differ_in_ranks_only(native, other)) continue;
      plan.comparisons.push_back({.guideline = guideline_text(native.collective, "more ranks"),
                                  .native = {.cell = few, .at = 0},
                                  .other = {.cell = many, .at = 0}});
      break;  // the next number of ranks
    }
  }
}

const Case& case_at(std::span<const std::vector<Case>> cells, const Place& place) {
  return cells[place.cell][place.at];
}

const Measured::Side* side_of(const Measured& measured, std::span<const std::vector<Case>> cells, const Place& place) {
  return measured.find(case_id(cells[place.cell].front()), case_id(case_at(cells, place)));
}

/// What a row says whatever its time is; empty: its time counts. `missing` of a row that is there and is not right.
struct Verdicts {
  std::string wrong;
  std::string missing;
  std::string skipped;

  void add(const Measured::Side* side, const std::string& system) {
    if (side == nullptr) {
      missing = fmt::format("{}: it was not measured", system);
    } else if (side->row.verdict == Verdict::wrong) {
      wrong = fmt::format("{}: {}", system, side->row.reason);
    } else if (side->row.verdict == Verdict::skipped) {
      skipped = side->row.reason;
    } else if (side->row.verdict != Verdict::ok) {
      missing = fmt::format("{}: {}: {}", system, to_string(side->row.verdict), side->row.reason);
    }
  }
};

/// The blocks of both sides in one round are a pair.
void add_pairs(const Measured::Side& native, const Measured::Side& other, std::vector<double>& log_ratios,
               Evidence& evidence) {
  std::map<int, double> theirs;
  for (const BlockMedian& one : other.medians.of_rounds) theirs[one.round] = one.median_us;
  for (const BlockMedian& one : native.medians.of_rounds) {
    const auto pair = theirs.find(one.round);
    if (pair == theirs.end()) continue;
    log_ratios.push_back(std::log(one.median_us / pair->second));
    evidence.this_us.push_back(one.median_us);
    evidence.other_us.push_back(pair->second);
    evidence.operations.push_back(native.medians.operations);
  }
}

void note_state(const Measured::Side& native, const Measured::Side& other, Evidence& evidence) {
  if (saw_one_state(state_of(native.row), state_of(other.row))) return;
  evidence.invalid = fmt::format(
      "the two launches saw different states of the machine: the round trip of a cache line "
      "took {:.0f} and {:.0f} ns",
      *state_of(native.row), *state_of(other.row));
}

}  // namespace

std::span<const Collective> collectives() { return kCollectives; }

Result<Plan> plan_of(const Sweep& sweep) {
  TUTTI_ASSIGN_OR_RETURN(const Expansion expansion, expand(sweep));
  Plan plan;
  for (const Cell& cell : expansion.cells) {
    if (cell.bytes == 0) continue;
    for (const Case& native : cases_of(cell, sweep)) add_cell(plan, native);
  }
  compare_ranks(plan);
  return plan;
}

const Measured::Side* Measured::find(const std::string& cell, const std::string& case_id) const {
  const auto sides = of_.find(cell);
  if (sides == of_.end()) return nullptr;
  const auto side = sides->second.find(case_id);
  return side == sides->second.end() ? nullptr : &side->second;
}

Found judge_comparison(const Comparison& comparison, std::span<const std::vector<Case>> cells, const Measured& first,
                       const Measured* again) {
  const Case& native_case = case_at(cells, comparison.native);
  const Case& other_case = case_at(cells, comparison.other);
  const Measured::Side* const native = side_of(first, cells, comparison.native);
  const Measured::Side* const other = side_of(first, cells, comparison.other);
  Verdicts verdicts;
  verdicts.add(other, other_case.backend);
  verdicts.add(native, native_case.backend);
  if (!verdicts.skipped.empty()) return {.state = Found::State::left_out, .reason = verdicts.skipped};
  Evidence evidence{.cell = fmt::format("{}/{}/P{}/{}B", comparison.guideline, native_case.backend, native_case.ranks,
                                        native_case.bytes),
                    .collective = std::string(to_string(native_case.collective)),
                    .bytes = native_case.bytes,
                    .wrong = verdicts.wrong,
                    .missing = verdicts.missing,
                    .pairs_of = "blocks",
                    .this_case = case_id(native_case),
                    .other_case = case_id(other_case)};
  if (native != nullptr && other != nullptr) {
    note_disturbances(evidence, std::span(&native->row, 1));
    note_disturbances(evidence, std::span(&other->row, 1));
    add_pairs(*native, *other, evidence.log_ratios, evidence);
    if (comparison.native.cell != comparison.other.cell) note_state(*native, *other, evidence);
  }
  if (again == nullptr) {
    Judgement judgement = judge(evidence);
    return {.cell = {.evidence = std::move(evidence), .judgement = std::move(judgement)}};
  }
  const Measured::Side* const native_again = side_of(*again, cells, comparison.native);
  const Measured::Side* const other_again = side_of(*again, cells, comparison.other);
  if (native_again != nullptr && other_again != nullptr) {
    Verdicts once_more;
    once_more.add(other_again, other_case.backend);
    once_more.add(native_again, native_case.backend);
    if (evidence.wrong.empty()) evidence.wrong = once_more.wrong;
    add_pairs(*native_again, *other_again, evidence.confirmation, evidence);
  }
  Judgement judgement = judge_finally(evidence);
  return {.cell = {.evidence = std::move(evidence), .judgement = std::move(judgement)}};
}

std::vector<std::vector<Case>> cells_to_confirm(std::span<const Comparison> comparisons,
                                                std::span<const std::vector<Case>> cells) {
  std::map<std::size_t, std::set<std::size_t>> needed;
  for (const Comparison& one : comparisons) {
    needed[one.native.cell].insert(one.native.at);
    needed[one.other.cell].insert(one.other.at);
  }
  std::vector<std::vector<Case>> kept;
  for (const auto& [cell, places] : needed) {
    std::vector<Case>& cases = kept.emplace_back();
    for (const std::size_t at : places) cases.push_back(cells[cell][at]);
  }
  return kept;
}

}  // namespace tutti::harness::guidelines

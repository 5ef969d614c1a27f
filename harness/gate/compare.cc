// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "harness/gate/pairs.h"
#include "harness/record/launches.h"
#include "harness/record/unusual.h"
#include "harness/statistics/two_samples.h"
#include "harness/text/counted.h"
#include "impl/types/names.h"

namespace tutti::harness::gate {
namespace {

using Rows = std::vector<const Row*>;

/// The rows of one cell, of one system under one starter.
struct Compared {
  Rows mine;
  Rows other;
};

/// What a cell is known by; `algorithm` is empty where a side has one only.
using Key = std::tuple<std::string, std::string, std::string, std::string>;

Key key_of(const Row& row) { return {cell_of_case(row.case_id), row.starter, row.backend, row.algorithm}; }

Key without_algorithm(const Key& key) { return {std::get<0>(key), std::get<1>(key), std::get<2>(key), ""}; }

/// In the order of the other side's rows; what only this side has comes last.
std::vector<Compared> cells_of(const ResultSide& mine, const ResultSide& other) {
  std::set<Key> several;  // cells of which a side has more than one algorithm
  for (const ResultSide* side : {&mine, &other}) {
    std::map<Key, std::set<std::string>> algorithms;
    for (const Row& row : side->rows) algorithms[without_algorithm(key_of(row))].insert(row.algorithm);
    for (const auto& [key, names] : algorithms) {
      if (names.size() > 1) several.insert(key);
    }
  }
  std::vector<Compared> cells;
  std::map<Key, std::size_t> places;
  const auto cell_of = [&](const Row& row) -> Compared& {
    const Key key = key_of(row);
    const Key short_key = without_algorithm(key);
    const auto [at, is_new] = places.try_emplace(several.contains(short_key) ? key : short_key, cells.size());
    if (is_new) cells.emplace_back();
    return cells[at->second];
  };
  for (const Row& row : other.rows) cell_of(row).other.push_back(&row);
  for (const Row& row : mine.rows) cell_of(row).mine.push_back(&row);
  return cells;
}

std::string name_of(const Compared& cell) {
  const Row& row = cell.mine.empty() ? *cell.other.front() : *cell.mine.front();
  const bool is_one_case = cell.mine.empty() || cell.other.empty() || cell.other.front()->case_id == row.case_id;
  std::string name = is_one_case ? row.case_id : cell_of_case(row.case_id);
  if (!is_one_case) name.insert(std::min(name.find('/'), name.size()), "/" + row.backend);
  return row.starter.empty() || row.starter == kOwnSpawn ? name : fmt::format("{} under {}", name, row.starter);
}

/// Why a row's time says nothing; empty: it does.
std::string why_not_right(const Row& row) {
  if (row.verdict == Verdict::unchecked) return "the result was not verified";
  if (row.verdict != Verdict::ok) {
    return fmt::format("{}{}{}", to_string(row.verdict), row.reason.empty() ? "" : ": ", row.reason);
  }
  return {};
}

std::string conditions_text(const Row& row) {
  std::string text;
  for (const Unusual& one : unusual_conditions(row)) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.words);
  return text.empty() ? "usual conditions" : text;
}

/// Why the two sides cannot be compared, whatever their times are; empty: they can.
std::string difference_of_sides(const Compared& cell, const ResultSide& mine, const ResultSide& other) {
  for (const auto& [side, rows] : {std::pair{&mine, &cell.mine}, std::pair{&other, &cell.other}}) {
    if (rows->empty()) return fmt::format("'{}' does not have it", side->name);
    for (const Row* row : *rows) {
      const std::string why = why_not_right(*row);
      if (!why.empty()) return fmt::format("'{}': {}", side->name, shown(why));
    }
  }
  const std::string conditions = conditions_text(*cell.other.front());
  for (const Rows* rows : {&cell.other, &cell.mine}) {
    for (const Row* row : *rows) {
      const std::string its = conditions_text(*row);
      if (its != conditions)
        return fmt::format("it was measured under {}, and under {}", shown(conditions), shown(its));
    }
  }
  return {};
}

/// The launches of both sides that saw one state of the machine: the state of which both have most.
Compared of_one_state(const Compared& cell) {
  const auto seen_with = [&](const Row& centre) {
    Compared seen;
    const auto is_alike = [&](const Row* row) { return saw_one_state(state_of(*row), state_of(centre)); };
    std::ranges::copy_if(cell.mine, std::back_inserter(seen.mine), is_alike);
    std::ranges::copy_if(cell.other, std::back_inserter(seen.other), is_alike);
    return seen;
  };
  const auto size = [](const Compared& seen) {
    return std::pair(std::min(seen.mine.size(), seen.other.size()), seen.mine.size() + seen.other.size());
  };
  Compared best;
  for (const Rows* rows : {&cell.other, &cell.mine}) {
    for (const Row* row : *rows) {
      Compared seen = seen_with(*row);
      if (size(seen) > size(best)) best = std::move(seen);
    }
  }
  return best;
}

/// Whether others had the cores: what differs may then be theirs.
bool had_company(const Row* row) { return is_disturbed_by(*row, "load") || is_disturbed_by(*row, "steal"); }
bool has_time(const Row* row) { return row->time_median && *row->time_median > 0; }
bool was_left_alone(const Row* row) { return !had_company(row); }

/// The launches of both sides for which `holds`.
Compared only_where(const Compared& cell, bool (*holds)(const Row* row)) {
  Compared kept;
  std::ranges::copy_if(cell.mine, std::back_inserter(kept.mine), holds);
  std::ranges::copy_if(cell.other, std::back_inserter(kept.other), holds);
  return kept;
}

bool is_one_measurement(const Compared& cell) {
  return std::ranges::equal(cell.mine, cell.other, [](const Row* a, const Row* b) {
    return !a->timestamp.empty() && a->timestamp == b->timestamp && a->launch == b->launch &&
           a->time_median == b->time_median;
  });
}

std::string line_text(const Rows& rows) {
  std::vector<double> lines;
  for (const Row* row : rows) {
    if (const auto trip = state_of(*row)) lines.push_back(*trip);
  }
  return lines.empty() ? "an unknown time" : fmt::format("{:.0f} ns", median_of(std::move(lines)));
}

std::vector<double> logs_of(const std::vector<double>& times) {
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  return logs;
}

/// What the times of launches of one state say.
Judgement judge_times(const Compared& cell, const Compared& alike, Evidence& evidence) {
  for (const Row* row : alike.mine) evidence.this_us.push_back(*row->time_median);
  for (const Row* row : alike.other) evidence.other_us.push_back(*row->time_median);
  for (const Row* row : alike.mine) evidence.operations.push_back(static_cast<double>(row->operations));
  const Shift shift = shift_between(logs_of(evidence.this_us), logs_of(evidence.other_us), kGateConfidence);
  if (!shift.low) {
    const std::size_t dropped = cell.mine.size() + cell.other.size() - alike.mine.size() - alike.other.size();
    return {
        .opinion = Opinion::undecided,
        .ratio = std::exp(shift.middle),
        .reason = fmt::format("{} against {}{}: too few for an interval of {:.0f} %; `tutti run --launches 6` gives "
                              "enough",
                              counted(alike.mine.size(), "launch", "es"), alike.other.size(),
                              dropped == 0 ? "" : " that others did not disturb, in one state of the machine",
                              100 * kGateConfidence)};
  }
  const std::string of = fmt::format("{} and {}", alike.mine.size(), counted(alike.other.size(), "launch", "es"));
  return judge_interval(evidence, {.middle = shift.middle, .low = *shift.low, .high = *shift.high}, of);
}

Judgement judge_cell(const Compared& cell, const ResultSide& mine, const ResultSide& other, Evidence& evidence) {
  const std::string difference = difference_of_sides(cell, mine, other);
  if (!difference.empty()) return {.opinion = Opinion::invalid, .reason = difference};
  const bool is_one = is_one_measurement(cell);
  const Compared timed = only_where(cell, has_time);
  for (const auto& [side, rows] : {std::pair{&mine, &timed.mine}, std::pair{&other, &timed.other}}) {
    if (rows->empty()) {
      return {.opinion = Opinion::invalid, .reason = fmt::format("'{}': no time was measured", side->name)};
    }
  }
  const Compared alone = is_one ? timed : only_where(timed, was_left_alone);
  for (const auto& [side, rows] : {std::pair{&mine, &alone.mine}, std::pair{&other, &alone.other}}) {
    if (!rows->empty()) continue;
    Judgement judgement = judge_times(timed, timed, evidence);  // what there is, for the table
    judgement.opinion = Opinion::undecided;
    judgement.reason =
        fmt::format("no launch of '{}' was without others on its cores: what differs may be theirs", side->name);
    return judgement;
  }
  const Compared alike = of_one_state(alone);
  if (alike.mine.empty() || alike.other.empty()) {
    return {.opinion = Opinion::invalid,
            .reason = fmt::format("no launch of one saw a state of the machine that a launch of the other did: the "
                                  "round trip of a cache line took {} and {}",
                                  line_text(cell.other), line_text(cell.mine))};
  }
  Judgement judgement = judge_times(cell, alike, evidence);
  if (is_one) {
    judgement.opinion = Opinion::same;
    judgement.reason = "it is the same measurement";
  } else if (judgement.opinion == Opinion::too_short) {
    judgement.opinion = Opinion::undecided;
    judgement.reason = "too short to be judged: " + judgement.reason;
  }
  const std::string& algorithm = cell.mine.front()->algorithm;
  if (algorithm != cell.other.front()->algorithm) {
    judgement.reason += fmt::format("{}algorithm {}, of the other {}", judgement.reason.empty() ? "" : "; ",
                                    shown(algorithm), shown(cell.other.front()->algorithm));
  }
  return judgement;
}

bool is_wrong(const Row* row) { return row->verdict == Verdict::wrong; }
bool is_right(const Row* row) { return row->verdict == Verdict::ok; }

void note_rows(Evidence& evidence, const Rows& rows) {
  for (const Row* row : rows) note_disturbances(evidence, std::span(row, 1));
}

}  // namespace

GateReport compare_results(const ResultSide& mine, const ResultSide& other) {
  GateReport report{.kind = GateReport::Kind::compare, .mine = mine.name, .other = other.name};
  for (const Compared& cell : cells_of(mine, other)) {
    const Row& row = cell.mine.empty() ? *cell.other.front() : *cell.mine.front();
    Evidence evidence{.cell = name_of(cell), .collective = row.collective, .bytes = row.bytes};
    note_rows(evidence, cell.other);
    note_rows(evidence, cell.mine);
    Judgement judgement = judge_cell(cell, mine, other, evidence);
    if (std::ranges::any_of(cell.mine, is_wrong)) report.wrong.push_back(evidence.cell);
    const bool is_lost = judgement.opinion == Opinion::invalid && std::ranges::any_of(cell.other, is_right);
    if (is_lost) report.lost.push_back(evidence.cell);
    report.cells.push_back({.evidence = std::move(evidence), .judgement = std::move(judgement)});
  }
  return report;
}

}  // namespace tutti::harness::gate

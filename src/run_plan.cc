// SPDX-License-Identifier: Apache-2.0
#include "src/run_plan.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "harness/cases/suite.h"
#include "harness/text/counted.h"
#include "harness/text/read_file.h"
#include "harness/text/streams.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Cell;

/// Without a budget: the most that a cell gets, and what cells took in the mean on two virtual cores: small ones settle
/// soon, large ones use all of it.
constexpr std::chrono::milliseconds kMostCell{3000};
constexpr std::chrono::milliseconds kSmallCell{250};
constexpr std::chrono::milliseconds kEachMebibyte{750};

std::chrono::nanoseconds usual_time(const RunPlan& plan) {
  std::chrono::nanoseconds sum{};
  for (const Cell& cell : plan.expansion.cells) {
    // More bytes than these take no longer: no product can be too large.
    const std::int64_t bytes = std::min<std::int64_t>(cell.bytes, (kMostCell / kEachMebibyte) << 20);
    const std::chrono::nanoseconds by_bytes = std::chrono::nanoseconds(kEachMebibyte) * bytes / (1 << 20);
    sum += std::min<std::chrono::nanoseconds>(kMostCell, kSmallCell + by_bytes);
  }
  return sum;
}

Status settle(Settings& settings, harness::RanksAs ranks_as) {
  TUTTI_RETURN_IF_ERROR(settle_across_hosts(settings.sweep, settings.conditions));
  return settle_backends(settings.sweep.backends, ranks_as->is_process, !settings.is_quiet);
}

void add_cell(RunPlan& plan, const Cell& cell, std::vector<Case> cases) {
  if (cases.empty()) return;
  plan.expansion.cells.push_back(cell);
  plan.cells.push_back(std::move(cases));
}

/// The cells of one contention are measured together. A system is there with an algorithm that all groups have.
void add_contention(RunPlan& plan, std::span<const Cell> cells, const harness::Sweep& sweep) {
  std::vector<std::vector<Case>> of_cells;
  for (const Cell& cell : cells) of_cells.push_back(harness::cases_of(cell, sweep));
  std::vector<Case> cases;
  for (const Case& first : of_cells.front()) {
    std::vector<Case> of_system;
    for (const std::vector<Case>& of_cell : of_cells) {
      const auto same = std::ranges::find_if(
          of_cell, [&](const Case& one) { return one.backend == first.backend && one.algorithm == first.algorithm; });
      if (same != of_cell.end()) of_system.push_back(*same);
    }
    if (of_system.size() == cells.size()) {
      cases.insert(cases.end(), of_system.begin(), of_system.end());
    } else {
      harness::leave_out(plan.expansion.left_out, fmt::format("{}, which not all groups have", first.algorithm));
    }
  }
  if (cases.empty()) return;
  plan.expansion.cells.insert(plan.expansion.cells.end(), cells.begin(), cells.end());
  plan.cells.push_back(std::move(cases));
}

Status add_sweep(RunPlan& plan, const harness::Sweep& sweep) {
  TUTTI_ASSIGN_OR_RETURN(harness::Expansion expansion, harness::expand(sweep));
  if (sweep.groups.is_any()) {
    const std::size_t each = 2 * static_cast<std::size_t>(sweep.groups.count);
    for (std::size_t i = 0; i < expansion.cells.size(); i += each) {
      add_contention(plan, std::span(expansion.cells).subspan(i, each), sweep);
    }
    expansion.cells.clear();
  }
  for (const Cell& cell : expansion.cells) add_cell(plan, cell, harness::cases_of(cell, sweep));
  std::ranges::move(expansion.left_out, std::back_inserter(plan.expansion.left_out));
  return {};
}

Result<RunPlan> plan_of_case(Settings& settings) {
  harness::Sweep& sweep = settings.sweep;
  TUTTI_ASSIGN_OR_RETURN(Case one, harness::parse_case_id(settings.case_id));
  for (harness::Counts& counts : sweep.counts) {
    TUTTI_ASSIGN_OR_RETURN(counts, in_elements(counts, sweep.counts_unit, one.dtype));
  }
  TUTTI_RETURN_IF_ERROR(complete_counts(one, sweep.counts));
  sweep.backends = {one.backend};
  sweep.algorithms = {one.algorithm};
  sweep.ranks = {one.ranks};
  sweep.ranks_as = one.ranks_as;
  sweep.transports = {one.transport};
  TUTTI_RETURN_IF_ERROR(settle(settings, one.ranks_as));
  RunPlan plan;
  add_cell(plan, one, harness::cases_of(one, sweep));
  return plan;
}

/// A sweep of the suite with what the command line says in its place.
harness::Suite::Sweep overlaid(harness::Suite::Sweep sweep, const Settings& settings) {
  for (const auto& [key, text] : settings.given) sweep.texts[key] = text;
  return sweep;
}

/// What cells that the suite names one by one do not say.
Status add_named_cell(RunPlan& plan, const Case& one, const Settings& settings) {
  TUTTI_RETURN_IF_ERROR(topology_of_cell(one, settings.conditions).status());
  harness::Sweep sweep = settings.sweep;
  sweep.algorithms = {one.algorithm};
  sweep.ranks_as = one.ranks_as;
  add_cell(plan, one, harness::cases_of(one, sweep));
  return {};
}

/// All ranks of a run are of one kind.
Status set_kind_of_ranks(const RunPlan& plan, Settings& settings) {
  std::set<harness::RanksAs> kinds;
  for (const auto& cases : plan.cells) kinds.insert(cases.front().ranks_as);
  if (kinds.size() > 1) {
    std::vector<std::string_view> names;
    for (const harness::RanksAs kind : kinds) names.push_back(to_string(kind));
    return error(Code::invalid_argument, "it has ranks as {}: a run has ranks of one kind; make a suite of each",
                 fmt::join(names, " and as "));
  }
  if (!kinds.empty()) settings.sweep.ranks_as = *kinds.begin();
  return {};
}

/// No case twice, and few ranks before many.
void tidy(RunPlan& plan) {
  std::vector<std::size_t> order(plan.cells.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return plan.cells[i].front().ranks; });
  RunPlan tidied{.expansion = {.cells = {}, .left_out = std::move(plan.expansion.left_out)}, .cells = {}};
  std::set<std::string> known;
  for (const std::size_t i : order) {
    std::erase_if(plan.cells[i], [&](const Case& one) { return !known.insert(case_id(one)).second; });
    add_cell(tidied, plan.expansion.cells[i], std::move(plan.cells[i]));
  }
  plan = std::move(tidied);
}

Result<RunPlan> plan_of_suite_text(Settings& settings, const std::string& text) {
  TUTTI_ASSIGN_OR_RETURN(const harness::Suite suite, harness::suite_from_toml(text, suite_keys()));
  if (!suite.cells.empty() && !settings.given.empty()) {
    return error(Code::invalid_argument, "its `cells` say what --{} says too: leave one of the two out",
                 settings.given.begin()->first);
  }
  RunPlan plan;
  for (const harness::Suite::Sweep& texts : suite.sweeps) {
    TUTTI_ASSIGN_OR_RETURN(const harness::Sweep sweep, sweep_of(overlaid(texts, settings), settings));
    const Status added = add_sweep(plan, sweep);
    if (!added.is_ok()) return error(added.code(), "line {}: {}", texts.line, added.message());
  }
  for (const Case& one : suite.cells) TUTTI_RETURN_IF_ERROR(add_named_cell(plan, one, settings));
  tidy(plan);
  TUTTI_RETURN_IF_ERROR(set_kind_of_ranks(plan, settings));
  return plan;
}

Result<RunPlan> plan_of_suite(Settings& settings) {
  const auto text = harness::read_file(settings.suite, harness::kMostInSuite);
  if (!text.is_ok()) return error(text.status().code(), "--suite: {}", text.status().message());
  TUTTI_RETURN_IF_ERROR(settle(settings, settings.sweep.ranks_as));
  auto plan = plan_of_suite_text(settings, text.value());
  if (plan.is_ok()) return plan;
  return error(plan.status().code(), "--suite '{}': {}", settings.suite, plan.status().message());
}

}  // namespace

Result<RunPlan> run_plan_of(Settings& settings) {
  if (!settings.case_id.empty()) return plan_of_case(settings);
  if (!settings.suite.empty()) return plan_of_suite(settings);
  TUTTI_RETURN_IF_ERROR(settle(settings, settings.sweep.ranks_as));
  RunPlan plan;
  TUTTI_RETURN_IF_ERROR(add_sweep(plan, settings.sweep));
  return plan;
}

void print_plan(const RunPlan& plan, const Settings& settings, std::size_t starters) {
  const auto launches = static_cast<std::size_t>(settings.sweep.launches) * std::max<std::size_t>(starters, 1);
  std::size_t cases = 0;
  for (const std::vector<Case>& cell : plan.cells) {
    std::vector<std::string> systems;
    for (const Case& one : cell) {
      harness::append_new(
          systems, one.algorithm == harness::kNone ? one.backend : fmt::format("{}.{}", one.backend, one.algorithm));
    }
    Case named = cell.front();
    named.backend = harness::kOwnBackend;
    named.algorithm = harness::kAuto;
    harness::print("{}  {}\n", harness::cell_id(named), fmt::join(systems, " "));
    cases += cell.size();
  }
  for (const harness::LeftOut& item : plan.expansion.left_out) {
    harness::print("# left out: {} x {}\n", item.cells, item.reason);
  }
  const auto text = [](std::chrono::nanoseconds time) { return duration_text(time.count()); };
  const std::string launches_text =
      settings.sweep.launches == 1 ? "one launch" : fmt::format("{} launches", settings.sweep.launches);
  const std::string time = settings.sweep.budget
                               ? fmt::format("at most {}, the budget", text(*settings.sweep.budget))
                               : fmt::format("about {}, at most {}", text(usual_time(plan) * launches),
                                             text(kMostCell * plan.cells.size() * launches));
  harness::print("# {}, {}, {}: {}\n", harness::counted(plan.cells.size(), "cell"), harness::counted(cases, "case"),
                 starters > 1 ? fmt::format("{} by each of {} starters", launches_text, starters) : launches_text,
                 time);
}

}  // namespace tutti::program

// SPDX-License-Identifier: Apache-2.0
#include "src/gate_plan.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "gate_suite.h"
#include "harness/cases/backend_name.h"
#include "harness/cases/lists.h"
#include "harness/cases/suite.h"
#include "harness/gate/program_run.h"
#include "harness/text/read_file.h"
#include "impl/types/number.h"
#include "src/program.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;

constexpr int kLeastBlocks = 8;  ///< fewer have no interval of 99 %
constexpr int kMostBlocks = 1000;

Status at_option(const char* option, const Status& status) {
  return status.is_ok() ? status : error(status.code(), "{}: {}", option, status.message());
}

template <class T>
Result<T> at_option(const char* option, Result<T> result) {
  return result.is_ok() ? result : at_option(option, result.status());
}

/// Launches are told a case by what `run` takes, and an id has of a file only the hash of its numbers.
Status refuse_files(std::span<const harness::Counts> counts, const std::string& where) {
  const auto is_file = [](const harness::Counts& one) { return one.pattern == harness::Pattern::file; };
  if (std::ranges::none_of(counts, is_file)) return {};
  return error(Code::invalid_argument,
               "{}: a gate cannot hand counts from a file to its launches: it takes the patterns: equal, "
               "ramp, one-heavy, zeros, random, zipf, rotating, burst, empty",
               where);
}

/// A suite's cells, sweeps first, none of them twice.
Status set_cases(const harness::Suite& suite, const GateRequest& request, GatePlan& plan) {
  Settings base = request.places;
  if (!base.has_ranks) base.sweep.ranks = {default_ranks()};
  base.sweep.backends = {std::string(harness::kOwnBackend)};
  if (!request.ranks.empty()) {
    TUTTI_ASSIGN_OR_RETURN(base.sweep.ranks, at_option("--ranks", harness::parse_ranks(request.ranks)));
  }
  for (harness::Suite::Sweep texts : suite.sweeps) {
    if (!request.ranks.empty()) texts.texts.erase("ranks");
    TUTTI_ASSIGN_OR_RETURN(const harness::Sweep sweep, sweep_of(texts, base));
    TUTTI_RETURN_IF_ERROR(refuse_files(sweep.counts, fmt::format("line {}", texts.line)));
    const auto expansion = harness::expand(sweep);
    if (!expansion.is_ok())
      return error(Code::invalid_argument, "line {}: {}", texts.line, expansion.status().message());
    for (const harness::Cell& cell : expansion.value().cells) {
      for (Case one : cases_of(cell, sweep)) harness::append_new(plan.cases, std::move(one));
    }
    const auto& left_out = expansion.value().left_out;
    plan.left_out.insert(plan.left_out.end(), left_out.begin(), left_out.end());
  }
  for (const Case& one : suite.cells) {
    TUTTI_RETURN_IF_ERROR(refuse_files(std::span(&one.counts, 1), fmt::format("cell '{}'", cell_id(one))));
    TUTTI_RETURN_IF_ERROR(topology_of_cell(one, base.conditions).status());
    harness::append_new(plan.cases, one);
  }
  if (plan.cases.size() > harness::kMostGateCells) {
    return error(Code::invalid_argument, "{} cells; a gate takes at most {}: it runs each of them {} times or more",
                 plan.cases.size(), harness::kMostGateCells, 2 * kLeastBlocks);
  }
  return {};
}

Status read_suite(const GateRequest& request, GatePlan& plan) {
  std::string text = kGateSuite;
  if (!request.suite.empty()) {
    TUTTI_ASSIGN_OR_RETURN(text, at_option("--suite", harness::read_file(request.suite, harness::kMostInSuite)));
  }
  const auto suite = harness::suite_from_toml(text, suite_keys());
  const Status status = suite.is_ok() ? set_cases(suite.value(), request, plan) : suite.status();
  if (status.is_ok() || request.suite.empty()) return status;
  return error(status.code(), "--suite '{}': {}", request.suite, status.message());
}

/// A backend, or a folder with another build.
Status set_other(const GateRequest& request, GatePlan& plan) {
  if (request.baseline.empty() == request.against.empty()) {
    return error(Code::invalid_argument,
                 "either --baseline FILE.csv or --against DIR (another build) or --against BACKEND is needed");
  }
  if (!request.baseline.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.baseline, at_option("--baseline", harness::Baseline::read(request.baseline)));
    plan.baseline->set_hosts(to_text(request.places.conditions.topology.hosts));
    plan.contest.names.other = "the baseline " + request.baseline;
    plan.contest.is_against_record = true;
    return {};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(request.against, ignored)) {
    TUTTI_ASSIGN_OR_RETURN(plan.program, at_option("--against", harness::program_of_build(request.against)));
    plan.contest.names.other = "the build in " + request.against;
    return {};
  }
  std::vector<std::string> backends = known_backends();
  if (request.against.find('{') != std::string::npos) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> named,
                           at_option("--against", parse_backends(request.against, backends)));
    TUTTI_RETURN_IF_ERROR(at_option("--against", settle_backends(named, true)));
    if (named.size() > 1) {
      return error(Code::invalid_argument, "--against: '{}' names several: did you mean '{}'?", request.against,
                   named.front());
    }
    plan.backend = plan.contest.names.other = named.front();
    return {};
  }
  std::erase(backends, std::string(harness::kOwnBackend));
  if (std::ranges::find(backends, request.against) == backends.end()) {
    if (std::ranges::find(all_references(), request.against) != all_references().end())
      return missing_backend(request.against);
    return error(Code::invalid_argument, "--against: '{}' is no folder, and no backend{}", request.against,
                 harness::backend_meant(request.against, backends));
  }
  TUTTI_RETURN_IF_ERROR(at_option("--against", examine_backends(std::vector{request.against}).at(request.against)));
  plan.backend = request.against;
  plan.contest.names.other = request.against;
  return {};
}

}  // namespace

Result<GatePlan> plan_of(const GateRequest& request) {
  GatePlan plan;
  plan.conditions = request.places.conditions;
  plan.reach = request.places.reach;
  TUTTI_RETURN_IF_ERROR(set_other(request, plan));
  TUTTI_RETURN_IF_ERROR(read_suite(request, plan));
  TUTTI_ASSIGN_OR_RETURN(const std::uint64_t blocks,
                         at_option("--blocks", parse_number<std::uint64_t>(request.blocks, "a number of blocks",
                                                                           kLeastBlocks, kMostBlocks)));
  TUTTI_ASSIGN_OR_RETURN(plan.contest.seed,
                         at_option("--seed", parse_number<std::uint64_t>(request.seed, "a seed", 0, UINT64_MAX)));
  TUTTI_ASSIGN_OR_RETURN(plan.cell_time, at_option("--cell-time", harness::parse_duration(request.cell_time)));
  TUTTI_ASSIGN_OR_RETURN(plan.timeout, at_option("--timeout", harness::parse_timeout(request.timeout)));
  if (!request.bind.empty()) TUTTI_RETURN_IF_ERROR(at_option("--bind", harness::parse_bind(request.bind).status()));
  plan.contest.least_blocks = static_cast<int>(blocks);
  plan.contest.most_blocks = 4 * plan.contest.least_blocks;
  plan.contest.is_abba = !plan.program.empty();
  plan.requires_times = request.requires_times;
  return plan;
}

}  // namespace tutti::program

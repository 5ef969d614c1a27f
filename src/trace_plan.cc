// SPDX-License-Identifier: Apache-2.0
#include "src/trace_plan.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "harness/cases/expand.h"
#include "harness/record/trace.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

/// What the file does not say, and a replay takes.
constexpr std::array<std::string_view, 19> kBesideTrace{
    "--help",          "--trace",           "--gaps",     "--ranks", "--ranks-as", "--transports",
    "--pretend-hosts", "--ranks-per-cache", "--backends", "--bind",  "--seed",     "--timeout",
    "--budget",        "--iterations",      "--csv",      "--json",  "--list",     "--require",
    "--quiet"};

}  // namespace

void add_trace_options(CLI::App& command, TraceOptions& options) {
  command
      .add_option(
          "--trace", options.file,
          "replay the calls of a CSV in the place of a sweep: a row for each step and one of the whole; its columns "
          "are step, group, operation, dtype, op, bytes, peer_bytes and gap_us, and src/README.md says what "
          "each holds")
      ->type_name("FILE");
  command.add_option("--gaps", options.gaps, "with --trace: on, wait before each call as its gap_us says; or off")
      ->type_name("on|off")
      ->capture_default_str();
}

Status check_beside_trace(const CLI::App& command, const TraceOptions& options) {
  if (options.gaps != "on" && options.gaps != "off") {
    return error(Code::invalid_argument, "--gaps: '{}' is neither on nor off: did you mean '{}'?", options.gaps,
                 options.gaps.starts_with("of") || options.gaps.starts_with("n") ? "off" : "on");
  }
  if (options.file.empty()) {
    if (command.get_option("--gaps")->count() == 0) return {};
    return error(Code::invalid_argument, "--gaps: has no meaning without --trace; leave --gaps out");
  }
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(kBesideTrace, name) != kBesideTrace.end()) continue;
    return error(Code::invalid_argument,
                 "{0}: has no meaning with --trace, whose file says what is called; leave {0} out", name);
  }
  return {};
}

Result<RunPlan> trace_plan_of(const TraceOptions& options, Settings& settings, harness::MeasureTask& task) {
  harness::Sweep& sweep = settings.sweep;
  if (sweep.ranks.size() != 1) {
    return error(Code::invalid_argument,
                 "--ranks: a trace is replayed on one number of ranks, not on {}: did you mean '{}'?",
                 fmt::join(sweep.ranks, ","), sweep.ranks.front());
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<harness::Topology> topologies, topologies_of(sweep, settings.conditions));
  if (std::ranges::all_of(topologies, &harness::Topology::on_devices)) {
    return error(Code::invalid_argument,
                 "--trace: it is replayed by ranks on the host, and not by thread blocks: did you "
                 "mean --ranks-as processes?");
  }
  TUTTI_RETURN_IF_ERROR(settle_across_hosts(sweep, settings.conditions));
  TUTTI_RETURN_IF_ERROR(settle_backends(sweep.backends, sweep.ranks_as->is_process, !settings.is_quiet));
  const std::vector<std::string> transports = harness::transports_of(sweep);
  if (transports.size() != 1) {
    return error(Code::invalid_argument, "--transports: a trace is replayed over one, not over {}: did you mean '{}'?",
                 fmt::join(transports, ","), transports.front());
  }
  auto read = harness::read_trace(options.file, sweep.ranks.front());
  if (!read.is_ok()) return error(read.status().code(), "--trace: {}", read.status().message());
  settings.conditions.has_limit = false;
  task.trace = read.value().name;
  RunPlan plan;
  for (harness::TraceCall& call : read.value().calls) {
    call.cell.ranks_as = sweep.ranks_as;
    call.cell.transport = transports.front();
    plan.cells.push_back(harness::cases_of(call.cell, sweep));
    plan.expansion.cells.push_back(call.cell);
    task.steps.push_back(call.step);
    if (options.gaps == "on") task.gaps_ns.push_back(call.gap.count());
  }
  if (options.gaps == "off") task.trace += "-without-gaps";
  return plan;
}

}  // namespace tutti::program

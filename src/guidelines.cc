// SPDX-License-Identifier: Apache-2.0
// `tutti guidelines`: does a composition of calls beat the native call?
#include "harness/guidelines/guidelines.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "harness/gate/report.h"
#include "harness/machine/clock.h"
#include "harness/record/csv.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/jobs.h"
#include "src/options.h"
#include "src/passes.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/report.h"
#include "src/request.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

namespace guidelines = harness::guidelines;

using harness::Case;
using harness::Opinion;
using harness::Row;

constexpr int kLeastRounds = 8;  ///< fewer pairs have no interval of 99 %
constexpr int kMostRounds = 1000;

struct GuidelinesRequest {
  std::string blocks = "16";
  std::string junit;
  std::string summary;
  bool fails = false;  ///< where a guideline is violated
  bool only_lists = false;
  bool is_quiet = false;
};

/// What is measured on one backend.
struct BackendPlan {
  std::string backend;
  guidelines::Plan plan;
};

/// Every collective of the list where `all` was asked for, or nothing. Errors: invalid_argument for others.
Status choose_collectives(harness::Sweep& sweep) {
  const auto known = guidelines::collectives();
  if (std::ranges::equal(sweep.collectives, all_collectives())) sweep.collectives = {known.begin(), known.end()};
  for (const Collective collective : sweep.collectives) {
    if (std::ranges::find(known, collective) != known.end()) continue;
    std::vector<std::string_view> names;
    for (const Collective one : known) names.push_back(to_string(one));
    return error(Code::invalid_argument, "no guideline is of '{}': must be one or more of {}", to_string(collective),
                 fmt::join(names, ", "));
  }
  return {};
}

Result<std::vector<BackendPlan>> plans_of(Settings& settings) {
  harness::Sweep& sweep = settings.sweep;
  TUTTI_RETURN_IF_ERROR(choose_collectives(sweep));
  for (const std::string& system : sweep.backends) {
    if (harness::instance_of(system) == system) continue;
    return error(Code::invalid_argument,
                 "--backends: '{}' is compared with its compositions already: did you mean '{}'?", system,
                 harness::instance_of(system));
  }
  TUTTI_RETURN_IF_ERROR(settle_backends(sweep.backends, sweep.ranks_as->is_process, !settings.is_quiet));
  std::ranges::sort(sweep.ranks);
  harness::Topologies topologies(settings.conditions, transport_directories());
  std::vector<BackendPlan> plans;
  for (const std::string& backend : sweep.backends) {
    harness::Sweep of_one = sweep;
    of_one.backends = {backend};
    TUTTI_ASSIGN_OR_RETURN(guidelines::Plan plan, guidelines::plan_of(of_one));
    TUTTI_ASSIGN_OR_RETURN(plan.cells, resolved(plan.cells, topologies));
    plans.push_back({.backend = backend, .plan = std::move(plan)});
  }
  return plans;
}

/// What was found, on all backends.
struct Findings {
  std::vector<harness::GateCell> cells;
  std::vector<harness::LeftOut> left_out;

  void add(guidelines::Found found) {
    if (found.state == guidelines::Found::State::judged) {
      cells.push_back(std::move(found.cell));
    } else {
      harness::leave_out(left_out, std::move(found.reason));
    }
  }
};

Findings find_all(std::span<const BackendPlan> plans, std::int64_t end_ns, Passes& passes) {
  Findings findings;
  for (std::size_t i = 0; i < plans.size() && !passes.is_interrupted(); ++i) {
    const guidelines::Plan& plan = plans[i].plan;
    if (plan.cells.empty()) continue;
    const std::int64_t own_end_ns = share_of_budget(end_ns, 1.0 / static_cast<double>(plans.size() - i));
    const TwoPasses measured = passes.run_twice(plan, own_end_ns, was_slower);
    for (const guidelines::Comparison& one : plan.comparisons) {
      findings.add(judge_comparison(one, plan.cells, measured.first, &measured.again));
    }
  }
  return findings;
}

/// Opens the files that are written at the end. Errors: invalid_argument for one that cannot be written, or that
/// another option names.
Status open_files(const GuidelinesRequest& request, const Settings& settings, harness::OutputFiles& opened) {
  const std::array<std::pair<harness::FileOption, const char*>, 5> files{
      {{{"--csv", settings.csv}, ".csv"},
       {{"--junit", request.junit}, ".junit.xml"},
       {{"--summary", request.summary}, ".summary.md"},
       {{"--json", settings.json}, ".guidelines.json"},
       {{"--html", settings.html}, ".html"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [file, ending] = files[i];
    for (std::size_t j = 0; j < i; ++j) TUTTI_RETURN_IF_ERROR(harness::check_apart(files[j].first, file, ending));
    if (file.path == harness::kStdoutPath) {
      return error(Code::invalid_argument, "{}: '-' is stdout, where the table goes: name a file", file.name);
    }
    if (i > 0) TUTTI_RETURN_IF_ERROR(opened.open(file.path));
  }
  return settings.csv.empty() ? Status() : harness::check_writable(settings.csv);
}

Status draw_page(const Settings& settings, const harness::GateReport& report, const std::vector<Row>& rows,
                 harness::OutputFiles& files) {
  const std::string name = settings.json.empty() ? "tutti guidelines" : settings.json;
  std::vector<harness::ResultFile> results;
  TUTTI_ASSIGN_OR_RETURN(results.emplace_back(), harness::result_from_text(name, gate_json(report)));
  if (!rows.empty()) results.push_back({.file = settings.csv.empty() ? "rows" : settings.csv, .rows = rows});
  const Status drawn = make_report(results, {.html = settings.html, .png = {}, .svg = {}}, files);
  return drawn.is_ok() ? drawn : error(drawn.code(), "--html: {}", drawn.message());
}

/// Each of them, whatever becomes of the others. The first failure.
Status write_reports(const GuidelinesRequest& request, const Settings& settings, const harness::GateReport& report,
                     const Passes& passes, harness::OutputFiles& files) {
  Status first;
  const auto note = [&first](Status status) {
    if (status.is_ok()) return;
    complain(status);
    if (first.is_ok()) first = std::move(status);
  };
  note(passes.csv_failure());
  note(files.replace(request.junit, gate_junit(report)));
  note(files.replace(request.summary, gate_markdown(report)));
  note(files.replace(settings.json, gate_json(report)));
  if (!settings.html.empty()) note(draw_page(settings, report, passes.rows(), files));
  console_for(settings).print(gate_table(report));  // last: an output that is closed costs no file
  return first;
}

harness::GateReport report_of(Findings findings, std::span<const BackendPlan> plans, const Settings& settings,
                              const std::string& unfinished) {
  std::vector<std::string> backends;
  for (const BackendPlan& one : plans) backends.push_back(one.backend);
  harness::GateReport report{.kind = harness::GateReport::Kind::guidelines,
                             .mine = fmt::format("native calls of {}", fmt::join(backends, ", ")),
                             .other = "calls in their place",
                             .command = command_line(),
                             .counted = {},
                             .unfinished = unfinished,
                             .seed = settings.sweep.seed,
                             .cells = std::move(findings.cells)};
  const int violated = report.count(Opinion::slower);
  report.remarks.push_back(
      violated == 0 ? std::string("no guideline is violated")
                    : fmt::format("violated: {}", harness::counted(static_cast<std::size_t>(violated), "guideline")));
  for (const harness::LeftOut& item : findings.left_out) {
    report.remarks.push_back(fmt::format("left out: {} x {}", item.cells, item.reason));
  }
  return report;
}

int list(std::span<const BackendPlan> plans) {
  std::size_t comparisons = 0, cells = 0;
  for (const BackendPlan& one : plans) {
    for (const guidelines::Comparison& comparison : one.plan.comparisons) {
      const Case& native = one.plan.cells[comparison.native.cell].front();
      harness::print("{}  {}\n", comparison.guideline, case_id(native));
    }
    comparisons += one.plan.comparisons.size();
    cells += one.plan.cells.size();
  }
  harness::print("# {} in {}, at most 30 s each; what is slower is measured once more\n",
                 harness::counted(comparisons, "comparison"), harness::counted(cells, "cell"));
  return exit_ok;
}

int exit_code_of_guidelines(const harness::GateReport& report, int of_jobs, bool fails) {
  if (report.count(Opinion::wrong) > 0) return exit_wrong;
  if (of_jobs != exit_ok) return of_jobs;
  if (report.cells.empty()) {
    return complain(error(Code::unavailable, "nothing was compared, for the reasons above"));
  }
  return fails && report.count(Opinion::slower) > 0 ? exit_slower : exit_ok;
}

int guidelines_of(const GuidelinesRequest& request, Settings& settings) {
  const auto blocks =
      of_flag("--blocks", parse_number(request.blocks, "a number of blocks", kLeastRounds, kMostRounds));
  if (!blocks.is_ok()) return complain(blocks.status());
  settings.is_quiet = request.is_quiet;
  settings.conditions.has_limit = false;
  if (!settings.has_ranks) settings.sweep.ranks = {default_ranks()};
  harness::OutputFiles files;
  if (const Status status = open_files(request, settings, files); !status.is_ok()) return complain(status);
  const auto plans = plans_of(settings);
  if (!plans.is_ok()) return complain(plans.status());
  if (request.only_lists) return list(plans.value());
  if (!settings.html.empty()) warn_without_drawing();
  const std::int64_t end_ns =
      settings.sweep.budget ? harness::monotonic_ns() + settings.sweep.budget->count() : std::int64_t{0};
  auto passes = Passes::open(settings, blocks.value(), end_ns);
  if (!passes.is_ok()) return complain(passes.status());
  Findings findings = find_all(plans.value(), end_ns, passes.value());
  const int of_jobs = passes.value().code();
  const harness::GateReport report =
      report_of(std::move(findings), plans.value(), settings, unfinished_text_of(of_jobs));
  const Status written = write_reports(request, settings, report, passes.value(), files);
  const int code = exit_code_of_guidelines(report, of_jobs, request.fails);
  return code != exit_ok || written.is_ok() ? code : exit_code_of(written);
}

}  // namespace

void add_guidelines(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("guidelines", "is a native call slower than other calls that do its work?");
  command->footer(
      "Example: tutti guidelines all_reduce --backends openmpi --ranks 2 --sizes 4K,256K --fail\n"
      "Exit codes: 0 all was judged; 1 a result is wrong; 3 nothing could be compared; 4 with --fail: a guideline is "
      "violated; 5 crash");
  auto request = std::make_shared<GuidelinesRequest>();
  auto options = std::make_shared<SweepOptions>(
      *command,
      std::vector<OptionChoice>{
          {"--sizes", "8:2M:x16"},
          {"--dtypes"},
          {"--ops"},
          {"--roots"},
          {"--ranks", "", "numbers of ranks (default: cores, at most 8); from two on, fewer are compared with more"},
          {"--ranks-as", "", "what a rank is: processes, threads, tasks"},
          {"--backends", "",
           "systems under test: tutti and the references found, in the folders that TUTTI_BACKENDS names (colons "
           "between) and beside the program"},
          {"--algorithms"},
          {"--table"},
          {"--cadence"},
          {"--budget", "",
           "time for all of it: 30s, 4m; cells that cannot be begun in it are left out (default: at most 30s a cell)"},
          {"--timeout"},
          {"--seed"},
          {"--bind"},
          {"--csv", "", "write the rows of all calls as they finish"},
          {"--json", "", "write what was found as JSON; `tutti report` makes a page of it"},
          {"--html"}},
      guidelines::collectives());
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    option->check(CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, ""));
    if (!value.empty()) option->default_str(value);
  };
  add("--blocks", request->blocks, "N", "rounds of blocks of both sides, each a pair, at least 8");
  add("--junit", request->junit, "FILE", "write JUnit XML, one case per comparison");
  add("--summary", request->summary, "FILE", "write a summary in Markdown");
  command->add_flag("--fail", request->fails, "exit code 4 where a guideline is violated");
  command->add_flag("--list", request->only_lists, "print what would be compared; run nothing");
  command->add_flag("--quiet", request->is_quiet, "no table and no progress: errors, the files and the exit code");
  command->callback([&action, request, options] {
    action = [request, options] {
      auto settings = options->settings({.known_backends = known_backends()});
      if (!settings.is_ok()) return complain(settings.status());
      return guidelines_of(*request, settings.value());
    };
  });
}

}  // namespace tutti::program

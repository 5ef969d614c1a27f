// SPDX-License-Identifier: Apache-2.0
// `tutti tune`: measures what `auto` should take on this machine, and writes it as a selection table.
#include "harness/tune/tune.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/board/binding.h"
#include "harness/cases/lists.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/record/row_stamp.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/number.h"
#include "src/options.h"
#include "src/passes.h"
#include "src/program.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

namespace guidelines = harness::guidelines;
namespace tune = harness::tune;

using harness::Case;
using harness::Opinion;

constexpr int kFewestPairs = 8;  ///< fewer pairs have no interval of 99 %
constexpr int kMostPairs = 1000;
constexpr int kMostCrowded = 16;  ///< ranks that outnumber the cores, unless others are asked for

struct TuneRequest {
  std::string blocks = "16";
  std::string out;
  std::string junit;
  std::string summary;
  bool checks = false;
  bool only_lists = false;
  bool is_quiet = false;
};

/// Powers of two up to the cores, all cores, and twice as many ranks as long as these are few.
std::vector<int> usual_ranks(int cores) {
  std::vector<int> ranks;
  for (int count = 2; count < cores; count *= 2) ranks.push_back(count);
  if (cores > 1) ranks.push_back(cores);
  int crowded = 2 * cores;
  do {
    if (crowded > 1) ranks.push_back(crowded);
    crowded *= 2;
  } while (crowded <= kMostCrowded);
  return ranks;
}

Status check_collectives(const harness::Sweep& sweep) {
  const auto known = tune::collectives();
  for (const Collective collective : sweep.collectives) {
    if (std::ranges::find(known, collective) != known.end()) continue;
    std::vector<std::string_view> names;
    for (const Collective one : known) names.push_back(to_string(one));
    return error(Code::invalid_argument, "'{}' has no choice by its size: must be one or more of {}",
                 to_string(collective), fmt::join(names, ", "));
  }
  return {};
}

Result<guidelines::Plan> plan_of(Settings& settings, harness::Topologies& topologies) {
  harness::Sweep& sweep = settings.sweep;
  TUTTI_RETURN_IF_ERROR(check_collectives(sweep));
  sweep.backends = {std::string(harness::kOwnBackend)};
  std::ranges::sort(sweep.ranks);
  Status failure;
  auto plan = tune::plan_of(sweep, [&](const Case& one) -> std::string {
    const auto topology = topologies.of(one);
    if (topology.is_ok()) {
      return harness::chosen_algorithm(one, *topology.value(), harness::cores_together(one.ranks_as));
    }
    if (failure.is_ok()) failure = topology.status();
    return std::string(harness::kAuto);
  });
  TUTTI_RETURN_IF_ERROR(failure);
  return plan;
}

/// Opens the files that are written at the end. Errors: invalid_argument for one that cannot be written, or that
/// another option names.
Status open_files(const TuneRequest& request, const Settings& settings, harness::OutputFiles& opened) {
  if (request.out.empty() && !request.checks && !request.only_lists) {
    return error(Code::invalid_argument, "--out FILE is needed: the table that is written; or --check");
  }
  if (!request.out.empty() && request.checks) {
    return error(Code::invalid_argument, "--out: --check writes no table; leave one of the two out");
  }
  const std::array<std::pair<harness::FileOption, const char*>, 6> files{
      {{{"--table", settings.table}, nullptr},
       {{"--csv", settings.csv}, ".rows.csv"},
       {{"--out", request.out}, ".table.csv"},
       {{"--junit", request.junit}, ".junit.xml"},
       {{"--summary", request.summary}, ".summary.md"},
       {{"--json", settings.json}, ".tune.json"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [file, ending] = files[i];
    if (ending == nullptr) continue;
    for (std::size_t j = 0; j < i; ++j) TUTTI_RETURN_IF_ERROR(harness::check_apart(files[j].first, file, ending));
    if (file.path == harness::kStdoutPath) {
      return error(Code::invalid_argument, "{}: '-' is stdout, where the summary goes: name a file", file.name);
    }
    if (i > 1) TUTTI_RETURN_IF_ERROR(opened.open(file.path));
  }
  return settings.csv.empty() ? Status() : harness::check_writable(settings.csv);
}

int list(const guidelines::Plan& plan) {
  std::size_t cases = 0;
  for (const std::vector<Case>& cell : plan.cells) {
    std::vector<std::string_view> names;
    for (const Case& one : cell) names.push_back(one.algorithm);
    harness::print("{}  {}\n", case_id(cell.front()), fmt::join(names, " "));
    cases += cell.size();
  }
  harness::print("# {}, {}: what is taken now comes first; what is faster is measured once more\n",
                 harness::counted(plan.cells.size(), "cell"), harness::counted(cases, "case"));
  return exit_ok;
}

/// The name of a file without its folder; empty of none.
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Lines about the cells that another choice has, and those that were not measured.
std::string summary_of(std::span<const tune::Finding> findings, const std::vector<TableRow>& rows) {
  std::string text;
  std::size_t changed = 0;
  for (const tune::Finding& one : findings) {
    if (one.chosen.algorithm == one.taken.algorithm) continue;
    ++changed;
    text += fmt::format("{}: {} in place of {}: {:.2f} times as fast, at least {:.2f}\n", harness::cell_id(one.taken),
                        one.chosen.algorithm, one.taken.algorithm, one.gain->middle, one.gain->low);
  }
  std::vector<harness::LeftOut> lacks;
  for (const tune::Finding& one : findings) {
    if (!one.is_measured) harness::leave_out(lacks, one.lack);
  }
  text += fmt::format("# {} measured, {} with another choice than before; {} not measured\n",
                      harness::counted(rows.size(), "cell"), changed, findings.size() - rows.size());
  for (const harness::LeftOut& item : lacks) text += fmt::format("# left out: {} x {}\n", item.cells, item.reason);
  return text;
}

/// What the table says of where it comes from.
std::vector<std::string> remarks_of(const Settings& settings, int cores) {
  const harness::Machine machine = harness::describe_machine();
  return {"selection table of tutti: what `auto` takes, by `tutti tune`",
          fmt::format("machine: {}, {}", machine.cpu_model, harness::counted(cores, "core")),
          fmt::format("measured: {}, {}", harness::utc_now(), command_line()),
          fmt::format("default: {}", harness::table_of(settings.conditions).id())};
}

int write_table(const TuneRequest& request, const Settings& settings, const guidelines::Plan& plan,
                const TwoPasses& measured, harness::OutputFiles& files) {
  const int cores = harness::cores_together(settings.sweep.ranks_as);
  const std::vector<tune::Finding> findings = tune::findings_of(plan, measured.first, measured.again);
  const std::vector<TableRow> rows =
      tune::rows_of(plan, findings, {.ranks = settings.sweep.ranks, .cores = cores, .record = name_of(settings.csv)});
  console_for(settings).print(summary_of(findings, rows));
  if (rows.empty()) {
    return complain(error(Code::unavailable, "nothing was measured, for the reasons above: no table is written"));
  }
  const std::string text = table_text(rows, remarks_of(settings, cores));
  const Status written = files.replace(request.out, text);
  if (!written.is_ok()) return complain(written);
  const auto table = SelectionTable::parse(name_of(request.out), text);
  if (!table.is_ok()) return complain(table.status());
  console_for(settings).print(fmt::format("# table {} in '{}': --table takes it, or {}\n", table.value().id(),
                                          shown(request.out), harness::kTableVariable));
  return exit_ok;
}

int check_table(const TuneRequest& request, const Settings& settings, const guidelines::Plan& plan,
                const TwoPasses& measured, const Passes& passes, harness::OutputFiles& files) {
  harness::GateReport report{.kind = harness::GateReport::Kind::tune,
                             .mine = harness::table_of(settings.conditions).id(),
                             .other = "what else there is",
                             .command = command_line(),
                             .counted = {},
                             .unfinished = unfinished_text_of(passes.code()),
                             .seed = settings.sweep.seed,
                             .cells = tune::fits_of(plan, measured.first, measured.again)};
  const int slower = report.count(Opinion::slower);
  report.remarks.push_back(slower == 0 ? fmt::format("table {} fits where it is decided", report.mine)
                                       : fmt::format("table {} no longer fits {}", report.mine,
                                                     harness::counted(static_cast<std::size_t>(slower), "cell")));
  Status first;
  for (const auto& [path, text] :
       {std::pair(&request.junit, gate_junit(report)), std::pair(&request.summary, gate_markdown(report)),
        std::pair(&settings.json, gate_json(report))}) {
    const Status written = files.replace(*path, text);
    if (written.is_ok()) continue;
    complain(written);
    if (first.is_ok()) first = written;
  }
  console_for(settings).print(gate_table(report));
  const int code = exit_code_of_gate(report, passes.code() == exit_crash);
  return code != exit_ok || first.is_ok() ? code : exit_code_of(first);
}

int tune_of(const TuneRequest& request, Settings& settings) {
  const auto blocks =
      of_flag("--blocks", parse_number(request.blocks, "a number of blocks", kFewestPairs, kMostPairs));
  if (!blocks.is_ok()) return complain(blocks.status());
  settings.is_quiet = request.is_quiet;
  settings.conditions.has_limit = false;
  if (!settings.has_ranks) settings.sweep.ranks = usual_ranks(harness::cores_together(settings.sweep.ranks_as));
  harness::OutputFiles files;
  if (const Status status = open_files(request, settings, files); !status.is_ok()) return complain(status);
  harness::Topologies topologies(settings.conditions, transport_directories());
  const auto plan = plan_of(settings, topologies);
  if (!plan.is_ok()) return complain(plan.status());
  if (request.only_lists) return list(plan.value());
  if (plan.value().cells.empty()) {
    return complain(error(Code::invalid_argument, "there is one way only to run this: nothing is to be measured"));
  }
  const std::int64_t end_ns =
      settings.sweep.budget ? harness::monotonic_ns() + settings.sweep.budget->count() : std::int64_t{0};
  auto passes = Passes::open(settings, blocks.value(), end_ns);
  if (!passes.is_ok()) return complain(passes.status());
  const TwoPasses measured =
      passes.value().run_twice(plan.value(), end_ns, request.checks ? was_slower : tune::may_be_better);
  if (!passes.value().csv_failure().is_ok()) complain(passes.value().csv_failure());
  const auto& rows = passes.value().rows();
  const auto is_wrong = [](const harness::Row& row) { return row.verdict == harness::Verdict::wrong; };
  const auto wrong = std::ranges::find_if(rows, is_wrong);
  if (wrong != rows.end() && !request.checks) {
    complain(error(Code::mismatch, "{}: {}: no table is written", wrong->case_id, wrong->reason));
    return exit_wrong;
  }
  if (request.checks) return check_table(request, settings, plan.value(), measured, passes.value(), files);
  if (passes.value().code() != exit_ok) return passes.value().code();  // half a table is none
  return write_table(request, settings, plan.value(), measured, files);
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("tune", "measures this machine, and writes the table by which `auto` chooses");
  command->footer(
      "Example: tutti tune --budget 10m --out mine.csv, then tutti run --table mine.csv\n"
      "Exit codes: 0 the table is written, or with --check fits; 1 a result is wrong; 3 nothing could be measured; "
      "with "
      "--check 4 a cell is slower than it could be, 6 undecided, too noisy; 5 crash");
  auto request = std::make_shared<TuneRequest>();
  auto options = std::make_shared<SweepOptions>(
      *command,
      std::vector<OptionChoice>{
          {"--sizes", "8:2M:x16"},
          {"--dtypes"},
          {"--ops"},
          {"--ranks", "",
           "numbers of ranks (default: powers of two up to the cores, the cores, and twice as many and more up to 16)"},
          {"--ranks-as", "", "what a rank is: processes, threads, tasks"},
          {"--buffers", "private,shared"},
          {"--cadence"},
          {"--table", "",
           "the table that is the default, or that --check is of (default: TUTTI_TABLE, or what is built in)"},
          {"--budget", "10m", "time for all of it; cells that cannot be begun in it get no row"},
          {"--timeout"},
          {"--seed"},
          {"--bind"},
          {"--csv", "", "write the rows of all cases as they finish"},
          {"--json", "", "with --check: write what was found as JSON; `tutti report` makes a page of it"}},
      tune::collectives());
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    option->check(CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, ""));
    if (!value.empty()) option->default_str(value);
  };
  add("--blocks", request->blocks, "N", "rounds of blocks of all ways, each of which gives pairs, at least 8");
  add("--out", request->out, "FILE", "write the table");
  add("--junit", request->junit, "FILE", "with --check: write JUnit XML, one case per cell");
  add("--summary", request->summary, "FILE", "with --check: write a summary in Markdown");
  command->add_flag("--check", request->checks, "say whether the table still fits this machine; write none");
  command->add_flag("--list", request->only_lists, "print what would be measured; run nothing");
  command->add_flag("--quiet", request->is_quiet, "no summary and no progress: errors, the files and the exit code");
  command->callback([&action, request, options] {
    action = [request, options] {
      auto settings = options->settings({.known_backends = {std::string(harness::kOwnBackend)}});
      if (!settings.is_ok()) return complain(settings.status());
      return tune_of(*request, settings.value());
    };
  });
}

}  // namespace tutti::program

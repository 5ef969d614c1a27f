// SPDX-License-Identifier: Apache-2.0
// `tutti check repeat`: the same input over fresh launches, backends and algorithms: the same bits, or the first call,
// rank, element and bit that differ.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "harness/cases/expand.h"
#include "harness/cases/lists.h"
#include "harness/machine/clock.h"
#include "harness/record/launches.h"
#include "harness/repeat/repeats.h"
#include "harness/text/counted.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "src/jobs.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/request.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Row;
using harness::Verdict;

/// What this process keeps: the first result of each system, of all ranks.
constexpr std::int64_t kMostKept = std::int64_t{1} << 30U;

struct RepeatOptions {
  int calls = 2;
  std::string json;
};

/// What the rows say of the results themselves.
struct Verdicts {
  std::int64_t ok = 0;
  std::int64_t wrong = 0;
  std::int64_t errors = 0;
  std::map<std::string, std::int64_t> skipped;  ///< by backend and reason

  void add(const Row& row, harness::Console& console) {
    if (row.verdict == Verdict::ok) ++ok;
    if (row.verdict == Verdict::wrong) ++wrong;
    if (row.verdict == Verdict::error) ++errors;
    if (row.verdict == Verdict::skipped) ++skipped[fmt::format("{}: {}", row.backend, row.reason)];
    if (row.verdict != Verdict::wrong && row.verdict != Verdict::error) return;
    console.print(fmt::format("{}  {}\n  {}\n", to_string(row.verdict), row.case_id, row.reason));
  }
};

/// Errors: invalid_argument for results of which this process cannot keep one of each.
Status check_sizes(const std::vector<std::vector<Case>>& cells) {
  std::int64_t kept = 0;
  for (const std::vector<Case>& cell : cells) {
    for (const Case& one : cell) {
      const std::int64_t bytes = harness::largest_buffer_bytes(one);
      if (bytes > static_cast<std::int64_t>(harness::kMostResultBytes)) {
        return error(Code::invalid_argument, "--sizes: {} is more than the {} of a result that are compared bit by bit",
                     harness::format_bytes(bytes), harness::format_bytes(harness::kMostResultBytes));
      }
      kept += bytes * one.ranks;
      if (kept <= kMostKept) continue;
      return error(Code::invalid_argument,
                   "--sizes: the first results of all systems and ranks are kept, and are more than {}: name fewer or "
                   "smaller sizes, fewer collectives or algorithms",
                   harness::format_bytes(kMostKept));
    }
  }
  return {};
}

/// The cells of the sweep, with all systems in each.
Result<harness::Expansion> cells_of(Settings& settings, std::vector<std::vector<Case>>& cells) {
  harness::Sweep& sweep = settings.sweep;
  std::erase_if(sweep.collectives, [](Collective one) { return !has_data(one); });
  if (sweep.collectives.empty()) {
    return error(Code::invalid_argument,
                 "a barrier has no result: name a collective that has data, such as all_reduce");
  }
  TUTTI_RETURN_IF_ERROR(settle_across_hosts(sweep, settings.conditions));
  TUTTI_RETURN_IF_ERROR(settle_backends(sweep.backends, sweep.ranks_as->is_process));
  TUTTI_ASSIGN_OR_RETURN(harness::Expansion expansion, harness::expand(sweep));
  for (const harness::Cell& cell : expansion.cells) {
    std::vector<Case> cases = harness::cases_of(cell, sweep);
    if (!cases.empty()) cells.push_back(std::move(cases));
  }
  TUTTI_RETURN_IF_ERROR(check_sizes(cells));
  return expansion;
}

int conclude(const std::vector<harness::OfCell>& cells, const Verdicts& verdicts, harness::Console& console) {
  std::size_t systems = 0;
  std::int64_t results = 0, differ = 0, may_differ = 0, must_equal = 0;
  for (const harness::OfCell& cell : cells) {
    console.print(text_of(cell));
    systems += cell.systems.size();
    for (const harness::OfSystem& system : cell.systems) {
      results += system.results;
      differ += system.differ;
      if (system.from_other) ++(cell.may_differ ? may_differ : must_equal);
    }
  }
  console.print(fmt::format(
      "# repeat: {} of {}: {} compared with the first of its system, {} differ and must be equal; between systems {} "
      "differ and must be equal, {} differ and may\n",
      harness::counted(systems, "system"), harness::counted(cells.size(), "cell"), harness::counted(results, "result"),
      differ, must_equal, may_differ));
  for (const auto& [reason, rows] : verdicts.skipped) console.print(fmt::format("# skipped: {} x {}\n", rows, reason));
  if (verdicts.wrong > 0 || count_wrong(cells) > 0) return exit_wrong;
  if (verdicts.errors > 0) return exit_crash;
  if (results > 0) return exit_ok;
  return complain(error(Code::unavailable, "nothing was compared: no result came twice"));
}

int repeat(const SweepOptions& options, const RepeatOptions& asked) {
  auto parsed = options.settings({.known_backends = known_backends()});
  if (!parsed.is_ok()) return complain(parsed.status());
  Settings& settings = parsed.value();
  if (asked.calls == 1 && settings.sweep.launches == 1) {
    return complain(
        error(Code::invalid_argument,
              "--calls 1 --launches 1: one call has no other one to be equal to: did you mean --launches 2?"));
  }
  JobsRequest request = request_of(settings);
  const auto expansion = cells_of(settings, request.cells);
  if (!expansion.is_ok()) return complain(expansion.status());
  request.spec = session_of(settings);
  request.spec.task = harness::RepeatTask{.calls = asked.calls};
  harness::OutputFiles files;
  if (asked.json == harness::kStdoutPath) {
    return complain(error(Code::invalid_argument, "--json: '-' is stdout, where the text goes: name a file"));
  }
  if (const Status opened = files.open(asked.json); !opened.is_ok()) return complain(opened);

  harness::Console console = console_for(settings);
  std::vector<std::string> order;
  for (const std::vector<Case>& cell : request.cells) order.push_back(harness::cell_of_case(case_id(cell.front())));
  harness::Repeats repeats(std::move(order));
  std::map<int, harness::ResultParts> parts;  // by launch
  Verdicts verdicts;
  Progress progress(0);
  const std::int64_t begin = harness::monotonic_ns();
  const int code = run_jobs(request, {.on_begin = [&](const std::vector<Case>& cell, std::size_t index,
                                                      std::size_t of) { progress.begin(cell.front(), index, of); },
                                      .on_cell =
                                          [&](const std::vector<Row>& rows) {
                                            progress.clear();
                                            for (const Row& row : rows) verdicts.add(row, console);
                                            return Status();
                                          },
                                      .on_facts = [](int, const std::string&) {},
                                      .on_result = [&](int launch, std::string_view text) -> Status {
                                        TUTTI_ASSIGN_OR_RETURN(auto result, parts[launch].add(text));
                                        if (!result) return {};
                                        result->launch = launch;
                                        return repeats.add(std::move(*result));
                                      }});
  progress.clear();
  const std::vector<harness::OfCell> cells = repeats.cells();
  const int found = conclude(cells, verdicts, console);
  for (const harness::LeftOut& item : expansion.value().left_out) {
    console.print(fmt::format("# left out: {} x {}\n", item.cells, item.reason));
  }
  console.print(fmt::format("# {} of the ranks, {} of each case, on the same input (seed {}); {:.1f} s\n",
                            harness::counted(settings.sweep.launches, "launch", "es"),
                            harness::counted(asked.calls, "call"), settings.sweep.seed,
                            static_cast<double>(harness::monotonic_ns() - begin) * 1e-9));
  const Status written = files.replace(asked.json, repeats_json(cells, command_line(), settings.sweep.seed));
  const int lost = written.is_ok() ? exit_ok : complain(written);
  if (code != exit_ok) return code;
  return found != exit_ok ? found : lost;
}

}  // namespace

void add_repeat(CLI::App& check, Action& action) {
  CLI::App* command =
      check.add_subcommand("repeat", "the same input again: the same bits, or the first one that differs");
  command->footer(
      "Example: tutti check repeat all_reduce --launches 5 --backends tutti,openmpi --ranks 4\n"
      "Results of one backend and algorithm must be equal in all calls and launches. Results of two must be equal "
      "unless floats are added, which may be in another order.\n"
      "Exit codes: 0 all that must be equal is; 1 a result differs that must not, or is wrong");
  auto options = std::make_shared<SweepOptions>(
      *command,
      std::vector<OptionChoice>{
          {"--sizes", "8,1000,64K", "bytes of the larger buffer of a rank, at most 64M: a list, or start:stop:xfactor"},
          "--dtypes",
          "--ops",
          "--roots",
          {"--ranks", "4", "numbers of ranks; 1:8 is every number between"},
          "--ranks-as",
          "--backends",
          {"--algorithms", "all", "own algorithms by name, auto (the table's choice), or all"},
          "--transports",
          "--placement",
          "--buffers",
          {"--values", "random",
           "what inputs are made of: random (floats that are rounded, so that another order of reduction has other "
           "bits), exact, or special"},
          {"--launches", "5", "times that everything is started afresh"},
          "--seed",
          "--timeout",
          "--bind"},
      all_but_v_forms());
  auto asked = std::make_shared<RepeatOptions>();
  command->add_option("--calls", asked->calls, "calls of each case in each launch")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--json", asked->json, "write what was found as JSON")->type_name("FILE");
  command->callback([&check, &action, options, asked] {
    action = [&check, options, asked] {
      for (const CLI::Option* option : check.get_options()) {
        if (option->count() == 0) continue;
        return complain(error(Code::invalid_argument,
                              "`tutti check {0} ... repeat`: {0} is of the conformance cases; the options of repeat "
                              "come after `repeat`",
                              option->get_name()));
      }
      return repeat(*options, *asked);
    };
  });
}

}  // namespace tutti::program

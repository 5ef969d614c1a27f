// SPDX-License-Identifier: Apache-2.0
// `tutti gate`: pass or fail against a recorded run, another build, or another backend.
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <utility>

#include <fmt/format.h>

#include "harness/gate/forecast.h"
#include "harness/gate/power.h"
#include "harness/gate/program_run.h"
#include "harness/gate/report.h"
#include "harness/process/spawn.h"
#include "harness/record/csv.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/file_place.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "src/gate_costs.h"
#include "src/gate_plan.h"
#include "src/passes.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/report.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::CellGroup;
using harness::GateSide;
using harness::Launched;
using harness::Opinion;
using harness::Row;

/// Starts launches of both sides, and keeps what this build measured.
class Launcher {
 public:
  static Result<Launcher> open(const GatePlan& plan, const GateRequest& request) {
    Launcher launcher(plan, request);
    if (!request.csv.empty()) {
      TUTTI_ASSIGN_OR_RETURN(launcher.csv_, harness::CsvFile::open(request.csv));
    }
    return launcher;
  }

  Result<Launched> launch(GateSide side, const CellGroup& group, std::uint64_t seed) {
    const bool is_mine = side == GateSide::mine;
    TUTTI_ASSIGN_OR_RETURN(const harness::ProgramRun run,
                           harness::run_program(command(side, group, seed), limit(group), *interrupts_));
    Launched launched;
    for (const Row& row : run.rows) {
      const bool is_own = row.backend == harness::kOwnBackend;
      (is_mine && is_own ? launched.mine : launched.other).push_back(row);
    }
    if (is_mine) keep(launched.mine);
    const std::string& whose = is_mine ? plan_.contest.names.mine : plan_.contest.names.other;
    if (!run.late.empty()) {
      launched.failure = fmt::format("{} {}", whose, run.late);
      has_crashed_ |= is_mine;
    } else if (run.exit_code != exit_ok && run.exit_code != exit_wrong) {
      launched.failure = fmt::format("{} ended with exit code {}: {}", whose, run.exit_code, run.last_words());
      has_crashed_ |= is_mine && (run.exit_code == exit_crash || run.exit_code >= 128);
    }
    if (plan_.baseline) {
      harness::Evidence ignored;
      for (const Case& one : group.cases) {
        if (const auto row = plan_.baseline->row_for(one, ignored)) launched.other.push_back(*row);
      }
    }
    return launched;
  }

  /// Says in every row of the CSV how many launches there were; so rows that could not be written get there, where they
  /// can be by now. Rows in a pipe stay as they are.
  Status end() {
    if (!csv_) return {};
    struct stat about {};
    const auto place = harness::FilePlace::of(request_.csv);
    const bool is_file = place.is_ok() && place.value().has_name() && place.value().look(about) == 0;
    if (!is_file || !S_ISREG(about.st_mode)) return csv_failure_;
    std::string text = harness::csv_header() + "\n";
    for (Row& row : kept_) {
      row.launches = launches_;
      text += harness::csv_row(row) + "\n";
    }
    return harness::replace_file(request_.csv, text);
  }

  /// This build's, with the number of their launch.
  [[nodiscard]] const std::vector<Row>& rows() const { return kept_; }
  [[nodiscard]] const harness::Interrupts& interrupts() const { return *interrupts_; }
  [[nodiscard]] bool has_crashed() const { return has_crashed_; }

 private:
  Launcher(const GatePlan& plan, const GateRequest& request) : plan_(plan), request_(request) {}

  [[nodiscard]] std::vector<std::string> command(GateSide side, const CellGroup& group, std::uint64_t seed) const {
    const bool is_mine = side == GateSide::mine;
    std::vector<std::string> words{is_mine ? harness::resolve_program("/proc/self/exe") : plan_.program};
    for (std::string& word : harness::run_arguments(group)) words.push_back(std::move(word));
    // Before the first cell, of processes: not the cells' time.
    const std::chrono::milliseconds start{!plan_.conditions.topology.hosts.empty()   ? 1000
                                          : group.cases.front().ranks_as->is_process ? 200
                                                                                     : 0};
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(plan_.cell_time * group.cases.size()) + start;
    const std::string backends = plan_.backend.empty() ? "tutti" : "tutti," + plan_.backend;
    words.insert(words.end(), {"--backends", backends, "--seed", fmt::to_string(seed), "--timeout", request_.timeout,
                               "--budget", fmt::format("{}ms", milliseconds.count()), "--no-limit"});
    if (!plan_.conditions.topology.hosts.empty()) {
      words.insert(words.end(), {"--hosts", to_text(plan_.conditions.topology.hosts), "--agent", plan_.reach.agent});
      if (!plan_.reach.interface.empty()) words.insert(words.end(), {"--interface", plan_.reach.interface});
    }
    if (!request_.bind.empty()) words.insert(words.end(), {"--bind", request_.bind});
    if (is_mine && !request_.places.table.empty()) words.insert(words.end(), {"--table", request_.places.table});
    return words;
  }

  /// The program watches its own deadlines; this is for one that does not.
  [[nodiscard]] std::chrono::milliseconds limit(const CellGroup& group) const {
    constexpr std::chrono::minutes kStartAndEnd{2};
    return std::chrono::ceil<std::chrono::milliseconds>(plan_.cell_time * group.cases.size() + 2 * plan_.timeout) +
           kStartAndEnd;
  }

  /// In the form of `run`, so that the file is a baseline for the next time. How many launches there will be is not
  /// known yet: `launches` is of those so far. A file that cannot be written any more ends no gate, for its verdicts do
  /// without. It is told at once, and again at the end.
  void keep(std::span<const Row> rows) {
    ++launches_;
    for (Row row : rows) {
      row.launch = row.launches = launches_;
      if (csv_ && csv_failure_.is_ok()) {
        csv_failure_ = csv_->write(row);
        if (!csv_failure_.is_ok()) complain(csv_failure_);
      }
      kept_.push_back(std::move(row));
    }
  }

  const GatePlan& plan_;
  const GateRequest& request_;
  std::unique_ptr<harness::Interrupts> interrupts_ = std::make_unique<harness::Interrupts>();
  std::optional<harness::CsvFile> csv_;
  Status csv_failure_;     ///< the first
  std::vector<Row> kept_;  ///< those of this build, which are in it
  std::int64_t launches_ = 0;
  bool has_crashed_ = false;
};

/// Says on stderr where a gate is, and how long it still takes.
class Teller {
 public:
  explicit Teller(const GatePlan& plan) : forecast_({.cell_time = plan.cell_time, .launches = launches_of(plan)}) {}

  /// Of a block.
  static int launches_of(const GatePlan& plan) {
    return plan.contest.is_abba ? static_cast<int>(harness::order_of_block(0).size()) : 1;
  }

  void block(const harness::Contest::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!cases_.empty()) forecast_.add(cases_, now - begun_);
    const bool is_first = cases_.empty();
    begun_ = now;
    cases_.assign(progress.cases.begin(), progress.cases.end());
    place_ = fmt::format("in block {}{}", progress.block, progress.confirms ? " of the confirmation" : "");
    const int before = progress.block - 1;
    const std::string least = text(progress.look - before);
    const std::string most = text(progress.most - before);
    if (is_first) {
      harness::to_stderr(fmt::format(
          "gate: {}, {} to {} blocks: about {}, up to {} where cells stay undecided; what is slower is measured once "
          "more\n",
          harness::counted(progress.cells, "cell"), progress.look, progress.most, least, most));
    }
    harness::to_stderr(fmt::format("{} {} of at most {}: {}, about {} left, at most {}\n",
                                   progress.confirms ? "confirmation, block" : "block", progress.block, progress.most,
                                   harness::counted(progress.cells, "cell"), least, most));
  }

  /// For "interrupted ...".
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  [[nodiscard]] std::string text(int blocks) const { return duration_text(forecast_.blocks(cases_, blocks).count()); }

  harness::Forecast forecast_;
  std::vector<Case> cases_;  ///< of the block that was begun last
  std::chrono::steady_clock::time_point begun_;
  std::string place_ = "before the first block";
};

/// Why a gate ended early, and where: `place`.
std::string unfinished_text(const Status& course, const std::string& place) {
  if (course.is_ok()) return {};
  if (course.code() == Code::aborted) return "interrupted " + place;
  return fmt::format("ended {}: {}", place, course.message());
}

/// The page of what was found, and of this build's rows.
Status draw_page(const GateRequest& request, const harness::GateReport& report, const std::vector<Row>& rows,
                 harness::OutputFiles& files) {
  const std::string name = request.json.empty() ? "tutti gate" : request.json;
  std::vector<harness::ResultFile> results;
  TUTTI_ASSIGN_OR_RETURN(results.emplace_back(), harness::result_from_text(name, gate_json(report)));
  const std::string file = request.csv.empty() ? "rows of this build" : request.csv;
  if (!rows.empty()) results.push_back({.file = file, .rows = rows});
  const Status drawn = make_report(results, {.html = request.html, .png = {}, .svg = {}}, files);
  return drawn.is_ok() ? drawn : error(drawn.code(), "--html: {}", drawn.message());
}

/// Each of them, whatever becomes of the others; those that cannot be written are told. The first failure.
Status write_reports(const GateRequest& request, const harness::GateReport& report, Launcher& launcher,
                     harness::OutputFiles& files) {
  Status first;
  const auto note = [&first](Status status) {
    if (status.is_ok()) return;
    complain(status);
    if (first.is_ok()) first = std::move(status);
  };
  note(launcher.end());
  note(files.replace(request.junit, gate_junit(report)));
  note(files.replace(request.summary, gate_markdown(report)));
  note(files.replace(request.json, gate_json(report)));
  if (!request.html.empty()) note(draw_page(request, report, launcher.rows(), files));
  harness::Console().print(gate_table(report));  // last: an output that is closed costs no file
  return first;
}

harness::GateReport report_of(const GatePlan& plan, const GateCosts& costs, const harness::Contest& contest,
                              const std::string& unfinished) {
  harness::GateReport report{.other = plan.contest.names.other,
                             .command = command_line(),
                             .counted = costs.compared,
                             .remarks = costs.remarks,
                             .unfinished = unfinished,
                             .seed = plan.contest.seed,
                             .cells = {},
                             .requires_times = plan.requires_times};
  if (!plan.conditions.topology.hosts.empty()) {
    report.remarks.push_back(fmt::format("the ranks are on {}", to_text(plan.conditions.topology.hosts)));
  }
  if (plan.baseline && !plan.baseline->names_machine()) {
    report.remarks.emplace_back("the baseline does not say which machine it is of");
  }
  for (const harness::Evidence& evidence : contest.evidence()) {
    report.cells.push_back({.evidence = evidence,
                            .judgement = unfinished.empty()
                                             ? judge_finally(evidence)
                                             : judge_unfinished(evidence, "not finished: " + unfinished)});
  }
  return report;
}

/// Opens the files that are written at the end. Errors: invalid_argument for one that cannot be written, or that
/// another option names.
Status open_files(const GateRequest& request, harness::OutputFiles& opened) {
  const std::array<std::pair<harness::FileOption, const char*>, 7> files{
      {{{"--baseline", request.baseline}, nullptr},
       {{"--suite", request.suite}, nullptr},
       {{"--csv", request.csv}, ".gate.csv"},
       {{"--junit", request.junit}, ".junit.xml"},
       {{"--summary", request.summary}, ".summary.md"},
       {{"--json", request.json}, ".gate.json"},
       {{"--html", request.html}, ".html"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [file, ending] = files[i];
    if (ending == nullptr) continue;
    for (std::size_t j = 0; j < i; ++j) TUTTI_RETURN_IF_ERROR(harness::check_apart(files[j].first, file, ending));
  }
  for (const std::string& path : {request.junit, request.summary, request.csv, request.json, request.html}) {
    if (path == harness::kStdoutPath) {
      return error(Code::invalid_argument, "'-' is stdout, where the gate's table goes: name a file");
    }
  }
  for (const std::string& path : {request.junit, request.summary, request.json, request.html}) {
    TUTTI_RETURN_IF_ERROR(opened.open(path));
  }
  return request.csv.empty() ? Status() : harness::check_writable(request.csv);
}

/// What is known of each case before the first launch: what the baseline says of it.
std::vector<harness::Evidence> evidence_before(const GatePlan& plan) {
  std::vector<harness::Evidence> begun;
  for (const Case& one : plan.cases) {
    begun.push_back(harness::evidence_for(one));
    if (plan.baseline) static_cast<void>(plan.baseline->row_for(one, begun.back()));
  }
  return begun;
}

constexpr int kPairsOfList = 6;  // of each cell, where all launches find partners

/// `--list`: some blocks, and what a whole gate would find.
int list_gate(const GatePlan& plan, const GateRequest& request) {
  auto launcher = Launcher::open(plan, request);
  if (!launcher.is_ok()) return complain(launcher.status());
  harness::ContestOptions options = plan.contest;
  const int blocks = plan.contest.is_abba ? kPairsOfList / 2 : kPairsOfList;
  options.least_blocks = options.most_blocks = blocks;
  options.confirms = false;
  harness::Contest contest(plan.cases, evidence_before(plan), options);
  harness::Forecast forecast({.cell_time = plan.cell_time, .launches = Teller::launches_of(plan)});
  const auto begin = std::chrono::steady_clock::now();
  const Status course = contest.run([&](GateSide side, const CellGroup& group,
                                        std::uint64_t seed) { return launcher.value().launch(side, group, seed); },
                                    [&](const harness::Contest::Progress& progress) {
                                      harness::to_stderr(fmt::format("block {} of {}: {}\n", progress.block, blocks,
                                                                     harness::counted(progress.cells, "cell")));
                                    });
  if (!course.is_ok()) return course.code() == Code::aborted ? exit_interrupted : complain(course);
  forecast.add(plan.cases, (std::chrono::steady_clock::now() - begin) / blocks);
  const int least = plan.contest.least_blocks, most = plan.contest.most_blocks;
  std::vector<harness::CellPower> cells;
  for (const harness::Evidence& evidence : contest.evidence()) {
    cells.push_back(power_of(evidence, blocks, least, most));
  }
  const auto text = [&](int number) { return duration_text(forecast.blocks(plan.cases, number).count()); };
  harness::Console console;
  console.print(
      power_table(cells, least, most) +
      fmt::format("# a gate of {} takes about {} with {} blocks, up to {} with {}; what is slower is measured "
                  "once more\n",
                  harness::counted(cells.size(), "cell"), text(least), least, text(most), most));
  return console.failure().is_ok() ? exit_ok : complain(console.failure());
}

/// Errors: invalid_argument for a file of a gate that is not run.
Status check_list(const GateRequest& request) {
  if (!request.only_lists) return {};
  for (const auto& [option, path] : {std::pair("--csv", &request.csv), std::pair("--junit", &request.junit),
                                     std::pair("--summary", &request.summary), std::pair("--json", &request.json),
                                     std::pair("--html", &request.html)}) {
    if (!path->empty()) {
      return error(Code::invalid_argument, "{}: --list prints what a gate would find, and writes no file: leave it out",
                   option);
    }
  }
  return {};
}

/// The launches of a gate are commands of their own, on which the variable would tell.
void forget_table_variable() {
  const char* const table = std::getenv(harness::kTableVariable);
  if (table == nullptr) return;
  harness::to_stderr(fmt::format("# {} is not taken: a gate takes the table that is built in, or --table '{}'\n",
                                 harness::kTableVariable, shown(table)));
  ::unsetenv(harness::kTableVariable);
}

int gate(const GateRequest& request) {
  if (const Status status = check_list(request); !status.is_ok()) return complain(status);
  harness::OutputFiles files;
  if (const Status status = open_files(request, files); !status.is_ok()) return complain(status);
  const auto plan = plan_of(request);
  if (!plan.is_ok()) return complain(plan.status());
  if (request.only_lists) return list_gate(plan.value(), request);
  if (!request.html.empty()) warn_without_drawing();
  auto launcher = Launcher::open(plan.value(), request);
  if (!launcher.is_ok()) return complain(launcher.status());

  std::vector<harness::Evidence> begun = evidence_before(plan.value());
  const auto costs = compare_costs(plan.value(), launcher.value().interrupts(), begun);
  Status course = costs.status();
  harness::Contest contest(plan.value().cases, std::move(begun), plan.value().contest);
  Teller teller(plan.value());
  if (course.is_ok()) {
    course = contest.run([&](GateSide side, const CellGroup& group,
                             std::uint64_t seed) { return launcher.value().launch(side, group, seed); },
                         [&](const harness::Contest::Progress& progress) { teller.block(progress); });
  }
  const std::string unfinished = unfinished_text(course, teller.place());
  harness::GateReport report =
      report_of(plan.value(), costs.is_ok() ? costs.value() : GateCosts(), contest, unfinished);
  if (!plan.value().conditions.topology.hosts.empty()) {
    report.host = launcher.value().rows().empty() ? "" : launcher.value().rows().front().host;
  }
  const Status written = write_reports(request, report, launcher.value(), files);
  for (const harness::LeftOut& item : plan.value().left_out) {
    harness::Console().print(fmt::format("# left out: {} x {}\n", item.cells, item.reason));
  }
  if (!course.is_ok()) {
    const int code = complain(error(course.code(), "the gate is not finished: {}", unfinished));
    return course.code() == Code::aborted ? exit_interrupted : code;
  }
  const int code = exit_code_of_gate(report, launcher.value().has_crashed());
  const bool is_finding = code == exit_wrong || code == exit_slower || code == exit_crash;  // worse than a lost report
  if (written.is_ok() || is_finding) return code;
  return written.code() == Code::aborted ? exit_interrupted : exit_code_of(written);
}

}  // namespace

void add_gate(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("gate", "pass or fail against a recorded run, another build or backend");
  command->footer(
      "Example: tutti gate --against ../base/build --junit gate.xml --summary gate.md\n"
      "Exit codes: 0 no cell is slower; 1 a result is wrong; 3 a cell is missing or cannot be compared, or with "
      "--require too short; 4 slower; 5 crash; 6 undecided, too noisy");
  auto request = std::make_shared<GateRequest>();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    option->check(CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, ""));
    if (!value.empty()) option->default_str(value);
    return option;
  };
  add("--against", request->against, "WHAT",
      "a folder with another build (its bin/tutti), launches of both in turn; or a backend, in the same launches: "
      "TUTTI_BACKENDS as in `tutti run`");
  add("--baseline", request->baseline, "FILE", "a CSV that `tutti run` or `tutti gate` wrote on this machine");
  add("--suite", request->suite, "FILE", "the cells, in TOML, at most 40 (default: every collective, 64 B to 8 MiB)");
  add("--ranks", request->ranks, "LIST", "numbers of ranks, in place of those of the suite's sweeps");
  add("--blocks", request->blocks, "N",
      "blocks of launches before cells are judged, at least 8; four times as many at most");
  add("--cell-time", request->cell_time, "TIME", "time for one cell in one launch, less where it settles");
  add("--timeout", request->timeout, "TIME", "deadline of an operation; then the late rank is named");
  add("--bind", request->bind, "KIND", "core, numa or none, as in `tutti run`");
  add("--seed", request->seed, "N", "of inputs and of the order of launches");
  add("--junit", request->junit, "FILE", "write JUnit XML, one case per cell");
  add("--summary", request->summary, "FILE", "write a summary in Markdown");
  add("--json", request->json, "FILE", "write what was found as JSON; `tutti report` makes a page of it");
  add("--html", request->html, "FILE", "draw one page of what was found, at the end");
  add("--csv", request->csv, "FILE", "write this build's rows as they finish: a baseline for another day");
  command->add_flag("--list", request->only_lists,
                    "measure a few blocks, and print how long a gate takes and which step each cell can show");
  command->add_flag(
      "--require", request->requires_times,
      "exit code 3 where a cell is too short: the floor, half a microsecond, is more than 25 % of its time");
  std::vector<OptionChoice> choices = choices_of_hosts();
  choices.emplace_back("--table", "",
                       "the selection table by which `auto` chooses in this build (default: what is built in, whatever "
                       "TUTTI_TABLE says)");
  auto places = std::make_shared<SweepOptions>(*command, std::move(choices), std::span<const Collective>());
  command->callback([&action, request, places] {
    action = [request, places] {
      forget_table_variable();
      auto settings = places->settings({.takes_table_variable = false});
      if (!settings.is_ok()) return complain(settings.status());
      request->places = std::move(settings).value();
      return gate(*request);
    };
  });
}

}  // namespace tutti::program

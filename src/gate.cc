// SPDX-License-Identifier: Apache-2.0
// `tutti gate`: pass or fail against a recorded run, another build, or another backend.
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "harness/gate/program_run.h"
#include "harness/gate/report.h"
#include "harness/launch/spawn.h"
#include "harness/report/csv.h"
#include "harness/report/file.h"
#include "src/gate_costs.h"
#include "src/gate_plan.h"
#include "src/program.h"

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
    if (is_mine) TUTTI_RETURN_IF_ERROR(keep(launched.mine));
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

  /// Says in every row of the CSV how many launches there were. Rows in a pipe, or behind a link, stay as they are.
  Status end() {
    std::error_code ignored;
    if (!csv_ || !std::filesystem::is_regular_file(std::filesystem::symlink_status(request_.csv, ignored))) return {};
    std::string text = harness::csv_header() + "\n";
    for (Row& row : kept_) {
      row.launches = launches_;
      text += harness::csv_row(row) + "\n";
    }
    return harness::replace_file(Code::io, request_.csv, text);
  }

  [[nodiscard]] const harness::Interrupts& interrupts() const { return *interrupts_; }
  [[nodiscard]] bool has_crashed() const { return has_crashed_; }

 private:
  Launcher(const GatePlan& plan, const GateRequest& request) : plan_(plan), request_(request) {}

  [[nodiscard]] std::vector<std::string> command(GateSide side, const CellGroup& group, std::uint64_t seed) const {
    const bool is_mine = side == GateSide::mine;
    std::vector<std::string> words{is_mine ? harness::resolve_program("/proc/self/exe") : plan_.program};
    for (std::string& word : harness::run_arguments(group)) words.push_back(std::move(word));
    // Before the first cell, of processes: not the cells' time.
    const std::chrono::milliseconds start{group.cases.front().ranks_as == harness::RanksAs::processes ? 200 : 0};
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(plan_.cell_time * group.cases.size()) + start;
    const std::string backends = plan_.backend.empty() ? "tutti" : "tutti," + plan_.backend;
    words.insert(words.end(), {"--backends", backends, "--seed", fmt::to_string(seed), "--timeout", request_.timeout,
                               "--budget", fmt::format("{}ms", milliseconds.count()), "--no-limit"});
    if (!request_.bind.empty()) words.insert(words.end(), {"--bind", request_.bind});
    if (is_mine && !request_.slow_down.empty()) words.insert(words.end(), {"--slow-down", request_.slow_down});
    return words;
  }

  /// The program watches its own deadlines; this is for one that does not.
  [[nodiscard]] std::chrono::milliseconds limit(const CellGroup& group) const {
    constexpr std::chrono::minutes kStartAndEnd{2};
    return std::chrono::ceil<std::chrono::milliseconds>(plan_.cell_time * group.cases.size() + 2 * plan_.timeout) +
           kStartAndEnd;
  }

  /// In the form of `run`, so that the file is a baseline for the next time. How many launches there will be is not
  /// known yet: `launches` is of those so far.
  Status keep(std::span<const Row> rows) {
    ++launches_;
    if (!csv_) return {};
    for (Row row : rows) {
      row.launch = row.launches = launches_;
      TUTTI_RETURN_IF_ERROR(csv_->write(row));
      kept_.push_back(std::move(row));
    }
    return {};
  }

  const GatePlan& plan_;
  const GateRequest& request_;
  std::unique_ptr<harness::Interrupts> interrupts_ = std::make_unique<harness::Interrupts>();
  std::optional<harness::CsvFile> csv_;
  std::vector<Row> kept_;  ///< the rows in it
  std::int64_t launches_ = 0;
  bool has_crashed_ = false;
};

int exit_code_of_gate(const harness::GateReport& report, bool has_crashed) {
  if (report.count(Opinion::wrong) > 0) return exit_wrong;
  if (has_crashed) return exit_crash;
  if (report.count(Opinion::slower) > 0) return exit_slower;
  if (report.count(Opinion::missing) + report.count(Opinion::invalid) > 0) return exit_environment;
  return report.count(Opinion::undecided) > 0 ? exit_undecided : exit_ok;
}

std::string block_text(const harness::Contest::Progress& progress) {
  return fmt::format("in block {}{}", progress.block, progress.confirms ? " of the confirmation" : "");
}

/// Why a gate ended early, and where: `place`.
std::string unfinished_text(const Status& course, const std::string& place) {
  if (course.is_ok()) return {};
  if (course.code() == Code::aborted) return "interrupted " + place;
  return fmt::format("ended {}: {}", place, course.message());
}

void print_progress(const harness::Contest::Progress& progress) {
  fmt::print(stderr, "{} {} of at most {}: {} cells\n", progress.confirms ? "confirmation, block" : "block",
             progress.block, progress.most, progress.cells);
}

Status write_reports(const GateRequest& request, const harness::GateReport& report) {
  fmt::print("{}", gate_table(report));
  if (!request.junit.empty()) TUTTI_RETURN_IF_ERROR(harness::replace_file(Code::io, request.junit, gate_junit(report)));
  if (request.summary.empty()) return {};
  return harness::replace_file(Code::io, request.summary, gate_markdown(report));
}

harness::GateReport report_of(const GatePlan& plan, const GateCosts& costs, const harness::Contest& contest,
                              const std::string& unfinished) {
  harness::GateReport report{.other = plan.contest.names.other,
                             .command = command_line(),
                             .counted = costs.compared,
                             .remarks = costs.remarks,
                             .unfinished = unfinished,
                             .seed = plan.contest.seed,
                             .cells = {}};
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

/// That each file can be written, and that no other option names it.
Status check_files(const GateRequest& request) {
  const std::array<std::pair<harness::FileOption, const char*>, 5> files{
      {{{"--baseline", request.baseline}, nullptr},
       {{"--suite", request.suite}, nullptr},
       {{"--csv", request.csv}, ".gate.csv"},
       {{"--junit", request.junit}, ".junit.xml"},
       {{"--summary", request.summary}, ".summary.md"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [file, ending] = files[i];
    if (ending == nullptr) continue;
    for (std::size_t j = 0; j < i; ++j) TUTTI_RETURN_IF_ERROR(harness::check_apart(files[j].first, file, ending));
  }
  for (const std::string& path : {request.junit, request.summary, request.csv}) {
    if (!path.empty()) TUTTI_RETURN_IF_ERROR(harness::check_writable(path));
  }
  return {};
}

int gate(const GateRequest& request) {
  if (const Status status = check_files(request); !status.is_ok()) return complain(status);
  const auto plan = plan_of(request);
  if (!plan.is_ok()) return complain(plan.status());
  auto launcher = Launcher::open(plan.value(), request);
  if (!launcher.is_ok()) return complain(launcher.status());

  std::vector<harness::Evidence> begun;
  for (const Case& one : plan.value().cases) {
    begun.push_back(harness::evidence_for(one));
    if (plan.value().baseline) static_cast<void>(plan.value().baseline->row_for(one, begun.back()));
  }
  const auto costs = compare_costs(plan.value(), launcher.value().interrupts(), begun);
  Status course = costs.status();
  harness::Contest contest(plan.value().cases, std::move(begun), plan.value().contest);
  std::string place = "before the first block";
  if (course.is_ok()) {
    course = contest.run([&](GateSide side, const CellGroup& group,
                             std::uint64_t seed) { return launcher.value().launch(side, group, seed); },
                         [&](const harness::Contest::Progress& progress) {
                           place = block_text(progress);
                           print_progress(progress);
                         });
  }
  const std::string unfinished = unfinished_text(course, place);
  const harness::GateReport report =
      report_of(plan.value(), costs.is_ok() ? costs.value() : GateCosts(), contest, unfinished);
  const Status ended = launcher.value().end();
  Status written = write_reports(request, report);
  if (written.is_ok()) written = ended;
  for (const harness::LeftOut& item : plan.value().left_out)
    fmt::print("# left out: {} x {}\n", item.cells, item.reason);
  if (!written.is_ok()) complain(written);
  if (!course.is_ok()) {
    const int code = complain(error(course.code(), "the gate is not finished: {}", unfinished));
    return course.code() == Code::aborted ? exit_interrupted : code;
  }
  return written.is_ok() ? exit_code_of_gate(report, launcher.value().has_crashed()) : exit_code_of(written);
}

}  // namespace

void add_gate(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("gate", "pass or fail against a recorded run, another build or backend");
  command->footer(
      "Example: tutti gate --against ../base/build --junit gate.xml --summary gate.md\n"
      "Exit codes: 0 no cell is slower; 1 a result is wrong; 3 a cell is missing or cannot be compared; 4 slower;\n"
      "5 crash; 6 undecided, too noisy");
  auto request = std::make_shared<GateRequest>();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    option->check(CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, ""));
    if (!value.empty()) option->default_str(value);
    return option;
  };
  add("--against", request->against, "WHAT",
      "a folder with another build (its bin/tutti), launches of both in turn; or a backend, in the same launches");
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
  add("--csv", request->csv, "FILE", "write this build's rows as they finish: a baseline for another day");
  add("--slow-down", request->slow_down, "SPEC", "of this build, as in `tutti run`")->group("");
  command->callback([&action, request] { action = [request] { return gate(*request); }; });
}

}  // namespace tutti::program

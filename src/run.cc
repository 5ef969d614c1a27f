// SPDX-License-Identifier: Apache-2.0
// `tutti run`: sweep, verify, measure, report.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/board/binding.h"
#include "harness/cases/expand.h"
#include "harness/cases/lists.h"
#include "harness/cases/settings.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/record/csv.h"
#include "harness/record/launches.h"
#include "harness/record/rank_tally.h"
#include "harness/record/samples.h"
#include "harness/report/environment.h"
#include "harness/report/exports.h"
#include "harness/report/json.h"
#include "harness/report/ranks.h"
#include "harness/report/table.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/printable.h"
#include "src/contention_plan.h"
#include "src/jobs.h"
#include "src/join.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/report.h"
#include "src/request.h"
#include "src/run_files.h"
#include "src/run_plan.h"
#include "src/trace_plan.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Row;
using harness::Verdict;

/// Where rows go: the table for people, and the files that were asked for.
class Reports {
 public:
  static Result<Reports> open(const Settings& settings, const harness::Expansion& expansion) {
    Reports reports;
    reports.console_ = console_for(settings);
    reports.left_out_ = expansion.left_out;
    reports.ranks_as_ = settings.sweep.ranks_as;
    reports.tells_ranks_ = settings.conditions.tells_ranks;
    reports.has_hosts_ = !settings.conditions.topology.hosts.empty();
    harness::RatioOf ratio = harness::ratio_within_a_launch;
    if (settings.sweep.launches > 1) {
      std::vector<std::string> cells;
      for (const harness::Cell& cell : expansion.cells) {
        Case one;
        static_cast<harness::Cell&>(one) = cell;
        cells.push_back(harness::cell_of_case(harness::case_id(one)));
      }
      reports.launches_ = std::make_shared<harness::Launches>(std::move(cells));
      ratio = [launches = reports.launches_](const Row& ours, const Row& theirs) {
        return launches->ratio(ours, theirs);
      };
    }
    reports.table_ = harness::Table(std::move(ratio), settings.shows_accuracy);
    // A mistake in one file's name does not cost what the other held.
    for (const std::string& path : {settings.csv, settings.samples}) {
      if (!path.empty()) TUTTI_RETURN_IF_ERROR(harness::check_writable(path));
    }
    if (!settings.prometheus.empty()) {
      TUTTI_ASSIGN_OR_RETURN(reports.prometheus_, harness::OutputFile::open(settings.prometheus));
    }
    if (!settings.json.empty() || !settings.html.empty()) {
      TUTTI_ASSIGN_OR_RETURN(
          reports.json_,
          harness::JsonFile::open(settings.json, {.machine_json = machine_to_json(harness::describe_machine()),
                                                  .command = command_line(),
                                                  .seed = settings.sweep.seed,
                                                  .started = harness::utc_now(),
                                                  .left_out = reports.left_out_,
                                                  .environment = harness::library_settings(),
                                                  .table = harness::table_facts(settings.conditions)}));
    }
    if (!settings.csv.empty()) {
      TUTTI_ASSIGN_OR_RETURN(reports.csv_, harness::CsvFile::open(settings.csv));
    }
    if (!settings.samples.empty()) {
      TUTTI_ASSIGN_OR_RETURN(reports.samples_, harness::SamplesFile::open(settings.samples));
    }
    return reports;
  }

  /// Called before the first row: the names of the algorithms that will run, and by how many starters.
  void lay_out(std::span<const std::vector<Case>> cells, std::size_t starters) {
    harness::TableLayout layout{.width = console_.columns(), .names_starter = starters > 1};
    for (const std::vector<Case>& cell : cells) {
      for (const Case& one : cell) {
        layout.longest_algorithm = std::max(layout.longest_algorithm, one.algorithm.size());
        if (harness::settings_of(one.backend).empty()) continue;
        layout.has_settings = true;
        layout.longest_backend = std::max(layout.longest_backend, one.backend.size());
      }
    }
    table_.lay_out(layout);
  }

  /// What fails is told at the end; the other files get their rows all the same.
  void add(const std::vector<Row>& rows) {
    has_rows_ = true;
    if (launches_ == nullptr) {
      console_.print(table_.cell(rows));
    } else {
      launches_->add(rows);
    }
    for (const Row& row : rows) {
      const auto one = harness::parse_case_id(row.case_id);  // a row of a contention has the ranks of its group
      const int ranks = one.is_ok() ? one.value().ranks : static_cast<int>(row.ranks);
      if (row.time_median && !has_hosts_ && ranks_as_->runners(ranks) > cores_) crowded_.insert(ranks);
      const bool is_bad = row.verdict == Verdict::wrong || row.verdict == Verdict::error;
      if (console_.is_silent() && is_bad) {
        harness::to_stderr(fmt::format("tutti: {} {}: {}\n", to_string(row.verdict), row.case_id, row.reason));
      }
      if (csv_) note(csv_->write(row));
      if (prometheus_) kept_.push_back(row);
    }
    if (json_) note(json_->write(rows));
  }

  /// What all jobs showed of their ranks; once they are over.
  void tell_ranks() {
    for (const auto& [number, ranks] : ranks_) {
      if (json_)
        note(json_->set_ranks(fmt::format("P{}", number),
                              harness::ranks_json(harness::rank_results(ranks.tally, ranks.hosts))));
    }
  }

  /// Every cell was measured, or has a row that says why not.
  void finish() {
    if (json_) note(json_->finish());
  }

  /// Nothing more will be added, whatever the reason.
  void close() {
    if (json_) note(json_->end());
  }

  void leave_out(const harness::LeftOut& item) {
    left_out_.push_back(item);
    if (json_) note(json_->leave_out(item));
  }
  void add_diagnosis(const harness::FailedJob& diagnosis) {
    if (json_) note(json_->add_diagnosis(diagnosis));
  }
  void add_machines(const std::vector<harness::HostInfo>& all) {
    std::vector<std::pair<std::string, std::string>> machines;
    for (const harness::HostInfo& one : all) machines.emplace_back(one.host, one.description);
    if (json_) note(json_->set_machines(std::move(machines)));
  }
  void add_samples(std::string_view lines) {
    if (samples_) note(samples_->write(lines));
  }

  void add_ranks(const harness::RankTally& tally, const std::vector<std::string>& hosts) {
    RanksOfRun& ranks = ranks_[hosts.size()];
    ranks.hosts = hosts;
    note(ranks.tally.add(tally));
  }

  /// A fact that is not there, or not a number, is not told.
  void add_facts(int ranks, const std::string& text) {
    const nlohmann::json facts = nlohmann::json::parse(text, nullptr, false);
    if (!facts.is_object()) return;
    const nlohmann::json floors = facts.value("floors_ns", nlohmann::json::object());
    for (const auto& [whose, floor_ns] : floors.items()) {
      if (floor_ns.is_number()) add_floor(ranks, whose, floor_ns.get<double>() * 1e-3);
    }
    for (const char* clock : {"clock_tick_ns", "clock_read_ns"}) {
      const nlohmann::json value = facts.value(clock, nlohmann::json());
      if (!value.is_number()) continue;
      clock_ns_[clock] = value.get<double>();
      if (json_) note(json_->set_measurement(clock, clock_ns_[clock]));
    }
    add_init(ranks, facts);
    const nlohmann::json in_time = facts.value("in_time_ns", nlohmann::json());
    if (json_ && in_time.is_number()) {
      note(json_->set_measurement(fmt::format("in_time_ns.P{}", ranks), in_time.get<double>()));
    }
    const nlohmann::json clocks = facts.value("clocks", nlohmann::json::object());
    for (const auto& [name, value] : clocks.items()) {
      if (!value.is_number()) continue;
      clocks_us_[name] = value.get<double>() * 1e-3;
      if (json_) note(json_->set_measurement(fmt::format("clocks_{}.P{}", name, ranks), value.get<double>()));
    }
    const nlohmann::json bound = facts.value("bound", nlohmann::json());
    if (json_ && bound.is_array()) note(json_->set_bound(fmt::format("P{}", ranks), bound.dump()));
    const nlohmann::json backends = facts.value("backends", nlohmann::json::object());
    for (const auto& [name, what] : backends.items()) {
      if (json_) note(json_->set_version(name, what.dump()));
    }
  }

  [[nodiscard]] bool has_rows() const { return has_rows_; }

  /// The page of what was measured; the files stay, whatever becomes of it.
  [[nodiscard]] Status draw(const Settings& settings, harness::OutputFiles& page) const {
    const std::string& file = !settings.json.empty()  ? settings.json
                              : !settings.csv.empty() ? settings.csv
                                                      : "tutti run";
    std::vector<harness::ResultFile> results;
    TUTTI_ASSIGN_OR_RETURN(results.emplace_back(), harness::result_from_text(file, json_->text()));
    if (!settings.samples.empty() && settings.samples != harness::kStdoutPath) {
      TUTTI_ASSIGN_OR_RETURN(results.emplace_back(), harness::read_result(settings.samples));
    }
    return make_report(results, {.html = settings.html, .png = {}, .svg = {}}, page);
  }

  /// What is told at the end: of several launches, the table too.
  void print_end() {
    if (prometheus_) note(prometheus_->replace(harness::prometheus_of(kept_)));
    if (launches_ != nullptr) {
      for (const std::vector<Row>& rows : launches_->cells()) console_.print(table_.cell(rows));
    }
    console_.print(table_.footer(left_out_));
    std::string facts = launches_ == nullptr ? "" : launches_->spread();
    for (const auto& [_, ranks] : ranks_) {
      const std::vector<harness::RankResult> reports = harness::rank_results(ranks.tally, ranks.hosts);
      facts += harness::straggler_lines(reports);
      if (tells_ranks_) console_.print(harness::ranks_table(reports));
    }
    if (!crowded_.empty()) {
      facts += fmt::format("# measured with {} ranks on {}: they take turns, and a scheduler is measured with them\n",
                           fmt::join(crowded_, ", "), harness::counted(cores_, "core"));
    }
    if (clock_ns_.size() == 2) {
      facts += fmt::format("# clock: readings differ by {:.0f} ns or more, one takes {:.0f} ns\n",
                           clock_ns_["clock_tick_ns"], clock_ns_["clock_read_ns"]);
    }
    if (!clocks_us_.empty()) {
      facts += fmt::format(
          "# clocks of the hosts: known to {:.1f} us (half of the least round trip), and from one estimate to the next "
          "they "
          "moved {:.1f} us at most against what was foreseen\n",
          clocks_us_["bound_ns"], clocks_us_["change_ns"]);
    }
    for (const auto& [ranks, init] : inits_) {
      std::vector<std::string> calls;
      for (const auto& [backend, us] : init.first_calls_us) calls.push_back(fmt::format("{} {:.4g} us", backend, us));
      if (calls.empty()) continue;
      facts +=
          fmt::format("# init (P={}): {:.2f} s from the start of the processes until all was open; first call: {}\n",
                      ranks, init.ready_s, fmt::join(calls, ", "));
    }
    std::vector<std::string> floors;
    for (const auto& [_, text] : floors_) floors.push_back(text);
    if (!floors.empty()) {
      facts += fmt::format("# floor: a sample in which nothing is done takes {}\n", fmt::join(floors, ", "));
    }
    console_.print(table_.fitted(facts));
  }

  /// Tells what could not be written, which is the exit code where nothing worse was found.
  [[nodiscard]] int exit_code(int code, bool requires_a_result) const {
    int written = exit_ok;
    for (const Status& failure : {failure_, console_.failure()}) {
      if (!failure.is_ok()) written = complain(failure);
    }
    const int found = code != exit_ok ? code : exit_code_of_rows(requires_a_result);
    return found != exit_ok ? found : written;
  }

 private:
  [[nodiscard]] int exit_code_of_rows(bool requires_a_result) const {
    if (table_.rows_with(Verdict::wrong) > 0) return exit_wrong;
    if (table_.rows_with(Verdict::error) > 0) return exit_crash;
    const bool has_result = table_.rows_with(Verdict::ok) + table_.rows_with(Verdict::unchecked) > 0;
    return requires_a_result && !has_result ? exit_environment : exit_ok;
  }
  /// `whose`: the backend after the barrier of which samples start, or all.
  void add_floor(int ranks, const std::string& whose, double floor_us) {
    const bool is_of_all = whose == harness::kAll;
    floors_[{ranks, whose}] =
        fmt::format("{:.3f} us (P={}{})", floor_us, ranks, is_of_all ? "" : ", after the barrier of " + whose);
    if (!json_) return;
    note(json_->set_measurement(fmt::format("floor_us.P{}{}", ranks, is_of_all ? "" : "." + whose), floor_us));
  }
  /// Until the systems were ready, and what the first call of each took.
  void add_init(int ranks, const nlohmann::json& facts) {
    Init& init = inits_[ranks];
    const nlohmann::json ready = facts.value("ready_s", nlohmann::json());
    if (ready.is_number()) {
      init.ready_s = ready.get<double>();
      if (json_) note(json_->set_measurement(fmt::format("init_s.P{}", ranks), init.ready_s));
    }
    const nlohmann::json calls = facts.value("first_calls_ns", nlohmann::json::object());
    for (const auto& [backend, call_ns] : calls.items()) {
      if (!call_ns.is_number()) continue;
      init.first_calls_us[backend] = call_ns.get<double>() * 1e-3;
      if (json_) {
        note(json_->set_measurement(fmt::format("first_call_us.P{}.{}", ranks, backend), init.first_calls_us[backend]));
      }
    }
  }
  void note(Status status) {
    if (failure_.is_ok()) failure_ = std::move(status);
  }

  harness::Console console_;
  bool has_rows_ = false;
  std::shared_ptr<harness::Launches> launches_;  ///< of several launches; their table is printed at the end
  harness::Table table_;
  std::vector<harness::LeftOut> left_out_;
  std::optional<harness::CsvFile> csv_;
  std::optional<harness::JsonFile> json_;
  std::optional<harness::SamplesFile> samples_;
  /// By number of ranks and backend; the last launch's.
  std::map<std::pair<int, std::string>, std::string> floors_;
  struct Init {
    double ready_s = 0;
    std::map<std::string, double> first_calls_us;  ///< by backend
  };
  std::map<int, Init> inits_;  ///< by number of ranks; the last launch's
  struct RanksOfRun {
    harness::RankTally tally;
    std::vector<std::string> hosts;  ///< by rank; the last job's
  };
  std::map<std::size_t, RanksOfRun> ranks_;  ///< by their number
  bool tells_ranks_ = false;                 ///< each of them, not only stragglers
  std::map<std::string, double> clock_ns_;   ///< the last launch's
  std::map<std::string, double> clocks_us_;  ///< of several machines; the last launch's
  int cores_ = static_cast<int>(harness::allowed_cores().size());
  harness::RanksAs ranks_as_ = harness::RanksAs::processes;
  bool has_hosts_ = false;          ///< named ones, whose cores are not known here
  std::set<std::int64_t> crowded_;  ///< numbers of ranks, each a thread or a process, that are more than the cores
  std::optional<harness::OutputFile> prometheus_;
  std::vector<Row> kept_;  ///< for it
  Status failure_;
};

/// Prints what would run, and runs nothing.
int list(const RunPlan& plan, const Settings& settings) {
  const auto starters = starters_of(plan.cells, settings.sweep.ranks_as, settings.reach);
  if (!starters.is_ok()) return complain(starters.status());
  print_plan(plan, settings, starters.value().size());
  return exit_ok;
}

/// What else there may be than a sweep.
struct RunOptions {
  TraceOptions trace;
  ContentionOptions contention;
  bool only_lists = false;
};

int run(const SweepOptions& options, const CLI::App& command, const RunOptions& asked) {
  const TraceOptions& trace = asked.trace;
  const bool only_lists = asked.only_lists;
  if (const Status alone = check_beside_trace(command, trace); !alone.is_ok()) return complain_here(alone);
  const std::vector<std::string> known = known_backends();
  auto parsed = options.settings({.known_backends = known});
  if (!parsed.is_ok()) return complain_here(parsed.status());
  Settings& settings = parsed.value();
  harness::Sweep& sweep = settings.sweep;
  if (const Joining joining = join_job(settings, only_lists); joining.exit_code) return *joining.exit_code;
  if (!settings.has_ranks) sweep.ranks = {default_ranks()};
  if (const Status dealt = settle_groups(asked.contention, command, settings); !dealt.is_ok()) return complain(dealt);
  harness::MeasureTask task{.tells_samples = !settings.samples.empty()};
  auto plan = trace.file.empty() ? run_plan_of(settings) : trace_plan_of(trace, settings, task);
  if (!plan.is_ok()) return complain(plan.status());
  const harness::Expansion& expansion = plan.value().expansion;
  for (const std::vector<Case>& cell : plan.value().cells) {
    const Status there = check_slow_ranks(settings.conditions, cell.front().ranks);
    if (!there.is_ok()) return complain(there);
  }
  if (only_lists) return list(plan.value(), settings);
  const harness::Places places = harness::places_here();
  for (const harness::Cell& cell : expansion.cells) {
    // Each machine sees for itself.
    if (!settings.conditions.topology.hosts.empty() || settings.reach.joined != nullptr) break;
    const int hosts = sweep.ranks_as->runners(cell.ranks);
    const auto masks = harness::masks_for(settings.conditions.topology.bind, hosts, places);
    if (!masks.is_ok()) return complain(error(masks.status().code(), "--bind: {}", masks.status().message()));
  }
  harness::OutputFiles page;
  if (!settings.html.empty()) {
    if (const Status status = check_report_files({.html = settings.html, .png = {}, .svg = {}}, page);
        !status.is_ok()) {
      return complain(status);
    }
    warn_without_drawing();
  }
  auto reports = Reports::open(settings, expansion);
  if (!reports.is_ok()) return complain(reports.status());

  if (const Status flight = check_flight(settings); !flight.is_ok()) return complain(flight);
  JobsRequest request = request_of(settings);
  request.flight = settings.flight;
  request.cells = std::move(plan.value().cells);
  if (sweep.budget) task.end_ns = harness::monotonic_ns() + sweep.budget->count();
  request.spec.task = task;

  const auto starters = starters_of(request.cells, sweep.ranks_as, request.reach);
  if (!starters.is_ok()) return complain(starters.status());
  harness::Topologies topologies(request.spec.conditions, transport_directories());
  const auto cells = resolved(request.cells, topologies);
  if (!cells.is_ok()) return complain(cells.status());
  reports.value().lay_out(cells.value(), starters.value().size());

  Progress progress(task.end_ns);
  const int code = run_jobs(
      request, {.on_begin =
                    [&](const std::vector<Case>& cell, std::size_t index, std::size_t of) {
                      if (!settings.is_quiet) progress.begin(cell.front(), index, of);
                    },
                .on_cell =
                    [&](const std::vector<Row>& rows) {
                      progress.clear();
                      progress.add(rows);
                      reports.value().add(rows);
                      return Status();
                    },
                .on_facts = [&](int ranks, const std::string& facts) { reports.value().add_facts(ranks, facts); },
                .on_samples =
                    [&](std::string_view lines) {
                      reports.value().add_samples(lines);
                      return Status();
                    },
                .on_ranks = [&](const harness::RankTally& tally,
                                const std::vector<std::string>& hosts) { reports.value().add_ranks(tally, hosts); },
                .on_hosts = [&](const std::vector<harness::HostInfo>& all) { reports.value().add_machines(all); },
                .on_left_out =
                    [&](const harness::LeftOut& item) {
                      progress.clear();
                      reports.value().leave_out(item);
                    },
                .on_diagnosis = [&](const harness::FailedJob& one) { reports.value().add_diagnosis(one); }});
  progress.clear();
  reports.value().tell_ranks();
  if (code == exit_ok) reports.value().finish();
  if (code == exit_ok || reports.value().has_rows()) reports.value().print_end();
  reports.value().close();
  const int found = reports.value().exit_code(code, settings.requires_a_result);
  if (settings.html.empty() || !reports.value().has_rows()) return found;
  const Status drawn = reports.value().draw(settings, page);
  if (drawn.is_ok()) return found;
  const int lost = complain(error(drawn.code(), "--html: {}", drawn.message()));
  if (found != exit_ok) return found;
  return drawn.code() == Code::aborted ? exit_interrupted : lost;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("run", "sweep, verify, measure, report");
  command->footer(
      "Example: tutti run all_reduce broadcast --backends tutti,openmpi --ranks 2 --sizes 8:16M:x8 --csv out.csv");
  auto options = std::make_shared<SweepOptions>(*command, std::vector<OptionChoice>{});
  command->get_option("--algorithms")->transform(CLI::Validator(add_files, ""));
  auto asked = std::make_shared<RunOptions>();
  add_trace_options(*command, asked->trace);
  add_contention_options(*command, asked->contention);
  command->add_flag("--list", asked->only_lists,
                    "print the cells that would run and an estimate of the time; run nothing");
  command->callback([&action, options, command, asked] {
    action = [options, command, asked] { return run(*options, *command, *asked); };
  });
}

}  // namespace tutti::program

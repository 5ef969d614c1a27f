// SPDX-License-Identifier: Apache-2.0
// `tutti accept`: which nodes of a cluster may be trusted, and which part of which node may not.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/accept/acceptance.h"
#include "harness/accept/journal.h"
#include "harness/accept/rails.h"
#include "harness/accept/sentences.h"
#include "harness/accept/table.h"
#include "harness/accept/without.h"
#include "harness/cases/sweep.h"
#include "harness/process/interrupts.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "harness/text/text.h"
#include "impl/types/printable.h"
#include "src/accept_command.h"
#include "src/accept_files.h"
#include "src/accept_inventory.h"
#include "src/accept_nodes.h"
#include "src/accept_plan.h"
#include "src/join.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;
using Clock = std::chrono::steady_clock;

/// Shows where it is, and says when it is time to stop.
class Watcher final : public accept::Observer {
 public:
  Watcher(accept::JournalCrew& journal, const HostsCrew* on_hosts, std::optional<Clock::time_point> end, bool is_quiet)
      : journal_(journal), on_hosts_(on_hosts), end_(end), is_quiet_(is_quiet), progress_(0) {}

  void on_round(std::string_view stage, int done, int planned) override {
    journal_.set_round(stage, done);
    if (is_quiet_) return;
    if (stage != std::exchange(stage_, std::string(stage))) progress_.begin_stage();
    const char* const most = stage == accept::kRepeatStage ? "at most " : "";
    progress_.show(fmt::format("accept: {} {} of {}{} rounds{}", stage, done, most, planned, journal_.running().news()),
                   planned > 0 ? static_cast<double>(done) / planned : 0);
  }
  [[nodiscard]] bool is_stopped() override {
    return interrupts_.signal() != 0 || is_over_budget() || !failure().is_ok();
  }

  [[nodiscard]] bool is_over_budget() const { return end_ && Clock::now() >= *end_; }
  [[nodiscard]] int signal() const { return interrupts_.signal(); }
  void fail(Status failure) { failure_ = std::move(failure); }
  /// Of the lines that could not be written, or of a test that cannot be played.
  [[nodiscard]] const Status& failure() const {
    return failure_.is_ok() && on_hosts_ != nullptr ? on_hosts_->failure() : failure_;
  }
  void clear() { progress_.clear(); }

 private:
  accept::JournalCrew& journal_;
  const HostsCrew* on_hosts_;  ///< null: none is there
  std::optional<Clock::time_point> end_;
  bool is_quiet_;
  Progress progress_;
  std::string stage_;
  harness::Interrupts interrupts_;
  Status failure_;
};

int exit_code_of_report(const accept::AcceptReport& report) {
  using accept::Conclusion;
  switch (conclusion_of(report)) {
    case Conclusion::wrong:
      return exit_wrong;
    case Conclusion::broken:
      return exit_crash;
    case Conclusion::slow:
      return exit_slower;
    case Conclusion::untested:
    case Conclusion::interrupted:
      return exit_environment;
    case Conclusion::undecided:
      return exit_undecided;
    case Conclusion::passed:
      return exit_ok;
  }
  return exit_usage;
}

/// Whether the exit code is of a part that failed.
bool has_failed(int code) { return code == exit_wrong || code == exit_slower || code == exit_crash; }

/// As Nagios wants it: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
int nagios_code_of(int code) {
  constexpr int kWarning = 1, kCritical = 2, kUnknown = 3;
  if (code == exit_ok) return code;
  if (code == exit_undecided) return kWarning;
  return has_failed(code) ? kCritical : kUnknown;
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Which leaves its nodes hang on, and what the pretended one is.
std::string cluster_text(const OwnedCrew& owned) {
  std::string leaves;
  for (int node = 0; owned.are_leaves_known && node < owned.crew->nodes(); ++node) {
    leaves += fmt::format("{} ", owned.crew->leaf_of(node));
  }
  const std::hash<std::string> hash;
  return fmt::format("leaves {}{}", leaves.empty() ? "not known" : fmt::format("{:x}", hash(leaves)),
                     owned.is_pretended ? fmt::format(", pretended {:x}", hash(owned.pretended)) : "");
}

/// Hosts are not started for a forecast.
int list(const AcceptRequest& request, accept::AcceptPlan plan) {
  int nodes = static_cast<int>(request.places.conditions.topology.hosts.size());
  plan.rails = static_cast<int>(request.places.reach.rails.size());
  if (nodes == 0) {
    const auto owned = crew_of(request, plan);
    if (!owned.is_ok()) return complain(owned.status());
    nodes = owned.value().crew->nodes();
    plan.rails = static_cast<int>(owned.value().crew->rails().size());
  }
  harness::print("{}", forecast_text(nodes, plan, !request.pretend.empty()));
  return exit_ok;
}

int run_accept(AcceptRequest& request) {
  auto plan = plan_of(request);
  if (!plan.is_ok()) return complain(plan.status());
  std::optional<Clock::time_point> end;
  if (!request.budget.empty()) {
    const auto budget = of_flag("--budget", harness::parse_duration(request.budget));
    if (!budget.is_ok()) return complain(budget.status());
    end = Clock::now() + budget.value();
  }
  if (request.only_lists) return list(request, plan.value());
  harness::OutputFiles files;
  if (const Status status = open_files(request, files); !status.is_ok()) return complain(status);
  Inventory inventory = inventory_of(request, plan.value());
  auto owned = crew_of(request, plan.value());
  if (!owned.is_ok()) return complain(owned.status());
  if (request.places.reach.joined != nullptr) {
    auto of_joined = inventory_of_joined(*owned.value().on_hosts, plan.value());
    if (!of_joined.is_ok()) return complain(of_joined.status());
    inventory = std::move(of_joined).value();
  }
  accept::Without without(*owned.value().crew, std::move(inventory.kept_out));
  CommandCrew crew(without, plan.value().job, end);
  const bool is_quiet = request.is_quiet || request.is_nagios;
  const std::array outputs{request.json, request.junit, request.prometheus, request.lines};
  const auto on_stdout = std::ranges::count(outputs, harness::kStdoutPath);
  if (on_stdout > 1 || (on_stdout == 1 && request.is_nagios)) {
    return complain(
        error(Code::invalid_argument, "'-', stdout, takes one of --json, --junit, --prometheus, --lines and --nagios"));
  }
  const harness::Console::Place place = is_quiet        ? harness::Console::Place::nowhere
                                        : on_stdout > 0 ? harness::Console::Place::to_stderr
                                                        : harness::Console::Place::to_stdout;
  harness::Console console(place);
  plan.value().left_out = owned.value().left_out;
  plan.value().rails = static_cast<int>(crew.rails().size());
  plan.value().pairs.are_leaves_known = owned.value().are_leaves_known || !crew.rails().empty();
  if (const Status fits = check_baseline(plan.value(), crew.rails()); !fits.is_ok()) return complain(fits);
  console.print(forecast_text(crew.nodes(), plan.value(), owned.value().is_pretended));

  accept::JournalHead head{.build = build_text(),
                           .nodes = {},
                           .plan = plan_text(request, plan.value(), cluster_text(owned.value())),
                           .began_s = seconds_now()};
  for (int node = 0; node < crew.nodes(); ++node) head.nodes.push_back(crew.name_of(node));
  std::optional<harness::LineFile> lines;
  Watcher* watcher = nullptr;
  accept::JournalCrew::Write write;
  if (!request.lines.empty() || !request.resume.empty()) {
    write = [&](std::string_view line) {
      const Status status = lines->append(line);
      if (!status.is_ok() && watcher != nullptr) watcher->fail(status);
    };
  }
  accept::JournalCrew journal(crew, write, plan.value().pairs.limits.margin);
  auto opened = journal_of(request, journal, head);
  if (!opened.is_ok()) return complain(opened.status());
  lines = std::move(opened).value();
  Watcher own_watcher(journal, owned.value().on_hosts, end, is_quiet);
  watcher = &own_watcher;
  if (request.resume.empty()) journal.begin(head);

  const std::int64_t began = seconds_now();
  accept::AcceptReport report = accept_cluster(journal, plan.value(), own_watcher);
  own_watcher.clear();
  report.are_leaves_known = owned.value().are_leaves_known || !report.findings.leaves.empty();
  report.is_pretended = owned.value().is_pretended;
  report.inventory = std::move(inventory.notes);
  report.command = command_line();
  report.build = head.build;
  report.began_s = began;
  report.ended_s = seconds_now();
  if (owned.value().on_hosts != nullptr) report.init = owned.value().on_hosts->init();
  if (journal.taken_over() > 0) {
    console.print(fmt::format("# {} tests are taken from {}\n", journal.taken_over(), request.resume));
  }
  console.print(accept_table(report));
  console.print(excluded_text(request, report));
  if (request.is_nagios) {
    const std::string_view conclusion = to_string(conclusion_of(report));
    std::string sentence = verdict_sentence(report);
    if (sentence.starts_with(conclusion)) sentence.erase(0, conclusion.size() + 2);  // it says it itself
    harness::print("TUTTI {}: {}\n", conclusion, harness::text::one_line(printable(sentence)));
    request.has_concluded = true;
  }
  const Status written = write_files(request, report, files);
  if (!written.is_ok()) complain(written);
  if (!own_watcher.failure().is_ok()) return complain(own_watcher.failure());
  const int code = exit_code_of_report(report);
  if (own_watcher.signal() != 0 && !request.is_nagios) {
    complain(error(Code::aborted, "{}", harness::interruption_text(own_watcher.signal())));
    return has_failed(code) ? code : exit_interrupted;  // what was found stays found
  }
  if (own_watcher.is_over_budget() && report.findings.is_interrupted) {
    complain(error(Code::unavailable, "--budget: {} are over; what is missing was not tested", request.budget));
  }
  if (code == exit_ok && !written.is_ok()) return exit_code_of(written);
  if (code == exit_ok && !console.failure().is_ok()) return complain(console.failure());
  return code;
}

/// `options` says where the nodes are.
int accept_at(const SweepOptions& options, AcceptRequest& request) {
  auto settings = options.settings({});
  if (!settings.is_ok()) return complain(settings.status());
  request.places = std::move(settings).value();
  if (!request.rails.empty()) {
    auto rails = of_flag("--rails", accept::parse_rails(request.rails));
    if (!rails.is_ok()) return complain(rails.status());
    request.places.reach.rails = std::move(rails).value();
  }
  if (request.pretend.empty()) {
    const Joining joining = join_crew(request.places, request.only_lists);
    if (joining.exit_code) return *joining.exit_code;
  }
  return run_accept(request);
}

}  // namespace

void add_accept(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("accept", "which nodes of a cluster may be trusted, and which part of which may not");
  command->footer(
      "Example: tutti accept --pretend cluster.toml --exclude cluster\n"
      "Exit codes: 0 all passed; 1 wrong data; 3 a node was not reached; 4 a part is slow, or too fast; 5 a node is "
      "dead, or a pair hangs; 6 undecided; 130 interrupted");
  auto request = std::make_shared<AcceptRequest>();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help,
                       const char* usual = "") {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    option->check(CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, ""));
    if (!value.empty()) option->default_str(value);
    if (*usual != '\0') option->default_str(usual);
  };
  add("--pretend", request->pretend, "FILE", "a cluster in TOML with faults that you choose, in place of hosts");
  add("--leaves", request->leaves, "N|FILE",
      "nodes per leaf switch, in the order of the hosts; or a file with a line `NODE LEAF` per node (default: of each "
      "host's SLURM_TOPOLOGY_ADDR, where srun has set it)");
  add("--rails", request->rails, "LIST",
      "interfaces, or networks, one per rail: pairs and shifts play on each, and verdicts are per node and rail");
  add("--suite", request->suite, "FILE", "stages and limits in TOML; an option goes before what the file says");
  add("--stages", request->stages, "LIST",
      fmt::format("of {} (default: all of them)", fmt::join(accept::all_stages(), ", ")));
  add("--margin", request->margin, "SHARE", "slower than the fleet by more is a fault", "5%");
  add("--too-fast", request->too_fast, "SHARE", "faster than the fleet by more is a fault: another path, loopback",
      "10%");
  command->add_flag("--full", request->is_full, "every pair, also above 128 nodes (default there: 64 rounds of pairs)");
  add("--message-size", request->message_size, "BYTES", "of a message between two nodes; 8 are under way at a time",
      "1M");
  add("--ranks-per-node", request->ranks_per_node, "N",
      "ranks on each node in groups and soaks, and alone if they are 2 or more; pairs and rings have one");
  add("--backend", request->backend, "NAME",
      "what plays: tutti, or a reference; an MPI or NCCL plays groups, soak and job, and tutti the other stages");
  add("--transport", request->transport, "NAME", "of tutti between the hosts, see `tutti list`");
  add("--soak", request->soak, "TIME", "how long all nodes play drawn mixes of verified operations", "60s");
  add("--baseline", request->baseline, "FILE", "the --json of an accepted run: finds a fleet that is slow as a whole");
  add("--budget", request->budget, "TIME", "stop then, and report what is done");
  add("--seed", request->seed, "N", "of orders of pairs and rings, and of the choice of controls", "1");
  add("--lines", request->lines, "FILE", "write a line of JSON per test as it finishes");
  add("--resume", request->resume, "FILE",
      "go on with the lines of a run that was cut off, of the same hosts and plan");
  add("--exclude", request->exclude, "PREFIX",
      "write PREFIX.exclude.hosts, those that passed, and PREFIX.exclude.slurm, options and commands to review");
  add("--json", request->json, "FILE", "write what was found as JSON: a baseline for another day");
  add("--html", request->html, "FILE", "draw one page of what was found, at the end");
  add("--junit", request->junit, "FILE", "write JUnit XML: a suite per stage, a case per node, leaf and failed part");
  add("--prometheus", request->prometheus, "FILE", "write metrics as text at the end");
  command->add_flag("--list", request->only_lists, "print the forecast, and play nothing");
  command->add_flag("--nagios", request->is_nagios, "one line, and the exit codes of a Nagios plugin: 0, 1, 2 or 3");
  command->add_flag("--quiet", request->is_quiet, "no table and no progress: errors, the files and the exit code");
  std::vector<OptionChoice> choices = choices_of_hosts();
  choices.emplace_back("--timeout", "",
                       "of an operation, and for a host to come; a pair has five times what others took");
  choices.emplace_back("--init", "", "");
  auto places = std::make_shared<SweepOptions>(*command, choices, std::span<const Collective>());
  command->callback([&action, request, places] {
    action = [request, places] {
      const int code = accept_at(*places, *request);
      if (request->is_nagios && !request->has_concluded) harness::print("{}", kNagiosUnknown);
      return request->is_nagios ? nagios_code_of(code) : code;
    };
  });
}

}  // namespace tutti::program

// SPDX-License-Identifier: Apache-2.0
// `tutti accept`: which nodes of a cluster may be trusted, and which part of which node may not.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/accept/acceptance.h"
#include "harness/accept/baseline.h"
#include "harness/accept/cluster_file.h"
#include "harness/accept/exports.h"
#include "harness/accept/journal.h"
#include "harness/accept/leaves.h"
#include "harness/accept/pretend.h"
#include "harness/accept/rails.h"
#include "harness/accept/sentences.h"
#include "harness/accept/suite_file.h"
#include "harness/accept/table.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/cases/transports.h"
#include "harness/doctor/hosts_diagnosis.h"
#include "harness/machine/allowed_cores.h"
#include "harness/process/interrupts.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/number.h"
#include "harness/text/output_file.h"
#include "harness/text/read_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/accept_crew.h"
#include "src/doctor.h"
#include "src/join.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/report.h"
#include "src/transports.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;
using Clock = std::chrono::steady_clock;

// Guesses in s, before anything has been played: a round on a quick network, and one on a slow one; the start of the
// hosts, their inventory and their end.
constexpr double kQuickRound = 0.2, kSlowRound = 1.5, kSlowStart = 5;
constexpr double kMostBusy = 16;

struct AcceptRequest {
  std::string pretend, leaves, rails, stages, resume, lines, json, html, junit, prometheus, exclude, budget, baseline;
  std::string suite, margin, too_fast, seed, message_size, soak;  ///< empty: as the suite says, or as usual
  std::string backend = std::string(harness::kOwnBackend), transport, ranks_per_node = "1";
  bool is_full = false;
  bool only_lists = false;
  bool is_nagios = false;
  bool is_quiet = false;
  Settings places;  ///< where the hosts are

  [[nodiscard]] std::string hosts_path() const { return exclude.empty() ? "" : exclude + ".exclude.hosts"; }
  [[nodiscard]] std::string slurm_path() const { return exclude.empty() ? "" : exclude + ".exclude.slurm"; }
};

/// "5%" or "5" as 0.05.
Result<double> parse_share(std::string_view text, std::string_view flag) {
  constexpr double kLeast = 100 * accept::kLeastMargin, kMost = 100 * accept::kMostMargin;  // percent
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const std::optional<double> percent = harness::text::number_in<double>(digits);
  if (percent && *percent >= kLeast && *percent <= kMost) return *percent / 100;
  const double nearest = percent ? std::clamp(*percent, kLeast, kMost) : 5;
  return error(Code::invalid_argument, "{}: '{}' is no share from {:g}% to {:g}%: did you mean '{:g}%'?", flag,
               shown(text), kLeast, kMost, nearest);
}

/// The crew, and what makes it.
struct OwnedCrew {
  std::unique_ptr<accept::Crew> crew;
  const HostsCrew* on_hosts = nullptr;               ///< where it is one; within `crew`
  std::map<std::string, std::string> left_out = {};  ///< see stages_without
  bool are_leaves_known = false;
  bool is_pretended = false;
};

/// The nodes of `crew` on other leaves.
class OnLeaves final : public accept::Crew {
 public:
  OnLeaves(std::unique_ptr<accept::Crew> crew, std::vector<int> leaves)
      : crew_(std::move(crew)), leaves_(std::move(leaves)) {}
  [[nodiscard]] int nodes() const override { return crew_->nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_->name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return leaves_.at(static_cast<std::size_t>(node)); }
  [[nodiscard]] std::string absence_of(int node) const override { return crew_->absence_of(node); }
  [[nodiscard]] std::vector<std::string> rails() const override { return crew_->rails(); }
  [[nodiscard]] std::string library() const override { return crew_->library(); }
  [[nodiscard]] bool plays_library(accept::Measure measure) const override { return crew_->plays_library(measure); }
  [[nodiscard]] std::string bare_system() const override { return crew_->bare_system(); }
  [[nodiscard]] std::string absence_of_rail(int node, int rail) const override {
    return crew_->absence_of_rail(node, rail);
  }
  [[nodiscard]] std::vector<std::vector<accept::Outcome>> play(const std::vector<accept::Group>& groups,
                                                               const std::vector<accept::Test>& tests) override {
    return crew_->play(groups, tests);
  }
  void pause() override { crew_->pause(); }

 private:
  std::unique_ptr<accept::Crew> crew_;
  std::vector<int> leaves_;
};

/// `16`, or the name of a file.
Result<std::vector<int>> leaves_of(const std::string& text, const std::vector<std::string>& names) {
  const bool is_number = text.find_first_not_of("0123456789") == text.npos;
  if (is_number) {
    TUTTI_ASSIGN_OR_RETURN(const int size, parse_number(text, "a number of nodes", 1, 1'000'000));
    return accept::leaves_of_size(static_cast<int>(names.size()), size);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string content, harness::read_file(text, harness::kMostInList));
  auto leaves = accept::leaves_from_file(content, names);
  if (leaves.is_ok()) return leaves;
  return error(leaves.status().code(), "'{}': {}", shown(text), leaves.status().message());
}

/// The crew on the leaves that --leaves says, if it does.
Result<OwnedCrew> on_leaves(OwnedCrew owned, const AcceptRequest& request) {
  if (request.leaves.empty()) return owned;
  std::vector<std::string> names;
  for (int node = 0; node < owned.crew->nodes(); ++node) names.push_back(owned.crew->name_of(node));
  TUTTI_ASSIGN_OR_RETURN(std::vector<int> leaves, of_flag("--leaves", leaves_of(request.leaves, names)));
  owned.crew = std::make_unique<OnLeaves>(std::move(owned.crew), std::move(leaves));
  owned.are_leaves_known = true;
  return owned;
}

Result<PlayedSystem> system_of(const AcceptRequest& request) {
  PlayedSystem system{.backend = request.backend, .transport = request.transport};
  if (system.transport.empty()) system.transport = harness::transport_between_hosts().name;
  constexpr int kMostRanks = 1024;
  TUTTI_ASSIGN_OR_RETURN(
      system.ranks_per_node,
      of_flag("--ranks-per-node", parse_number(request.ranks_per_node, "a number of ranks", 1, kMostRanks)));
  if (system.backend != harness::kOwnBackend) {
    TUTTI_RETURN_IF_ERROR(of_flag("--backend", path_of_backend(system.backend, true)).status());
    TUTTI_ASSIGN_OR_RETURN(Starter starter, of_flag("--backend", starter_of(system.backend)));
    if (starter.command && starter.command->across.empty()) {
      return error(Code::unavailable, "--backend: the start command of '{}' starts no ranks on several hosts",
                   shown(system.backend));
    }
    if (starter.command && request.places.reach.joined != nullptr) {
      return error(Code::invalid_argument,
                   "--backend: '{}' starts the ranks of each group by its mpirun, and these processes are {}'s: start "
                   "`tutti accept --hosts LIST` once, by itself",
                   shown(system.backend), request.places.reach.joined->starter);
    }
    system.starter = std::move(starter);
  }
  TUTTI_ASSIGN_OR_RETURN(const Transport* const transport,
                         of_flag("--transport", harness::transport_for(system.transport, harness::RanksAs::processes,
                                                                       transport_directories())));
  if (transport->spans_hosts) return system;
  return error(Code::invalid_argument, "--transport: '{}' stays within a host: did you mean '{}'?", system.transport,
               harness::transport_between_hosts().name);
}

/// The cluster has these rails only, in their order. Errors: invalid_argument: it has no such rail.
Result<accept::PretendedCluster> with_rails(accept::PretendedCluster cluster, const std::string& text) {
  if (text.empty()) return cluster;
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> rails, accept::parse_rails(text));
  if (cluster.rails.empty()) {
    return error(Code::invalid_argument, "the pretended cluster has none: write `rails = [\"{}\"]` into its file",
                 fmt::join(rails, "\", \""));
  }
  std::vector<accept::Fault> faults;
  for (const std::string& name : rails) {
    if (std::ranges::find(cluster.rails, name) == cluster.rails.end()) return unknown_name("rail", name, cluster.rails);
  }
  for (accept::Fault& fault : cluster.faults) {
    if (fault.rail != accept::kNoRail) {
      const auto kept = std::ranges::find(rails, cluster.rails.at(static_cast<std::size_t>(fault.rail)));
      if (kept == rails.end()) continue;
      fault.rail = static_cast<int>(kept - rails.begin());
    }
    faults.push_back(fault);
  }
  cluster.rails = std::move(rails);
  cluster.faults = std::move(faults);
  return cluster;
}

Result<OwnedCrew> crew_of(const AcceptRequest& request) {
  OwnedCrew owned;
  const bool has_hosts = !request.places.conditions.topology.hosts.empty();
  if (request.pretend.empty() && !has_hosts) {
    return error(Code::invalid_argument, "`tutti accept` needs --hosts LIST, or --pretend FILE for a trial");
  }
  if (has_hosts) {
    if (!request.pretend.empty()) {
      return error(Code::invalid_argument, "--pretend: with --hosts the cluster is a real one; leave one of them out");
    }
    TUTTI_ASSIGN_OR_RETURN(PlayedSystem system, system_of(request));
    owned.left_out = stages_without(system);
    TUTTI_ASSIGN_OR_RETURN(auto on_hosts, HostsCrew::start(request.places, std::move(system)));
    owned.on_hosts = on_hosts.get();
    owned.are_leaves_known = on_hosts->are_leaves_known();
    owned.crew = std::move(on_hosts);
    return on_leaves(std::move(owned), request);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         of_flag("--pretend", harness::read_file(request.pretend, harness::kMostInSuite)));
  auto cluster = accept::cluster_from_toml(text);
  if (!cluster.is_ok()) {
    return error(cluster.status().code(), "--pretend: '{}': {}", shown(request.pretend), cluster.status().message());
  }
  TUTTI_ASSIGN_OR_RETURN(accept::PretendedCluster kept,
                         of_flag("--rails", with_rails(std::move(cluster).value(), request.rails)));
  owned.crew = std::make_unique<accept::PretendedCrew>(std::move(kept));
  owned.is_pretended = owned.are_leaves_known = true;
  return on_leaves(std::move(owned), request);
}

Result<std::vector<std::string>> stages_of(const std::string& text) {
  if (text.empty()) return accept::all_stages();
  std::vector<std::string> stages;
  for (const std::string_view name : harness::split(text, ',')) {
    const auto& all = accept::all_stages();
    if (std::ranges::find(all, name) == all.end()) return unknown_name("stage", name, all);
    stages.emplace_back(name);
  }
  return stages;
}

Result<accept::AcceptPlan> suite_of(const std::string& path) {
  if (path.empty()) return accept::AcceptPlan();
  TUTTI_ASSIGN_OR_RETURN(const std::string text, of_flag("--suite", harness::read_file(path, harness::kMostInSuite)));
  auto plan = accept::plan_from_toml(text);
  if (plan.is_ok()) return plan;
  return error(plan.status().code(), "--suite: '{}': {}", shown(path), plan.status().message());
}

/// What an option says goes before what the suite says.
Result<accept::AcceptPlan> plan_of(const AcceptRequest& request) {
  TUTTI_ASSIGN_OR_RETURN(accept::AcceptPlan plan, suite_of(request.suite));
  if (!request.stages.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.stages, of_flag("--stages", stages_of(request.stages)));
  }
  if (!request.margin.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.limits.margin, parse_share(request.margin, "--margin"));
  }
  if (!request.too_fast.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.limits.too_fast, parse_share(request.too_fast, "--too-fast"));
  }
  if (!request.seed.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.seed, of_flag("--seed", parse_number<std::uint64_t>(request.seed, "a seed", 0,
                                                                                          std::uint64_t{1} << 62)));
  }
  plan.pairs.is_full |= request.is_full;
  if (!request.message_size.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes,
                           of_flag("--message-size", harness::parse_sizes(request.message_size)));
    if (sizes.size() != 1 || sizes.front() < 1 || sizes.front() > accept::kMostMessage) {
      return error(Code::invalid_argument, "--message-size: '{}' is no size from 1 to 1G: did you mean '1M'?",
                   shown(request.message_size));
    }
    plan.pairs.bytes = static_cast<std::size_t>(sizes.front());
  }
  if (!request.soak.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const auto soak, of_flag("--soak", harness::parse_duration(request.soak)));
    plan.soak_seconds = std::chrono::duration<double>(soak).count();
  }
  if (!request.baseline.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           of_flag("--baseline", harness::read_file(request.baseline, harness::kMostInResult)));
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.baseline, of_flag("--baseline", accept::baseline_from_json(text)));
  }
  return plan;
}

/// What the tests depend on: a journal of another plan has other tests.
std::string plan_text(const AcceptRequest& request, const accept::AcceptPlan& plan) {
  return fmt::format(
      "{} over {}, {} ranks a node, rails {}, stages {}, not blocking {}, soak {:g} s, margin {:g}, too fast {:g}, "
      "seed {}, {} "
      "pairs, {} B",
      request.backend, request.transport.empty() ? "usual" : request.transport, request.ranks_per_node,
      request.rails.empty() ? "usual" : request.rails, fmt::join(plan.stages, ","), fmt::join(plan.not_blocking, ","),
      plan.soak_seconds, plan.pairs.limits.margin, plan.pairs.limits.too_fast, plan.pairs.seed,
      plan.pairs.is_full ? "all" : "usual", plan.pairs.bytes);
}

std::string time_text(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

/// How many processes want a core of this machine, for each that there is; at least 1. It starts each group, and is
/// mostly one of the nodes, so rounds take longer if it is busy.
double busyness() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return 1;
  return std::clamp(load / static_cast<double>(harness::allowed_cores().size()), 1.0, kMostBusy);
}

/// "# 64 nodes: alone 16 rounds, pairs 63 rounds and up to 72 of repeats, at 0.5 to 1.5 s a round: 40 s to
/// 3.8 min. ...".
std::string forecast_text(int nodes, const accept::AcceptPlan& plan, bool is_pretended) {
  const accept::Rounds rounds = rounds_of(plan, nodes);
  std::vector<std::string> words;
  if (rounds.alone > 0) words.push_back(fmt::format("alone {} rounds", rounds.alone));
  if (rounds.pairs > 0) {
    const std::string repeats = rounds.repeats > 0 ? fmt::format(" and up to {} of repeats", rounds.repeats) : "";
    words.push_back(fmt::format("pairs {} rounds{}", rounds.pairs, repeats));
  }
  const auto add = [&words](const char* stage, int count) {
    if (count > 0) words.push_back(fmt::format("{} {}", stage, count));
  };
  add("shifts", rounds.shifts);
  add("rings", rounds.rings);
  add("groups", rounds.groups);
  if (nodes >= 2 && std::ranges::find(plan.stages, "job") != plan.stages.end()) words.emplace_back("job");
  const bool has_soak = nodes >= 2 && std::ranges::find(plan.stages, "soak") != plan.stages.end();
  if (has_soak) words.push_back(fmt::format("soak {}", time_text(plan.soak_seconds)));
  if (words.empty()) words.emplace_back("nothing to play");
  const double soak = has_soak ? plan.soak_seconds : 0;
  const int played = rounds.alone + rounds.pairs + rounds.shifts + rounds.rings + rounds.groups;
  const double busy = is_pretended ? 1 : busyness();
  const double most = busy * (kSlowStart + kSlowRound * (played + rounds.repeats)) + soak;
  const std::string why = busy > 1 ? fmt::format(" (this machine is busy: {:.1f} processes a core)", busy) : "";
  return fmt::format("# {}: {}, at {:.1f} to {:.1f} s a round{}: {} to {}. ^C or SIGTERM: report of what is done.\n",
                     harness::counted(nodes, "node"), fmt::join(words, ", "), kQuickRound, busy * kSlowRound, why,
                     time_text(kQuickRound * played + soak), time_text(most));
}

/// Shows where it is, and says when it is time to stop.
class Watcher final : public accept::Observer {
 public:
  Watcher(accept::JournalCrew& journal, std::optional<Clock::time_point> end, bool is_quiet)
      : journal_(journal), end_(end), is_quiet_(is_quiet), progress_(0) {}

  void on_round(std::string_view stage, int done, int planned) override {
    journal_.set_round(stage, done);
    if (is_quiet_) return;
    progress_.show(fmt::format("accept: {} {}/{} rounds", stage, done, planned),
                   planned > 0 ? static_cast<double>(done) / planned : 0);
  }
  [[nodiscard]] bool is_stopped() override {
    return interrupts_.signal() != 0 || is_over_budget() || !failure_.is_ok();
  }

  [[nodiscard]] bool is_over_budget() const { return end_ && Clock::now() >= *end_; }
  [[nodiscard]] int signal() const { return interrupts_.signal(); }
  void fail(Status failure) { failure_ = std::move(failure); }
  [[nodiscard]] const Status& failure() const { return failure_; }
  void clear() { progress_.clear(); }

 private:
  accept::JournalCrew& journal_;
  std::optional<Clock::time_point> end_;
  bool is_quiet_;
  Progress progress_;
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

/// As Nagios wants it: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
int nagios_code_of(int code) {
  constexpr int kWarning = 1, kCritical = 2, kUnknown = 3;
  if (code == exit_ok) return code;
  if (code == exit_undecided) return kWarning;
  return code == exit_wrong || code == exit_slower || code == exit_crash ? kCritical : kUnknown;
}

/// Every file is opened before anything is measured.
Status open_files(const AcceptRequest& request, harness::OutputFiles& files) {
  for (const std::string& path :
       {request.json, request.junit, request.prometheus, request.hosts_path(), request.slurm_path()}) {
    TUTTI_RETURN_IF_ERROR(files.open(path));
  }
  if (request.html.empty()) return {};
  TUTTI_RETURN_IF_ERROR(check_report_files({.html = request.html, .png = {}, .svg = {}}, files));
  warn_without_drawing();
  return {};
}

Status write_files(const AcceptRequest& request, const accept::AcceptReport& report, harness::OutputFiles& files) {
  Status first;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    const Status status = files.replace(path, text);
    if (first.is_ok()) first = status;
  };
  write(request.json, accept_json(report));
  write(request.junit, accept_junit(report));
  write(request.prometheus, accept_prometheus(report));
  write(request.hosts_path(), hosts_file(report));
  write(request.slurm_path(), slurm_file(report, request.html));
  if (!request.html.empty()) {
    const Status drawn = make_accept_page(accept_json(report), request.html, files);
    if (first.is_ok()) first = drawn;
  }
  return first;
}

std::string excluded_text(const AcceptRequest& request, const accept::AcceptReport& report) {
  std::vector<std::string> names;
  for (int node = 0; node < std::ssize(report.names); ++node) {
    if (is_excluded(report, node)) names.push_back(report.names[static_cast<std::size_t>(node)]);
  }
  const std::string files =
      request.exclude.empty() ? "" : fmt::format(": {}, {}", request.hosts_path(), request.slurm_path());
  if (names.empty()) return files.empty() ? "" : fmt::format("# exclude: none{}\n", files);
  return fmt::format("# exclude: {}{}\n", fmt::join(names, " "), files);
}

/// What differs between the hosts, and what would spoil a measurement there. A starter has started the hosts' processes
/// where there is no agent; then nothing is known but their builds.
std::vector<accept::InventoryNote> inventory_of(const AcceptRequest& request, const accept::AcceptPlan& plan) {
  const bool is_asked = std::ranges::find(plan.stages, "inventory") != plan.stages.end();
  if (!is_asked || !request.pretend.empty() || request.places.reach.joined != nullptr) return {};
  const auto visits = visit_hosts_of(request.places);
  if (!visits.is_ok())
    return {{.severity = "note", .what = std::string(visits.status().message()), .why = {}, .advice = {}}};
  std::vector<accept::InventoryNote> notes;
  for (harness::Symptom& one : harness::findings_of(visits.value())) {
    notes.push_back({.severity = std::string(to_string(one.severity)),
                     .what = std::move(one.what),
                     .why = std::move(one.why),
                     .advice = std::move(one.advice)});
  }
  return notes;
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The journal that is written: a new one, or the one that --resume goes on with.
Result<std::optional<harness::LineFile>> journal_of(const AcceptRequest& request, accept::JournalCrew& crew,
                                                    const accept::JournalHead& head) {
  if (request.resume.empty()) {
    if (request.lines.empty()) return std::optional<harness::LineFile>();
    TUTTI_ASSIGN_OR_RETURN(harness::LineFile file, of_flag("--lines", harness::LineFile::open(request.lines)));
    return std::optional<harness::LineFile>(std::move(file));
  }
  if (!request.lines.empty()) {
    return error(Code::invalid_argument, "--lines: --resume goes on with '{}'; leave --lines out",
                 shown(request.resume));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         of_flag("--resume", harness::read_file(request.resume, harness::kMostInResult)));
  const auto bytes = crew.resume(text, head);
  if (!bytes.is_ok()) {
    return error(bytes.status().code(), "--resume: '{}': {}", shown(request.resume), bytes.status().message());
  }
  TUTTI_ASSIGN_OR_RETURN(harness::LineFile file,
                         of_flag("--resume", harness::LineFile::go_on(request.resume, bytes.value())));
  return std::optional<harness::LineFile>(std::move(file));
}

/// Hosts are not started for a forecast.
int list(const AcceptRequest& request, accept::AcceptPlan plan) {
  int nodes = static_cast<int>(request.places.conditions.topology.hosts.size());
  plan.rails = static_cast<int>(request.places.reach.rails.size());
  if (nodes == 0) {
    const auto owned = crew_of(request);
    if (!owned.is_ok()) return complain(owned.status());
    nodes = owned.value().crew->nodes();
    plan.rails = static_cast<int>(owned.value().crew->rails().size());
  }
  harness::print("{}", forecast_text(nodes, plan, !request.pretend.empty()));
  return exit_ok;
}

/// A baseline has speeds of the rails that play, or of none.
Status check_baseline(const accept::AcceptPlan& plan, const std::vector<std::string>& rails) {
  if (!plan.pairs.baseline || rails.empty()) {
    if (!plan.pairs.baseline || plan.pairs.baseline->rails.empty()) return {};
    return error(Code::invalid_argument, "--baseline: its speeds are of rails: name them with --rails");
  }
  for (const std::string& rail : rails) {
    if (plan.pairs.baseline->rails.contains(rail)) continue;
    return error(Code::invalid_argument, "--baseline: it has no speed of rail '{}'", rail);
  }
  return {};
}

int run_accept(const AcceptRequest& request) {
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
  std::vector<accept::InventoryNote> inventory = inventory_of(request, plan.value());
  auto owned = crew_of(request);
  if (!owned.is_ok()) return complain(owned.status());
  accept::Crew& crew = *owned.value().crew;
  const bool is_quiet = request.is_quiet || request.is_nagios;
  const harness::Console::Place place = is_quiet                               ? harness::Console::Place::nowhere
                                        : request.json == harness::kStdoutPath ? harness::Console::Place::to_stderr
                                                                               : harness::Console::Place::to_stdout;
  harness::Console console(place);
  plan.value().left_out = owned.value().left_out;
  plan.value().rails = static_cast<int>(crew.rails().size());
  if (const Status fits = check_baseline(plan.value(), crew.rails()); !fits.is_ok()) return complain(fits);
  console.print(forecast_text(crew.nodes(), plan.value(), owned.value().is_pretended));

  accept::JournalHead head{.build = build_text(), .nodes = {}, .plan = plan_text(request, plan.value())};
  for (int node = 0; node < crew.nodes(); ++node) head.nodes.push_back(crew.name_of(node));
  std::optional<harness::LineFile> lines;
  Watcher* watcher = nullptr;
  const accept::JournalCrew::Write write = [&](std::string_view line) {
    if (!lines) return;
    const Status status = lines->append(line);
    if (!status.is_ok() && watcher != nullptr) watcher->fail(status);
  };
  accept::JournalCrew journal(crew, write);
  auto opened = journal_of(request, journal, head);
  if (!opened.is_ok()) return complain(opened.status());
  lines = std::move(opened).value();
  Watcher own_watcher(journal, end, is_quiet);
  watcher = &own_watcher;
  if (request.resume.empty()) journal.begin(head);

  const std::int64_t began = seconds_now();
  accept::AcceptReport report = accept_cluster(journal, plan.value(), own_watcher);
  own_watcher.clear();
  report.are_leaves_known = owned.value().are_leaves_known;
  report.is_pretended = owned.value().is_pretended;
  report.inventory = std::move(inventory);
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
    harness::print("TUTTI {}: {}\n", to_string(conclusion_of(report)), verdict_sentence(report));
  }
  const Status written = write_files(request, report, files);
  if (!written.is_ok()) complain(written);
  if (!own_watcher.failure().is_ok()) return complain(own_watcher.failure());
  if (own_watcher.signal() != 0 && !request.is_nagios) {
    complain(error(Code::aborted, "{}", harness::interruption_text(own_watcher.signal())));
    return exit_interrupted;
  }
  if (own_watcher.is_over_budget() && report.findings.is_interrupted) {
    complain(error(Code::unavailable, "--budget: {} are over; what is missing was not tested", request.budget));
  }
  const int code = exit_code_of_report(report);
  if (request.is_nagios) return nagios_code_of(code);
  if (code == exit_ok && !written.is_ok()) return exit_code_of(written);
  if (code == exit_ok && !console.failure().is_ok()) return complain(console.failure());
  return code;
}

}  // namespace

void add_accept(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("accept", "which nodes of a cluster may be trusted, and which part of which may not");
  command->footer(
      "Example: tutti accept --pretend cluster.toml --exclude cluster\n"
      "Exit codes: 0 all passed; 1 wrong data; 3 a node was not reached; 4 a part is slow, or too fast; 5 a node is "
      "dead, or a pair hangs; 6 undecided");
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
  add("--junit", request->junit, "FILE", "write JUnit XML, one case per node, link and uplink");
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
      auto settings = places->settings({});
      if (!settings.is_ok()) return complain(settings.status());
      request->places = std::move(settings).value();
      if (!request->rails.empty()) {
        auto rails = of_flag("--rails", harness::accept::parse_rails(request->rails));
        if (!rails.is_ok()) return complain(rails.status());
        request->places.reach.rails = std::move(rails).value();
      }
      if (request->pretend.empty()) {
        if (const Joining joining = join_crew(request->places, request->only_lists); joining.exit_code) {
          return *joining.exit_code;
        }
      }
      return run_accept(*request);
    };
  });
}

}  // namespace tutti::program

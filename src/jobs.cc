// SPDX-License-Identifier: Apache-2.0
#include "src/jobs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/board/binding.h"
#include "harness/cases/lists.h"
#include "harness/cases/topology.h"
#include "harness/launch/launch.h"
#include "harness/launch/limits.h"
#include "harness/machine/machine.h"
#include "harness/measure/memory.h"
#include "harness/record/launches.h"
#include "harness/record/row_json.h"
#include "harness/record/row_stamp.h"
#include "harness/report/json.h"
#include "harness/text/streams.h"
#include "impl/communicator/communicator.h"
#include "impl/communicator/selection_table.h"
#include "impl/transports/hosts_domain.h"
#include "impl/types/host_list.h"
#include "impl/types/printable.h"
#include "src/failed_start.h"
#include "src/program.h"
#include "src/run_files.h"
#include "src/session_messages.h"
#include "src/starts.h"
#include "src/transports.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Ending;
using harness::Outcome;
using harness::RanksAs;
using harness::Row;
using harness::SessionSpec;

/// Turns one job's messages into calls of the JobsListener.
class Messages final : public SessionMessages {
 public:
  struct Place {
    std::size_t first = 0;  ///< of this job's cells among all
    std::size_t of = 0;
    int launch = 1;                               ///< this start of the ranks, from 1
    int launches = 1;                             ///< of the whole run
    const std::map<std::string, Chosen>& chosen;  ///< by id: see chosen_by_auto
    const std::string& table;                     ///< by which they were chosen
    const std::set<std::string>& flat;            ///< ids of cases: see is_flat_on_hosts
  };
  Messages(const SessionSpec& spec, const harness::Topology& topology, const JobsListener& listener, Place place)
      : SessionMessages(
            spec, {{"begin", [this](std::string_view text) { on_begin(text); }},
                   {"cell", [this](std::string_view text) { on_cell(text); }},
                   {"samples", [this](std::string_view text) { note(listener_.on_samples(text)); }},
                   {"result", [this](std::string_view text) { on_result(text); }},
                   {"blocks", [this](std::string_view text) { on_blocks(text); }},
                   {"ranks", [this](std::string_view text) { on_ranks(text); }},
                   {"facts", [this](std::string_view text) { listener_.on_facts(spec_.ranks, std::string(text)); }}}),
        topology_(topology),
        listener_(listener),
        place_(place) {}

  void on_hosts(const std::vector<harness::HostInfo>& all) override {
    std::vector<std::string> fingerprints;
    for (const harness::HostInfo& one : all) fingerprints.push_back(one.fingerprint);
    stamp_ = harness::RowStamp(harness::fingerprint_of(fingerprints), all.front().name);
    if (listener_.on_hosts) listener_.on_hosts(all);
  }

  /// Tells how the job failed, as fields.
  void diagnose(const Outcome& outcome) const {
    if (!listener_.on_diagnosis) return;
    const std::string_view message = outcome.failure.message();
    harness::FailedJob diagnosis{.message = std::string(message.substr(0, message.find('\n'))),
                                 .how = std::string(to_string(outcome.how)),
                                 .rank = outcome.failed_rank < 0 ? std::nullopt : std::optional(outcome.failed_rank),
                                 .host = host_of(outcome.failed_rank),
                                 .collective = {},
                                 .cell = {}};
    if (begun_) {
      const Case& one = spec_.cells[*begun_].front();
      diagnosis.collective = to_string(one.collective);
      diagnosis.cell = harness::cell_of_case(case_id(one));
    }
    for (std::size_t rank = 0; rank < outcome.standings.size(); ++rank) {
      if (const auto& wait = outcome.standings[rank].wait)
        diagnosis.waiting.push_back({.rank = static_cast<int>(rank), .wait = *wait});
    }
    listener_.on_diagnosis(diagnosis);
  }

  /// Whether the ranks have begun a cell.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

 private:
  void on_begin(std::string_view text) {
    has_begun_ = true;
    begun_ = cell_begun(text);
    if (begun_) listener_.on_begin(spec_.cells[*begun_], place_.first + *begun_, place_.of);
  }
  void on_cell(std::string_view lines) {
    std::vector<Row> rows;
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      auto row = harness::row_from_json(lines.substr(0, end));
      if (row.is_ok()) rows.push_back(std::move(row).value());
      note(row.status());
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    for (Row& row : rows) {
      row.launch = place_.launch;
      row.launches = place_.launches;
      row.starter = spec_.starter;
      tell_choice(row);
      if (place_.flat.contains(row.case_id)) add_mark(row, harness::kFlatOnHosts);
      stamp_.put_into(row);
    }
    if (rows.empty()) return;
    note(listener_.on_cell(rows));
  }
  void on_result(std::string_view text) {
    if (listener_.on_result) note(listener_.on_result(place_.launch, text));
  }
  void tell_choice(Row& row) const {
    const auto found = place_.chosen.find(row.case_id);
    if (found == place_.chosen.end()) return;
    const Chosen& chosen = found->second;
    row.table = place_.table;
    if (!chosen.simulated_on.empty()) {
      add_mark(row, std::string(harness::kSimulatedOn) + chosen.simulated_on);
    } else if (!chosen.is_measured) {
      add_mark(row, harness::kFromFormula);
    }
  }
  void on_blocks(std::string_view text) {
    const auto medians = harness::block_medians_from_json(text);
    note(medians.status());
    if (medians.is_ok() && listener_.on_blocks) listener_.on_blocks(medians.value());
  }
  void on_ranks(std::string_view text) {
    if (!listener_.on_ranks) return;
    const auto tally = harness::RankTally::from_json(text);
    note(tally.status());
    if (!tally.is_ok()) return;
    std::vector<std::string> hosts;
    for (int rank = 0; rank < spec_.ranks; ++rank) hosts.push_back(host_of(rank));
    listener_.on_ranks(tally.value(), hosts);
  }
  /// If hosts were named, the one that the rank was on; else this machine.
  [[nodiscard]] std::string host_of(int rank) const {
    if (topology_.host_names.empty() || rank < 0) return harness::describe_machine().hostname;
    return topology_.host_names[static_cast<std::size_t>(topology_.hosts.host_of(rank))];
  }

  const harness::Topology& topology_;
  const JobsListener& listener_;
  Place place_;
  std::optional<std::size_t> begun_;  ///< the cell that began last
  bool has_begun_ = false;
  harness::RowStamp stamp_{harness::describe_machine()};
};

void show_log(const std::string& tail) {
  if (!tail.empty()) harness::to_stderr(fmt::format("last lines of the job's log:\n{}\n", tail));
}

/// How one start of the ranks ended.
struct Ended {
  int code = exit_ok;
  std::vector<std::string> not_started = {};  ///< references that cannot be started here; then no cell has begun
  std::string why = {};
  std::string log_tail = {};
};

/// Whether it is the start command that fails: it cannot be executed, has no folder, or needs more open files and
/// processes than tutti's own ranks, which could be started.
bool is_of_command(const harness::Job& job, const Status& failure) {
  if (!job.start) return false;
  if (failure.code() != Code::resource) return failure.code() == Code::unavailable || failure.code() == Code::io;
  harness::Job own = job;
  own.start.reset();
  const auto fits = [](const harness::Job& one) { return harness::prepare_limits(harness::needs_of(one)).is_ok(); };
  return fits(own) && !fits(job);
}

/// A start without its references may yet work.
Ended without_references(const SessionSpec& spec, const Status& why) {
  return {.code = exit_environment, .not_started = spec.references, .why = why.message()};
}

void complain_behind_progress(const Status& why) {
  harness::to_stderr("\n");
  complain(why);
}

Ended run_job(const SessionSpec& spec, const harness::Topology& topology, const Starter& starter,
              const JobsRequest& request, Messages& messages) {
  harness::PlacedJob job = job_of(spec, topology, starter, request.reach);
  job.recalls = !request.flight.empty();
  if (request.reach.joined != nullptr) job.tell = complain_behind_progress;
  auto outcome = harness::launch_placed(job, messages);
  if (!outcome.is_ok()) {
    return is_of_command(job, outcome.status()) ? without_references(spec, outcome.status())
                                                : Ended{.code = complain(outcome.status())};
  }
  const int code = exit_code_of(outcome.value());
  if (code == exit_ok) return {.code = messages.failure().is_ok() ? exit_ok : complain(messages.failure())};
  const bool can_go_on = !messages.has_begun() && request.reach.joined == nullptr;
  const auto lost = can_go_on ? not_started(spec, starter, outcome.value()) : std::vector<std::string>();
  if (std::optional<harness::Recall>& recall = outcome.value().recall) {
    if (!job.across) recall->calls = messages.last_calls();
    record_flight(request.flight, spec.ranks, *recall);
  }
  if (code != exit_interrupted && (lost.empty() || request.are_backends_named)) messages.diagnose(outcome.value());
  if (!lost.empty()) {
    return {.code = exit_environment,
            .not_started = lost,
            .why = why_not_started(outcome.value()),
            .log_tail = outcome.value().log_tail};
  }
  if (!outcome.value().is_told) complain_behind_progress(outcome.value().failure);
  // An interrupted start command says much about ranks that it ended because we asked it to.
  if (code != exit_interrupted) show_log(outcome.value().log_tail);
  return {.code = code};
}

/// The ids of those that take each rank for a host of its own.
std::set<std::string> flat_on_hosts(const SessionSpec& spec, const harness::Topology& topology) {
  std::set<std::string> ids;
  for (const std::vector<Case>& cell : spec.cells) {
    for (const Case& one : cell) {
      if (harness::is_flat_on_hosts(one, topology)) ids.insert(case_id(one));
    }
  }
  return ids;
}

/// What `auto` has chosen, by the ids of the cases.
std::map<std::string, Chosen> chosen_by_auto(std::span<const std::vector<Case>> cells,
                                             const harness::Topology& topology) {
  const int cores = harness::cores_together(topology.asked.ranks_as);
  std::map<std::string, Chosen> chosen;
  for (const std::vector<Case>& cell : cells) {
    for (Case one : cell) {
      if (one.algorithm != harness::kAuto) continue;
      const Chosen choice = harness::choice_for(one, topology, cores);
      one.algorithm = to_text({.algorithm = choice.algorithm, .tuning = choice.tuning});
      chosen.emplace(case_id(one), choice);
    }
  }
  return chosen;
}

std::vector<Case> resolved_cell(const std::vector<Case>& cell, const harness::Topology& topology) {
  const int cores = harness::cores_together(topology.asked.ranks_as);
  std::vector<Case> cases;
  for (Case one : cell) {
    if (one.algorithm == harness::kAuto) one.algorithm = harness::chosen_algorithm(one, topology, cores);
    harness::append_new(cases, std::move(one));
  }
  return cases;
}

}  // namespace

Result<std::vector<std::vector<Case>>> resolved(std::span<const std::vector<Case>> cells,
                                                harness::Topologies& topologies) {
  std::vector<std::vector<Case>> result;
  for (const std::vector<Case>& cell : cells) {
    TUTTI_ASSIGN_OR_RETURN(const harness::Topology* const topology, topologies.of(cell.front()));
    result.push_back(resolved_cell(cell, *topology));
  }
  return result;
}

int exit_code_of(const Outcome& outcome) {
  if (outcome.ok) return exit_ok;
  if (outcome.how == Ending::interrupted) return exit_interrupted;
  if (outcome.how == Ending::said_error) return exit_code_of(outcome.failure);
  return exit_crash;
}

Result<std::vector<Starter>> starters_of(std::span<const std::vector<Case>> cells, RanksAs ranks_as,
                                         const Reach& reach) {
  std::vector<std::string> references;
  for (const std::vector<Case>& cell : cells) {
    for (const Case& one : cell) {
      if (!is_own(one)) harness::append_new(references, std::string(harness::instance_of(one.backend)));
    }
  }
  std::vector<Starter> starters;
  if (reach.joined != nullptr) {
    const auto has_settings = [](const std::string& name) { return harness::backend_of(name) != name; };
    if (const auto set = std::ranges::find_if(references, has_settings); set != references.end()) {
      return error(Code::invalid_argument,
                   "backend '{}': {} has started the ranks, and their settings are those of its environment: did you "
                   "mean '{}'?",
                   *set, reach.joined->starter, harness::backend_of(*set));
    }
    Starter joined{.name = reach.joined->starter, .references = references};
    return std::vector{std::move(joined)};
  }
  for (std::string& reference : references) {
    Starter starter;  // with threads and tasks, where references are skipped, the own spawn
    if (ranks_as->is_process) {
      TUTTI_ASSIGN_OR_RETURN(starter, starter_of(reference));
    }
    auto same = std::ranges::find(starters, starter.name, &Starter::name);
    if (same == starters.end())
      same = starters.insert(
          same, Starter{.name = starter.name, .command = starter.command, .environment = starter.environment});
    std::ranges::move(starter.on_gpus, std::back_inserter(same->on_gpus));
    same->references.push_back(std::move(reference));
  }
  if (starters.empty()) starters.emplace_back();
  return starters;
}

namespace {

/// The machines of the job, each with memory of its own.
harness::JobAcross across_of(const harness::Topology& topology, const tutti::DomainShape& shape, const Reach& reach) {
  harness::JobAcross across{.hosts = {}, .agent = reach.agent, .interface = reach.interface, .build = build_text()};
  if (reach.joined != nullptr) across.joined = reach.joined->hosts;
  for (std::size_t host = 0; host < shape.ranks_on.size(); ++host) {
    across.hosts.push_back({.name = topology.host_names[host],
                            .ranks = shape.ranks_on[host],
                            .domain_bytes = tutti::bytes_of_host(shape, static_cast<int>(host))});
  }
  return across;
}

constexpr std::chrono::milliseconds kLeastToStart{20000};  // for a start command, on a busy machine

}  // namespace

harness::PlacedJob job_of(const SessionSpec& spec, const harness::Topology& topology, const Starter& starter,
                          const Reach& reach) {
  harness::PlacedJob job;
  job.ranks = spec.ranks;
  job.ranks_as = spec.ranks_as;
  job.start = starter.command;
  job.environment = starter.environment;
  job.arguments = {"rank"};
  job.payload = to_json(spec);
  if (topology.host_names.empty()) {
    job.domain_bytes = topology.shared_bytes(spec.heap_bytes);
  } else {
    job.across =
        across_of(topology, topology.domain_shape(spec.heap_bytes), reach);  // each machine makes its own memory
  }
  job.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(spec.timeout);
  job.connect_timeout = std::max(job.connect_timeout, job.timeout);
  if (job.start && !job.across) job.connect_timeout = std::clamp(job.timeout, kLeastToStart, job.connect_timeout);
  if (reach.joined == nullptr) return job;
  job.start.reset();  // they have been started
  job.control = reach.joined->announcement->control();
  job.control_socket = reach.joined->announcement->control_socket();
  job.told = reach.joined->arguments;
  job.awaits_others = !job.across;
  job.ranks_here = job.across ? 0 : 1;
  return job;
}

namespace {

/// The session of one start, and how many cells come after it.
SessionSpec spec_of(const Start& start, const harness::Topology& topology, const JobsRequest& request,
                    std::size_t cells_after) {
  SessionSpec spec = request.spec;
  spec.launch = start.number;
  spec.starter = start.starter.name;
  spec.ranks = topology.ranks();
  set_transport(topology.asked.transport, spec);
  for (const std::vector<Case>& cell : start.cells) spec.cells.push_back(resolved_cell(cell, topology));
  spec.references = start.starter.references;
  spec.on_gpus = start.starter.on_gpus;
  std::erase_if(spec.twins, [&](const std::string& twin) {
    const std::string_view backend = harness::instance_of(twin);
    const bool is_here = std::ranges::find(spec.references, backend) != spec.references.end();
    return backend != harness::kOwnBackend && !is_here;
  });
  if (auto* const task = std::get_if<harness::MeasureTask>(&spec.task)) {
    task->cells_after = static_cast<int>(cells_after);
  }
  Cells on_host;
  for (const std::vector<Case>& cell : spec.cells) {
    on_host.push_back(harness::cases_in(harness::MemoryKind::host, spec, topology, cell));
    if (on_host.back().empty()) on_host.pop_back();
  }
  spec.heap_bytes = harness::heap_bytes_for(on_host, spec.conditions.cache, harness::memory_for(spec, topology),
                                            harness::most_for_limits(spec));
  return spec;
}

Ended run_start(const Start& start, const Starts& starts, const JobsRequest& request, harness::Topologies& topologies,
                const JobsListener& listener) {
  const auto found = topologies.of(start.cells.front().front());
  if (!found.is_ok()) return {.code = complain(found.status())};
  const harness::Topology& topology = *found.value();
  const SessionSpec spec = spec_of(start, topology, request, starts.cells_after());
  const std::map<std::string, Chosen> chosen = chosen_by_auto(start.cells, topology);
  const std::string table = harness::table_of(spec.conditions).id();
  const std::set<std::string> flat = flat_on_hosts(spec, topology);
  Messages messages(spec, topology, listener,
                    {.first = start.first,
                     .of = starts.cells(),
                     .launch = start.number,
                     .launches = starts.count(),
                     .chosen = chosen,
                     .table = table,
                     .flat = flat});
  return run_job(spec, topology, start.starter, request, messages);
}

/// Says which references are left out, and why.
void tell(const Ended& ended, std::size_t cases, const JobsRequest& request, const JobsListener& listener) {
  const std::string names = fmt::format("{}", fmt::join(ended.not_started, ", "));
  const std::string why = fmt::format("ranks of backend {} cannot be started here: {}", names, ended.why);
  if (listener.on_left_out) listener.on_left_out({.cells = static_cast<std::int64_t>(cases), .reason = why});
  if (request.are_backends_named) {
    harness::to_stderr("\n");
    complain(error(Code::unavailable, "{}", why));
    show_log(ended.log_tail);
  } else if (request.says_left_out) {
    for (const std::string& name : ended.not_started) harness::to_stderr(fmt::format("# without {}: {}\n", name, why));
  }
}

}  // namespace

int run_jobs(const JobsRequest& request, const JobsListener& listener) {
  auto starters = starters_of(request.cells, request.spec.ranks_as, request.reach);
  if (!starters.is_ok()) return complain(starters.status());
  Starts starts(request.cells, request.launches, request.spec.seed, std::move(starters).value());
  harness::Topologies topologies(request.spec.conditions, transport_directories());
  int code = exit_ok;
  int code_of_lost = exit_ok;
  while (const auto start = starts.next()) {
    const Ended ended = run_start(*start, starts, request, topologies, listener);
    if (ended.code == exit_interrupted) return ended.code;
    if (!ended.not_started.empty()) {
      tell(ended, starts.give_up(ended.not_started), request, listener);
      if (request.are_backends_named) code_of_lost = ended.code;
      continue;
    }
    if (ended.code != exit_ok) starts.leave_out_starter();
    if (code == exit_ok) code = ended.code;
  }
  return code != exit_ok ? code : code_of_lost;
}

}  // namespace tutti::program

// SPDX-License-Identifier: Apache-2.0
#include "src/accept_crew.h"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/accept/leaves.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/doctor/host_answers.h"
#include "harness/hosts/crew.h"
#include "harness/hosts/examiner.h"
#include "harness/hosts/placed_job.h"
#include "harness/measure/memory.h"
#include "harness/record/row_json.h"
#include "harness/record/samples.h"
#include "harness/soak/soak.h"
#include "harness/statistics/statistics.h"
#include "harness/text/json_reader.h"
#include "harness/train/train.h"
#include "src/accept_outcomes.h"
#include "src/jobs.h"
#include "src/request.h"
#include "src/session_messages.h"
#include "src/transports.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Each block begins and ends with hundreds of round trips, which take long on a slow network: a test has
// few blocks. Other visits of a pair verify its later calls.
constexpr int kSamples = 8, kBlocks = 2;
// A node alone plays for longer than a scheduler takes a core away at a time, and its mean counts: of a node that has a
// part of a core only, most samples are as fast as of others.
constexpr int kSamplesAlone = 64, kBlocksAlone = 4;
constexpr int kLeastRanksAlone = 2;
constexpr auto kLeastDeadline = 5s;
constexpr double kDeadlineTimes = 5;  // the median of the jobs before; of short ones the suite may say it
constexpr auto kPause = 10s;
constexpr auto kVisitPatience = harness::kExaminerPatience + 10s;  // an examiner that hangs ends by itself before

constexpr std::string_view kShortKind = "short";  // see kind_of

/// The cell of a test on `ranks` ranks; `auto` chooses the algorithm. Soaks and trainings have none.
std::string case_text(const PlayedSystem& system, const accept::Test& test, int ranks) {
  const char* collective = "";
  const char* op = "none";
  std::string window;
  std::size_t bytes = test.bytes;
  switch (test.measure) {
    case accept::Measure::bandwidth:
    case accept::Measure::back:
      collective = "bandwidth";
      window = fmt::format(".window{}", system.window);
      break;
    case accept::Measure::latency:
      collective = "pingpong";
      break;
    case accept::Measure::ring:
      collective = "sendrecv";
      break;
    case accept::Measure::all_to_all:
      collective = "all_to_all";
      bytes *= static_cast<std::size_t>(ranks);  // a buffer has a message for each rank
      break;
    case accept::Measure::soak:
    case accept::Measure::training:
    case accept::Measure::command:
      return {};
    case accept::Measure::all_reduce:
    case accept::Measure::alone:
      collective = "all_reduce";
      op = "sum";
      break;
  }
  const char* const algorithm = system.backend == harness::kOwnBackend ? "auto" : "none";
  return fmt::format("{}/{}.{}/{}/float/{}/P{}.processes/none/{}B{}/out/private/isolated", collective, system.backend,
                     algorithm, system.transport, op, ranks, bytes, window);
}

/// What takes alike long: short tests of few nodes together, nodes alone, each collective of a size by itself.
std::string kind_of(const std::vector<accept::Group>& groups, const std::vector<accept::Test>& tests) {
  if (std::ranges::find(tests, accept::Measure::alone, &accept::Test::measure) != tests.end()) return "alone";
  const auto is_short = [](const accept::Test& test) { return test.measure <= accept::Measure::ring; };
  if (std::ranges::all_of(tests, is_short)) return std::string(kShortKind);
  std::size_t most = 0;
  for (const accept::Group& group : groups) most = std::max(most, group.size());
  std::string kind = fmt::to_string(most);
  for (const accept::Test& test : tests) kind += fmt::format(" {}.{}", static_cast<int>(test.measure), test.bytes);
  return kind;
}

/// Keeps the rows of one group.
class GroupMessages final : public SessionMessages {
 public:
  explicit GroupMessages(const harness::SessionSpec& spec)
      : SessionMessages(spec,
                        {{"cell", [this](std::string_view text) { take(text); }},
                         {"samples", [this](std::string_view text) { take_samples(text); }},
                         {"soaked", [](std::string_view /*text*/) {}},
                         {"training", [](std::string_view /*text*/) {}},
                         {"trained", [this](std::string_view text) { trained = harness::train_row_from_json(text); }},
                         {"soak", [this](std::string_view text) { soak = harness::soak_from_json(text); }},
                         {"facts", [this](std::string_view text) { take_facts(text); }}}) {}
  std::vector<harness::Row> rows;
  std::optional<Result<harness::SoakResult>> soak;
  std::optional<Result<harness::TrainRow>> trained;
  double ready_s = 0;  ///< see InitTimes; 0: not known
  /// By cell, what each rank's samples took, in us: of sessions that tell samples.
  std::map<std::string, std::vector<double>> rank_us;
  /// By cell, the mean of all samples, in us, those in which a rank came late too.
  std::map<std::string, double> mean_us;

 private:
  void take_samples(std::string_view lines) {
    const auto cases = harness::samples_from_csv(harness::samples_header() + "\n" + std::string(lines));
    note(cases.status());
    if (!cases.is_ok()) return;
    for (const harness::SampledCase& one : cases.value()) {
      std::vector<std::vector<double>> by_rank(static_cast<std::size_t>(spec_.ranks));
      for (const harness::Sample& sample : one.samples) {
        mean_us[one.case_id] += sample.global_us / static_cast<double>(one.samples.size());
        if (!sample.is_valid || sample.rank_us.size() != by_rank.size()) continue;
        for (std::size_t rank = 0; rank < by_rank.size(); ++rank) by_rank[rank].push_back(sample.rank_us[rank]);
      }
      for (std::vector<double>& times : by_rank) {
        if (!times.empty()) rank_us[one.case_id].push_back(harness::median_of(std::move(times)));
      }
    }
  }
  void take_facts(std::string_view text) {
    const nlohmann::json facts = harness::parse_json(text);
    if (!facts.is_object()) return;
    const nlohmann::json ready = facts.value("ready_s", nlohmann::json());
    if (ready.is_number()) ready_s = ready.get<double>();
  }
  void take(std::string_view line) {
    auto row = harness::row_from_json(line.substr(0, line.find('\n')));
    note(row.status());
    if (row.is_ok()) rows.push_back(std::move(row).value());
  }
};

/// One group while it plays.
struct PlayingGroup {
  std::size_t index = 0;           ///< among the groups of the play
  std::vector<std::size_t> tests;  ///< of the play
  harness::SessionSpec spec;
  std::optional<GroupMessages> messages;
};

Result<harness::SessionSpec> spec_of(const Settings& settings, const PlayedSystem& system, std::vector<NamedHost> hosts,
                                     const std::vector<accept::Test>& tests, std::chrono::nanoseconds timeout) {
  harness::SessionSpec spec = session_of(settings);
  const auto has = [&tests](accept::Measure measure) {
    return std::ranges::find(tests, measure, &accept::Test::measure) != tests.end();
  };
  const bool is_alone = has(accept::Measure::alone);
  spec.task = harness::MeasureTask{.tells_samples = is_alone || has(accept::Measure::ring),
                                   .blocks = is_alone ? kBlocksAlone : kBlocks};
  spec.timeout = timeout;
  spec.conditions.sync = harness::Synchronisation::dissemination;
  spec.conditions.has_limit = false;
  spec.conditions.iterations = is_alone ? kSamplesAlone : kSamples;
  spec.ranks = 0;
  for (const NamedHost& host : hosts) spec.ranks += host.slots;
  spec.conditions.topology.hosts = std::move(hosts);
  if (system.backend != harness::kOwnBackend) {
    spec.references = {system.backend};
    spec.on_gpus = system.starter.on_gpus;
    spec.starter = system.starter.name;
  }
  if (has(accept::Measure::soak)) {
    spec.task = harness::SoakTask{.operations = static_cast<std::int64_t>(tests.front().bytes)};
    spec.heap_bytes = harness::kSoakHeapBytes;
    set_transport(system.transport, spec);
    return spec;
  }
  if (has(accept::Measure::training)) {
    const auto images = static_cast<int>(tests.front().bytes);
    constexpr int kSteps = 16;
    spec.task = harness::TrainTask{.gradients = {"buckets"},
                                   .algorithms = {std::string(harness::kAuto)},
                                   .images = spec.ranks * images,
                                   .batch = spec.ranks * images / kSteps,
                                   .epochs = 1};
    set_transport(system.transport, spec);
    return spec;
  }
  harness::Topologies topologies(spec.conditions, transport_directories());
  std::vector<std::vector<harness::Case>> cells;
  for (const accept::Test& test : tests) {
    TUTTI_ASSIGN_OR_RETURN(harness::Case one, harness::parse_case_id(case_text(system, test, spec.ranks)));
    cells.push_back({std::move(one)});
  }
  TUTTI_ASSIGN_OR_RETURN(spec.cells, resolved(cells, topologies));
  TUTTI_ASSIGN_OR_RETURN(const harness::Topology* const topology, topologies.of(spec.cells.front().front()));
  set_transport(topology->asked.transport, spec);
  spec.heap_bytes = harness::heap_bytes_for(spec.cells, spec.conditions.cache, harness::memory_for(spec, *topology),
                                            harness::most_for_limits(spec));
  return spec;
}

/// The job over these nodes of the crew.
harness::CrewGroup crew_group_of(const harness::PlacedJob& job, const std::vector<int>& nodes) {
  harness::CrewGroup group{.job = job, .members = {}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const harness::JobHost& host = job.across->hosts[i];
    group.members.push_back({.host = nodes[i], .ranks = host.ranks, .domain_bytes = host.domain_bytes});
  }
  return group;
}

}  // namespace

bool has_own_launch(const PlayedSystem& system) {
  return system.starter.command.has_value() || !system.starter.on_gpus.empty();
}

std::map<std::string, std::string> stages_without(const PlayedSystem& system) {
  if (system.starter.on_gpus.empty()) return {};
  const std::string why =
      fmt::format("{} has its buffers in the memory of GPUs, and this stage has none there", system.backend);
  return {{"soak", why}, {"job", why}};
}

std::string HostsCrew::library() const { return system_.backend == harness::kOwnBackend ? "" : system_.backend; }

bool HostsCrew::plays_library(accept::Measure measure) const {
  if (library().empty()) return false;
  switch (measure) {
    case accept::Measure::all_reduce:
    case accept::Measure::all_to_all:
      return true;
    case accept::Measure::soak:
    case accept::Measure::training:
      return system_.starter.on_gpus.empty();
    case accept::Measure::command:
      return false;
    default:
      return !has_own_launch(system_);
  }
}

PlayedSystem HostsCrew::system_for(const accept::Test& test) const {
  if (!test.is_bare && plays_library(test.measure)) return system_;
  PlayedSystem bare = system_;
  bare.backend = harness::kOwnBackend;
  bare.starter = {};
  return bare;
}

Result<std::unique_ptr<HostsCrew>> HostsCrew::start(const Settings& places, PlayedSystem system) {
  std::unique_ptr<HostsCrew> crew(new HostsCrew(places, std::move(system)));
  harness::HostsRequest request{
      .hosts = {}, .agent = places.reach.agent, .interface = places.reach.interface, .build = build_text()};
  request.rails = places.reach.rails;
  if (places.reach.joined != nullptr) request.joined = places.reach.joined->hosts;
  for (const NamedHost& host : crew->hosts_) request.hosts.push_back(host.name);
  TUTTI_RETURN_IF_ERROR(crew->crew_.start(std::move(request),
                                          std::chrono::duration_cast<std::chrono::milliseconds>(places.sweep.timeout)));
  std::vector<std::string> paths;
  std::string last;
  for (int node = 0; node < crew->nodes(); ++node) {
    if (!crew->crew_.loss(node)) {
      const auto& hello = crew->crew_.hello(node);
      last = accept::leaf_from_slurm(hello.topology_address, hello.topology_pattern);
    }
    paths.push_back(last);  // one that has not come plays nowhere: any leaf will do
  }
  crew->leaves_ = accept::leaves_from_paths(paths);
  return crew;
}

std::string HostsCrew::absence_of(int node) const {
  const auto loss = crew_.loss(node);
  return loss ? std::string(loss->message()) : "";
}

std::string HostsCrew::absence_of_rail(int node, int rail) const {
  if (crew_.loss(node)) return {};
  const auto& rails = crew_.hello(node).rails;
  const auto at = static_cast<std::size_t>(rail);
  if (at >= rails.size()) return "it names no such interface";
  return rails[at].problem;
}

std::chrono::milliseconds HostsCrew::deadline(const std::string& kind) const {
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(places_.sweep.timeout);
  const auto known = seconds_.find(kind);
  if (known == seconds_.end()) return most;
  const double times = kind.starts_with(kShortKind) ? system_.deadline_times : kDeadlineTimes;
  const std::chrono::duration<double> usual(times * harness::median_of(known->second));
  return std::clamp<std::chrono::milliseconds>(std::chrono::ceil<std::chrono::milliseconds>(usual), kLeastDeadline,
                                               std::max<std::chrono::milliseconds>(kLeastDeadline, most));
}

int HostsCrew::slots_for(accept::Measure measure) const {
  switch (measure) {
    case accept::Measure::alone:
      return std::max(system_.ranks_per_node, kLeastRanksAlone);
    case accept::Measure::all_reduce:
    case accept::Measure::all_to_all:
    case accept::Measure::soak:
    case accept::Measure::training:
      return system_.ranks_per_node;
    default:
      return 1;
  }
}

void HostsCrew::play_part(const std::vector<accept::Group>& groups, const std::vector<accept::Test>& tests,
                          bool is_back, std::vector<std::vector<accept::Outcome>>& outcomes) {
  const std::string kind = kind_of(groups, tests) + (tests.front().is_bare ? " bare" : "");
  const std::chrono::milliseconds most = deadline(kind);
  std::list<PlayingGroup> playing;
  std::vector<harness::CrewGroup> jobs;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    PlayingGroup group{.index = i};
    std::vector<accept::Test> own;
    for (std::size_t j = 0; j < tests.size(); ++j) {
      if ((tests[j].measure == accept::Measure::back) != is_back) continue;
      group.tests.push_back(j);
      own.push_back(tests[j]);
    }
    const bool has_failed = std::ranges::any_of(outcomes[i], [](const accept::Outcome& one) {
      return one.ending == accept::Ending::hung || one.ending == accept::Ending::failed;
    });
    if (own.empty() || has_failed) continue;
    const int slots = slots_for(own.front().measure);
    std::vector<NamedHost> hosts;
    for (const int node : groups[i]) {
      hosts.push_back({.name = hosts_.at(static_cast<std::size_t>(node)).name, .slots = slots});
    }
    if (is_back) std::ranges::reverse(hosts);
    const PlayedSystem system = system_for(own.front());
    auto spec = spec_of(places_, system, std::move(hosts), own, most);
    auto topology = spec.is_ok() ? topology_of(spec.value()) : Result<harness::Topology>(spec.status());
    if (!topology.is_ok()) {
      if (failure_.is_ok()) failure_ = topology.status();
      for (const std::size_t test : group.tests) outcomes[i][test] = {.ending = accept::Ending::interrupted};
      continue;
    }
    PlayingGroup& kept = playing.emplace_back(std::move(group));
    kept.spec = std::move(spec).value();
    kept.spec.seed += plays_;  // of a mix: another one each time
    kept.messages.emplace(kept.spec);
    std::vector<int> nodes = groups[i];
    if (is_back) std::ranges::reverse(nodes);
    // Whoever has started the hosts' processes has not started these ranks.
    const Reach reach{.agent = places_.reach.agent, .interface = places_.reach.interface};
    jobs.push_back(crew_group_of(job_of(kept.spec, topology.value(), system.starter, reach), nodes));
    jobs.back().deadline = most;
    jobs.back().rail = own.front().rail;
    jobs.back().listener = &*kept.messages;
  }
  ++plays_;
  const auto begin = Clock::now();
  const std::vector<harness::Outcome> ended = crew_.run(jobs);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  bool is_well = !ended.empty();
  auto group = playing.begin();
  for (std::size_t i = 0; i < ended.size(); ++i, ++group) {
    const auto& rows = group->messages->rows;
    const double ready_s = group->messages->ready_s;
    if (ready_s > 0) ready_.push_back({.seconds = ready_s, .nodes = groups[group->index]});
    for (std::size_t j = 0; j < group->tests.size(); ++j) {
      accept::Outcome& outcome = outcomes[group->index][group->tests[j]];
      if (j < rows.size() && is_skipped(rows[j])) {
        if (failure_.is_ok()) failure_ = error(Code::unavailable, "{}: {}", rows[j].case_id, rows[j].reason);
        outcome = {.ending = accept::Ending::interrupted};
      } else if (j < rows.size()) {
        outcome = outcome_of(rows[j], tests[group->tests[j]]);
        const auto times = group->messages->rank_us.find(rows[j].case_id);
        const auto mean = group->messages->mean_us.find(rows[j].case_id);
        if (tests[group->tests[j]].measure == accept::Measure::alone) {
          if (mean != group->messages->mean_us.end()) take_mean(outcome, rows[j], mean->second);
        } else if (times != group->messages->rank_us.end()) {
          add_members(outcome, times->second, rows[j].bytes);
        }
      } else if (ended[i].ok && group->messages->trained) {
        outcome = outcome_of(*group->messages->trained);
      } else if (ended[i].ok && group->messages->soak) {
        outcome = outcome_of(*group->messages->soak, seconds);
      } else if (ended[i].ok) {
        outcome = {.ending = accept::Ending::failed, .detail = "the ranks said nothing of it"};
      } else {
        const std::string_view message = ended[i].failure.message();
        outcome = {.ending = ending_of(ended[i]), .detail = std::string(message.substr(0, message.find('\n')))};
      }
      outcome.seconds = seconds / static_cast<double>(group->tests.size());
      is_well &= outcome.ending == accept::Ending::measured;
    }
  }
  if (is_well) seconds_[kind].push_back(seconds);
}

std::vector<std::vector<accept::Outcome>> HostsCrew::play(const std::vector<accept::Group>& groups,
                                                          const std::vector<accept::Test>& tests) {
  std::vector<std::vector<accept::Outcome>> outcomes(groups.size(), std::vector<accept::Outcome>(tests.size()));
  play_part(groups, tests, false, outcomes);
  play_part(groups, tests, true, outcomes);
  for (std::vector<accept::Outcome>& of_group : outcomes) {
    const auto failed = std::ranges::find_if(of_group, [](const accept::Outcome& one) {
      return one.ending == accept::Ending::hung || one.ending == accept::Ending::failed;
    });
    if (failed == of_group.end()) continue;
    // What was not begun ended as the one that failed.
    const accept::Outcome same = *failed;
    for (std::size_t j = 0; j < tests.size(); ++j) {
      const bool is_of_back = tests[j].measure == accept::Measure::back;
      const bool was_left_out =
          is_of_back && of_group[j].ending == accept::Ending::measured && of_group[j].log_speed == 0;
      if (was_left_out) of_group[j] = same;
    }
  }
  return outcomes;
}

accept::InitTimes HostsCrew::init() const {
  if (ready_.empty()) return {};
  std::vector<double> seconds;
  for (const Ready& one : ready_) seconds.push_back(one.seconds);
  const Ready& most = *std::ranges::max_element(ready_, {}, &Ready::seconds);
  return {.groups = static_cast<int>(ready_.size()),
          .median_s = harness::median_of(std::move(seconds)),
          .most_s = most.seconds,
          .slowest = most.nodes};
}

void HostsCrew::pause() { crew_.rest(kPause); }

Result<std::vector<harness::Visit>> HostsCrew::visit() {
  std::vector<std::string> questions;
  for (int node = 0; node < nodes(); ++node) {
    // One that is lost is not asked.
    const std::string interface = crew_.loss(node) ? "" : crew_.hello(node).interface;
    questions.push_back(to_json(harness::LookRequest{.interface = interface, .launcher = {}, .reach = {}}));
  }
  TUTTI_ASSIGN_OR_RETURN(const auto answers, crew_.examine(questions, kVisitPatience));
  std::vector<harness::Visit> visits;
  for (int node = 0; node < nodes(); ++node) {
    const auto& answer = answers.at(static_cast<std::size_t>(node));
    harness::Visit& visit = visits.emplace_back();
    visit.host = name_of(node);
    auto look = answer.is_ok() ? harness::look_among(answer.value()) : Result<harness::HostLook>(answer.status());
    visit.failure = look.status();
    if (look.is_ok()) visit.look = std::move(look).value();
  }
  return visits;
}

}  // namespace tutti::program

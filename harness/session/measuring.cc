// SPDX-License-Identifier: Apache-2.0
#include "harness/session/measuring.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "harness/cases/lists.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/machine/process_age.h"
#include "harness/measure/rows.h"
#include "harness/record/rank_tally.h"
#include "harness/record/samples.h"
#include "harness/text/json_reader.h"
#include "impl/collective/alike.h"
#include "impl/transports/hosts.h"

namespace tutti::harness::session {
namespace {

constexpr std::chrono::nanoseconds kCellTime = std::chrono::seconds(3);  ///< without a budget
/// Of a cell that ends when it has its blocks, without a budget: for machines on which others keep the cores.
constexpr std::chrono::nanoseconds kTimeOfBlocks = std::chrono::seconds(30);
constexpr std::int64_t kTrialShare = 16;  ///< the trial of a cell's limit has 1 / kTrialShare of the cell's time
constexpr std::chrono::nanoseconds kLeastCellTime = std::chrono::milliseconds(20);
constexpr std::chrono::nanoseconds kMostLimitTime = std::chrono::minutes(1);  ///< as if the cell had no more
/// Of a cell that ends when it has its --iterations, without a budget.
constexpr std::chrono::nanoseconds kNoEnd = std::chrono::hours(24 * 365);

constexpr double kFloorsApart = 5;  ///< see report_ranks

/// The cores that a runner may run on, as they are exchanged.
struct BoundTo {
  std::array<bool, 1024> cores{};

  [[nodiscard]] static BoundTo here() {
    BoundTo bound;
    for (const int core : allowed_cores()) {
      if (static_cast<std::size_t>(core) < bound.cores.size()) bound.cores[static_cast<std::size_t>(core)] = true;
    }
    return bound;
  }
  [[nodiscard]] std::vector<int> list() const {
    std::vector<int> numbers;
    for (std::size_t core = 0; core < cores.size(); ++core) {
      if (cores[core]) numbers.push_back(static_cast<int>(core));
    }
    return numbers;
  }
};

/// A backend is somebody else's: what it says of itself need be no JSON.
nlohmann::json description_of(const Backend& backend) {
  const std::string text = backend.describe();
  nlohmann::json said = parse_json(text);
  return said.is_object() ? said : nlohmann::json{{"text", shown(text)}};
}

}  // namespace

Measuring::Measuring(const SessionSpec& spec, const MeasureTask& task, const Place& place)
    : spec_(spec),
      task_(task),
      topology_(place.topology),
      runner_(place.runner),
      domain_(place.domain),
      systems_(place.systems),
      send_(place.send),
      across_(place.across),
      budget_(task.end_ns) {
  // What the memory of one machine can do is no limit of what goes between hosts.
  const bool is_on_one_host = domain_.hosts() == nullptr || domain_.hosts()->count() == 1;
  if (!spec_.conditions.measures_limit() || !is_on_one_host) return;
  if (spec_.ranks_as->is_on_device) {
    limit_.emplace(domain_, runner_.ranks(), std::max(spec_.conditions.topology.lanes, 1));
  } else {
    limit_.emplace(domain_, runner_.ranks());
  }
}

Status Measuring::begin() {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<double> ages_s, runner_.exchange(process_age_s().value_or(0)));
  ready_s_ = std::ranges::max(ages_s);
  if (spec_.conditions.measures_limit() && has_gpu_memory(spec_, topology_))
    device_limit_.emplace(runner_.ranks(), systems_.gpu_memory());
  if (spec_.conditions.measures_limit() && runner_.has_machines()) {
    TUTTI_ASSIGN_OR_RETURN(const tcp::Secret key, tcp::secret_from(across_->key));
    const LinkLimit::Place here{.machines = *domain_.hosts(), .interface = across_->interface, .key = key};
    TUTTI_ASSIGN_OR_RETURN(link_limit_, LinkLimit::open(runner_, here));
  }
  if (spec_.conditions.sync == Synchronisation::library) {
    Case like;
    like.transport = domain_.transport();
    like.ranks = spec_.ranks;
    like.ranks_as = spec_.ranks_as;
    TUTTI_RETURN_IF_ERROR(barriers_.open(runner_, like, systems_.by_name(), systems_.memory()));
  }
  TUTTI_RETURN_IF_ERROR(report_facts());
  return start_crowd();
}

Status Measuring::report_first_calls() {
  if (first_calls_ns_.size() == told_first_calls_) return {};
  told_first_calls_ = first_calls_ns_.size();
  return report("facts", nlohmann::json{{"first_calls_ns", first_calls_ns_}}.dump());
}

Status Measuring::report_facts() {
  TUTTI_ASSIGN_OR_RETURN(floors_ns_, barriers_.measure_floors(runner_, spec_.conditions.sync));
  TUTTI_ASSIGN_OR_RETURN(clock_, runner_.agree(measure_clock()));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<BoundTo> bound, runner_.exchange(BoundTo::here()));
  nlohmann::json facts{{"floors_ns", floors_ns_},
                       {"clock_tick_ns", clock_.tick_ns},
                       {"clock_read_ns", clock_.read_ns},
                       {"in_time_ns", runner_.in_time_ns()},
                       {"bound", nlohmann::json::array()},
                       {"backends", nlohmann::json::object()},
                       {"ready_s", ready_s_}};
  std::vector<std::vector<int>> cores;
  for (const BoundTo& runner : bound) facts["bound"].push_back(cores.emplace_back(runner.list()));
  TUTTI_RETURN_IF_ERROR(find_watched(cores));
  for (const auto& [name, backend] : systems_.by_name()) {
    facts["backends"][name] = description_of(*backend);
  }
  return report("facts", facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Status Measuring::find_watched(const std::vector<std::vector<int>>& cores) {
  using Name = std::array<char, 64>;  // a kernel's, as it is exchanged
  Name own{};
  running_kernel().copy(own.data(), own.size() - 1);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Name> names, runner_.exchange(own));
  const std::vector<int>& machines = runner_.options().exchange->machines();
  for (std::size_t runner = 0; runner < names.size(); ++runner) {
    const auto same = std::ranges::find(names, names[runner]) - names.begin();
    const bool is_known = names[runner].front() != '\0';
    // A machine that hides its kernel's name has one of its own.
    const int of_machine = machines.empty() ? 0 : -1 - machines[runner];
    watched_.kernels.push_back(is_known ? static_cast<int>(same) : of_machine);
  }
  const int here = watched_.kernels[static_cast<std::size_t>(runner_.index())];
  for (std::size_t runner = 0; runner < cores.size(); ++runner) {
    if (watched_.kernels[runner] != here) continue;
    for (const int core : cores[runner]) append_new(watched_.cores, core);
  }
  watched_.host_names = topology_.host_names;
  return {};
}

Status Measuring::start_crowd() {
  if (spec_.conditions.crowd == 0 || !runner_.is_first_on_machine()) return {};
  TUTTI_ASSIGN_OR_RETURN(crowd_, Crowd::start(spec_.conditions.crowd, watched_.cores));
  watched_.crowd = crowd_.get();
  return {};
}

Status Measuring::begin_cell(std::size_t index, double bytes, Status& refusal) {
  if (task_.end_ns == 0) return {};
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t now_ns, runner_.agree(runner_.common_now_ns()));
  budget_.end(now_ns);
  const Cell& cell = spec_.cells[index].front();
  const bool is_first = index == 0 && spec_.launch == 1;  // a budget that the start has used up gives one cell
  if (!is_first) refusal = budget_.may_begin(cell, bytes, now_ns);
  if (refusal.is_ok()) budget_.begin(cell, bytes, time_ns(index), now_ns);
  return {};
}

Result<std::vector<Row>> Measuring::measure(std::vector<Variant>& variants, std::size_t index, bool has_limit) {
  const std::int64_t most_ns = time_ns(index);
  TUTTI_ASSIGN_OR_RETURN(Limits limits,
                         limits_beside(variants, index, has_limit, std::min(most_ns, kMostLimitTime.count())));
  const CellOptions options = cell_options(index, std::move(limits.ways), most_ns);
  std::ranges::move(limits.variants, std::back_inserter(variants));
  const auto is_on_gpu = [](const Variant& one) { return one.memory().kind() == MemoryKind::cuda; };
  std::vector<int> devices;
  if (std::ranges::any_of(variants, is_on_gpu)) devices = gpus_of_ranks();
  CellWatch watch(runner_, watched_, Tree("/"), devices);
  TUTTI_ASSIGN_OR_RETURN(std::vector<Row> rows, measure_cell(runner_, variants, options));
  TUTTI_RETURN_IF_ERROR(report_first_calls());
  TUTTI_ASSIGN_OR_RETURN(const std::string disturbed, watch.end());
  set_disturbed(rows, disturbed);
  for (Row& row : rows) {
    if (memory_kind_of(spec_, topology_, row.backend) == MemoryKind::cuda)
      row.gpu = gpu_model(devices.empty() ? 0 : devices.front());
  }
  return rows;
}

Result<std::vector<Row>> Measuring::contend(const ContentionPlace& place, std::vector<Variant>& variants,
                                            std::size_t index) {
  constexpr int kTimesOfACell = 2;  // each system has a block of every group, and one of all
  const CellOptions options = cell_options(index, {}, time_ns(index) * (task_.end_ns == 0 ? kTimesOfACell : 1));
  CellWatch watch(runner_, watched_);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Contended> all, harness::contend(place, variants, options));
  TUTTI_ASSIGN_OR_RETURN(const std::string disturbed, watch.end());
  std::vector<Row> rows;
  if (place.group.index() != 0) return rows;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (const Series* series : {&all[i].alone, &all[i].together}) {
      rows.push_back(
          measured_row({.variant = variants[i], .series = *series, .precision = {}, .overlap = {}}, options));
    }
    const std::optional<Slowdown> slowdown = slowdown_of(all[i], options);
    if (!slowdown) continue;
    rows.back().slowdown = slowdown->middle;
    rows.back().slowdown_low = slowdown->low;
    rows.back().slowdown_high = slowdown->high;
  }
  set_disturbed(rows, disturbed);
  return rows;
}

std::vector<int> Measuring::gpus_of_ranks() const {
  if (!spec_.ranks_as->is_on_device) return {runner_.at().local};
  std::vector<int> all(static_cast<std::size_t>(spec_.conditions.topology.gpus));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t Measuring::time_ns(std::size_t index) const {
  if (task_.end_ns == 0 && spec_.conditions.iterations > 0) return kNoEnd.count();
  if (task_.end_ns == 0) return (task_.blocks > 0 ? kTimeOfBlocks : kCellTime).count();
  const auto cells = static_cast<std::int64_t>(spec_.cells.size() - index) + task_.cells_after;
  return std::max(kLeastCellTime.count(), (task_.end_ns - runner_.common_now_ns()) / cells);
}

Result<Measuring::Limits> Measuring::limits_beside(const std::vector<Variant>& variants, std::size_t index,
                                                   bool on_runner, std::int64_t most_ns) {
  Limits limits;
  for (const MemoryKind memory : {MemoryKind::host, MemoryKind::cuda}) {
    const auto first = std::ranges::find(variants, memory, [](const Variant& one) { return one.memory().kind(); });
    const bool is_of_host = memory == MemoryKind::host;
    const bool is_measured = is_of_host ? (limit_ || link_limit_) && on_runner : device_limit_.has_value();
    if (first == variants.end() || !is_measured) continue;
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t begin_ns, runner_.agree(runner_.common_now_ns()));
    Backend& backend = !is_of_host              ? static_cast<Backend&>(*device_limit_)
                       : link_limit_ != nullptr ? static_cast<Backend&>(*link_limit_)
                                                : *limit_;
    Variant::Request like = systems_.request_for(backend, first->instance());
    like.number = first->number();  // it is no case of the job
    like.seed += index;
    const std::int64_t end_ns = begin_ns + most_ns / kTrialShare;
    std::optional<Variant> limit;
    if (is_of_host && link_limit_ != nullptr) {
      TUTTI_ASSIGN_OR_RETURN(limit, make_link_limit(runner_, *link_limit_, systems_.memory(), like));
    } else if (is_of_host) {
      TUTTI_ASSIGN_OR_RETURN(limit, make_limit(runner_, *limit_, like, end_ns));
    } else {
      TUTTI_ASSIGN_OR_RETURN(limit, make_device_limit(runner_, *device_limit_, like, end_ns));
    }
    if (!limit) continue;
    limits.variants.push_back(std::move(*limit));
    limits.ways.emplace_back(!is_of_host ? device_limit_->way() : link_limit_ != nullptr ? kStream : kMovements);
  }
  return limits;
}

/// That of the case's own kind of start; the limit has no floor, and no row to mark.
double Measuring::floor_us_of(const Case& one) const {
  const auto own = floors_ns_.find(one.backend);
  const auto common = own == floors_ns_.end() ? floors_ns_.find(std::string(kAll)) : own;
  return common == floors_ns_.end() ? 0 : common->second * 1e-3;
}

CellOptions Measuring::cell_options(std::size_t index, std::vector<std::string> limits, std::int64_t most_ns) {
  const auto trials_ns = static_cast<std::int64_t>(limits.size()) * (most_ns / kTrialShare);
  CellOptions options{.seed = spec_.seed + index,
                      .most_time = std::chrono::nanoseconds(most_ns - trials_ns),
                      .floor_us_of = [this](const Case& one) { return floor_us_of(one); },
                      .tick_us = clock_.tick_ns * 1e-3,
                      .conditions = spec_.conditions,
                      .barrier_of = [this](const Case& one) { return barriers_.find(one.backend); },
                      .host_of = [this](int rank) { return host_of(rank); },
                      .limits = std::move(limits)};
  options.on_first_call = [this](const Case& one, std::int64_t first_call_ns) {
    if (!is_limit(one.backend)) first_calls_ns_.emplace(one.backend, first_call_ns);
  };
  options.blocks = task_.blocks;
  if (options.blocks > 0 && !options.shares_out_iterations()) {
    options.on_blocks = [this](const BlockMedians& medians) { return report("blocks", to_json(medians)); };
  }
  options.on_samples = [this](const Case& one, std::span<const Sample> samples) {
    if (task_.tells_samples) TUTTI_RETURN_IF_ERROR(report_samples(one, samples));
    return report_ranks(one, samples);
  };
  return options;
}

std::string Measuring::host_of(int rank) const {
  if (topology_.host_names.empty()) return {};
  return topology_.host_names[static_cast<std::size_t>(topology_.hosts.host_of(rank))];
}

/// What lies within five floors, or is in time, is no lateness of a rank. A runner of all ranks lets them come one
/// after the other: they tell nothing. The limit has no row.
Status Measuring::report_ranks(const Case& one, std::span<const Sample> samples) {
  if (runner_.count() == 1 || is_limit(one.backend)) return {};
  const double apart_us = std::max(static_cast<double>(runner_.in_time_ns()) * 1e-3, kFloorsApart * floor_us_of(one));
  RankTally tally;
  tally.add(samples, apart_us, ranks_are_alike(one.collective));
  return tally.came.operations == 0 ? Status() : report("ranks", tally.json());
}

/// In parts, each of which a message can hold for any number of ranks.
Status Measuring::report_samples(const Case& one, std::span<const Sample> samples) {
  const std::string lines =
      samples_lines({.case_id = case_id(one), .launch = spec_.launch, .starter = spec_.starter}, samples);
  constexpr std::size_t kPart = std::size_t{1} << 20U;
  for (std::size_t at = 0; at < lines.size(); at += kPart) {
    TUTTI_RETURN_IF_ERROR(report("samples", std::string_view(lines).substr(at, kPart)));
  }
  return {};
}

}  // namespace tutti::harness::session

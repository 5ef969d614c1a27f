// SPDX-License-Identifier: Apache-2.0
#include "harness/session/walk.h"

#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include <nlohmann/json.hpp>

#include "harness/cases/backend_name.h"
#include "harness/faults/trial.h"
#include "harness/machine/clock.h"
#include "harness/measure/check.h"
#include "harness/measure/limit.h"
#include "harness/measure/memory.h"
#include "harness/measure/order.h"
#include "harness/measure/rows.h"
#include "harness/record/row_json.h"
#include "harness/record/trace.h"
#include "harness/session/repeating.h"

namespace tutti::harness::session {
namespace {

/// The most there is where the sum is more.
std::int64_t sum_of_bytes(std::int64_t one, std::int64_t other) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(one, other, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

}  // namespace

SessionWalk::SessionWalk(const SessionSpec& spec, const Place& place)
    : spec_(spec),
      topology_(place.topology),
      runner_(place.runner),
      send_(place.send),
      options_(communicator_options(spec, place.runner, place.cores)),
      systems_(spec, {.topology = place.topology,
                      .runner = place.runner,
                      .domain = place.domain,
                      .address = address_of(place.across)}) {
  const auto* const task = spec.as<MeasureTask>();
  if (task == nullptr) return;
  measuring_.emplace(spec, *task,
                     Measuring::Place{.topology = place.topology,
                                      .runner = place.runner,
                                      .domain = place.domain,
                                      .systems = systems_,
                                      .send = place.send,
                                      .across = place.across});
}

Status SessionWalk::run() {
  TUTTI_RETURN_IF_ERROR(open());
  const auto* const task = spec_.as<MeasureTask>();
  const bool is_trace = task != nullptr && !task->trace.empty();
  if (is_trace) TUTTI_RETURN_IF_ERROR(replay_trace(*task));
  for (std::size_t i = 0; !is_trace && i < spec_.cells.size(); ++i) {
    runner_.set_case(first_number_of(spec_, i));
    TUTTI_RETURN_IF_ERROR(report("begin", std::to_string(i)));
    TUTTI_RETURN_IF_ERROR(run_cell(i));
  }
  if (measuring_ && runner_.has_machines()) TUTTI_RETURN_IF_ERROR(report_clocks());
  TUTTI_RETURN_IF_ERROR(systems_.close());
  return runner_.order() == nullptr ? Status() : report_order(*runner_.order());
}

Status SessionWalk::open() {
  if (spec_.as<FaultsTask>() == nullptr) {
    TUTTI_RETURN_IF_ERROR(systems_.open(options_));
    if (!measuring_) return {};
    TUTTI_RETURN_IF_ERROR(measuring_->begin());
    if (!has_groups(spec_)) return {};
    TUTTI_ASSIGN_OR_RETURN(
        contention_,
        Contention::open({.spec = spec_, .runner = runner_, .systems = systems_, .measuring = *measuring_}));
    return {};
  }
  const auto breaker = std::make_shared<PlanBreaker>();
  TUTTI_RETURN_IF_ERROR(systems_.open(options_, PlanBreaker::hook(breaker)));
  injector_ = std::make_unique<Injector>(systems_.own(), runner_.ranks(), breaker);
  return {};
}

Status SessionWalk::run_cell(std::size_t index) {
  if (const auto* const task = spec_.as<FaultsTask>()) return try_faults(*task, spec_.cells[index].front());
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Row> rows, rows_of(index));
  std::string text;
  for (const Row& row : rows) text += row_to_json(row) + "\n";
  return report("cell", text);
}

Result<std::vector<Row>> SessionWalk::rows_of(std::size_t index) {
  // Where the order is drawn every case has ranks of its own, as if it ran alone: its id and the seed bring it back.
  if (runner_.order() != nullptr) TUTTI_RETURN_IF_ERROR(systems_.open_own_afresh(options_));
  Prospect prospect;
  TUTTI_RETURN_IF_ERROR(foresee(index, prospect));
  if (contention_ != nullptr) return contention_->rows_of(index, prospect.refusal);
  std::vector<Row> refused;
  std::vector<Variant> variants;
  std::uint32_t number = first_number_of(spec_, index);
  for (Case one : spec_.cells[index]) {
    runner_.set_case(number);
    one.algorithm = systems_.named(one.backend).algorithm_of(one);
    Result<Variant> variant = prospect.refusal.is_ok() ? make_ready(one, number) : Result<Variant>(prospect.refusal);
    ++number;
    TUTTI_ASSIGN_OR_RETURN(const Reason refusal, runner_.first_reason(variant.status()));
    if (refusal.is_any()) {
      refused.push_back(refused_row(one, refusal));
    } else {
      variants.push_back(std::move(variant).value());
    }
  }
  std::vector<Row> rows;
  if (!variants.empty()) {
    TUTTI_ASSIGN_OR_RETURN(rows,
                           measuring_ ? measuring_->measure(variants, index, prospect.has_limit) : check(variants));
  }
  rows.insert(rows.end(), refused.begin(), refused.end());
  return rows;
}

Status SessionWalk::foresee(std::size_t index, Prospect& prospect) {
  const std::vector<Case>& cell = spec_.cells[index];
  const std::vector<Case> on_runner = cases_in(MemoryKind::host, spec_, topology_, cell);
  const MemoryNeed need = memory_need(on_runner, spec_.conditions.cache);
  const bool has_limit = measuring_ && spec_.conditions.measures_limit() && !on_runner.empty();
  const MemoryNeed with_its_limit = has_limit ? memory_need(with_limit(on_runner), spec_.conditions.cache) : need;
  if (with_its_limit.sum() >= kLeastNeedChecked) {
    MemoryRoom room;
    if (spec_.ranks_as->is_process) room.heap_bytes = spec_.heap_bytes;
    TUTTI_RETURN_IF_ERROR(runner_.exchange(char{}).status());  // all have given back what the cell before had
    TUTTI_ASSIGN_OR_RETURN(room.left, runner_.agree(memory_left()));
    prospect.has_limit = fits_memory(with_its_limit, room).is_ok();
    prospect.refusal = fits_memory(need, room);
  }
  if (measuring_ && prospect.refusal.is_ok()) {
    const MemoryNeed everywhere = memory_need(cell, spec_.conditions.cache);
    TUTTI_RETURN_IF_ERROR(measuring_->begin_cell(index, everywhere.own + everywhere.shared, prospect.refusal));
  }
  return {};
}

Result<Variant> SessionWalk::make_ready(const Case& one, std::uint32_t number) {
  Backend& backend = systems_.named(one.backend);
  TUTTI_RETURN_IF_ERROR(systems_.supports(one));
  if (measuring_) TUTTI_RETURN_IF_ERROR(measuring_->has_start(one.backend));
  Variant::Request request = systems_.request_for(backend, one);
  request.number = number;
  return Variant::create(runner_, request);
}

Result<std::optional<Variant>> SessionWalk::other_of(const Variant& variant) {
  const Case& one = variant.instance();
  const bool is_proved = backend_of(one.backend) == kOwnBackend;
  if (is_proved || spec_.as<CheckTask>() == nullptr || !has_data(one.collective)) return std::optional<Variant>();
  Result<Variant> other = make_ready(one, variant.number().value_or(0));
  TUTTI_ASSIGN_OR_RETURN(const Reason refusal, runner_.first_reason(other.status()));
  if (refusal.is_any()) return std::optional<Variant>();
  return std::optional<Variant>(std::move(other).value());
}

Result<std::vector<Row>> SessionWalk::check(std::vector<Variant>& variants) {
  std::vector<Row> rows;
  for (Variant& variant : variants) {
    const auto* const task = spec_.as<RepeatTask>();
    TUTTI_ASSIGN_OR_RETURN(std::optional<Variant> other, other_of(variant));
    TUTTI_ASSIGN_OR_RETURN(Row row, task == nullptr ? check_case(runner_, variant, other ? &*other : nullptr)
                                                    : repeat_case(runner_, variant, *task, send_));
    set_conditions_of_ranks(row, spec_.conditions);
    rows.push_back(std::move(row));
  }
  return rows;
}

SessionWalk::Replayed SessionWalk::calls_of_trace(const MeasureTask& task) const {
  Replayed calls;
  std::map<std::string, std::size_t> known;
  std::map<std::string, int> in_step;
  for (std::size_t i = 0; i < spec_.cells.size(); ++i) {
    const Case& one = spec_.cells[i].front();
    if (i == 0 || task.steps[i] != task.steps[i - 1]) {
      calls.steps.push_back(task.steps[i]);
      calls.bytes.push_back(0);
      in_step.clear();
    }
    calls.bytes.back() = sum_of_bytes(calls.bytes.back(), one.bytes);
    const std::string id = case_id(one);
    const auto [found, is_new] = known.try_emplace(fmt::format("{} {}", id, in_step[id]++), calls.first.size());
    if (is_new) calls.first.push_back(i);
    calls.all.push_back({.step = calls.steps.size() - 1, .variant = found->second});
  }
  calls.steps.emplace_back(kWholeTrace);
  calls.bytes.push_back(std::accumulate(calls.bytes.begin(), calls.bytes.end(), std::int64_t{0}, sum_of_bytes));
  return calls;
}

Result<ReplaySystem> SessionWalk::system_for_replay(std::size_t place, const Replayed& calls) {
  ReplaySystem system{.variants = {}, .calls = calls.all};
  for (const std::size_t first : calls.first) {
    Case one = spec_.cells[first][place];
    const std::uint32_t number = first_number_of(spec_, first) + static_cast<std::uint32_t>(place);
    runner_.set_case(number);
    one.algorithm = systems_.named(one.backend).algorithm_of(one);
    Result<Variant> variant = make_ready(one, number);
    if (!variant.is_ok()) {
      return error(variant.status().code(), "call {}, {}: {}", first + 1, case_id(one), variant.status().message());
    }
    system.variants.push_back(std::move(variant).value());
  }
  return system;
}

Result<Reason> SessionWalk::lacks_memory_for(const Replayed& calls) {
  std::vector<Case> all;
  for (const std::size_t first : calls.first) {
    all.insert(all.end(), spec_.cells[first].begin(), spec_.cells[first].end());
  }
  const MemoryNeed need = memory_need(all);
  if (need.sum() < kLeastNeedChecked) return Reason();
  MemoryRoom room;
  if (spec_.ranks_as->is_process) room.heap_bytes = spec_.heap_bytes;
  TUTTI_ASSIGN_OR_RETURN(room.left, runner_.agree(memory_left()));
  return Reason::of(fits_memory(need, room));
}

Status SessionWalk::replay_trace(const MeasureTask& task) {
  constexpr std::chrono::nanoseconds kEachSystem = std::chrono::seconds(3);  // without a budget
  TUTTI_RETURN_IF_ERROR(report("begin", "0"));
  const Replayed calls = calls_of_trace(task);
  TUTTI_ASSIGN_OR_RETURN(const Reason lacks, lacks_memory_for(calls));
  const std::vector<Case>& systems = spec_.cells.front();
  std::vector<ReplaySystem> ready;
  std::vector<Reason> refusals;
  for (std::size_t place = 0; place < systems.size(); ++place) {
    refusals.push_back(lacks);
    if (lacks.is_any()) continue;
    Result<ReplaySystem> system = system_for_replay(place, calls);
    TUTTI_ASSIGN_OR_RETURN(refusals.back(), runner_.first_reason(system.status()));
    if (!refusals.back().is_any()) ready.push_back(std::move(system).value());
  }
  const std::int64_t time_ns = kEachSystem.count() * static_cast<std::int64_t>(ready.size());
  const ReplayOptions options{.steps = calls.steps.size() - 1,
                              .gaps_ns = task.gaps_ns,
                              .iterations = spec_.conditions.iterations,
                              .end_ns = task.end_ns > 0 ? task.end_ns : monotonic_ns() + time_ns};
  std::vector<std::vector<ReplayedPart>> parts;
  if (!ready.empty()) {
    TUTTI_ASSIGN_OR_RETURN(parts, replay(runner_, ready, options));
  }
  for (std::size_t step = 0; step < calls.steps.size(); ++step) {
    std::string text;
    for (std::size_t place = 0, measured = 0; place < systems.size(); ++place) {
      Row row = row_of_step(systems[place], task.trace, calls.steps[step], calls.bytes[step]);
      set_conditions_of_ranks(row, spec_.conditions);
      if (refusals[place].is_any()) {
        set_refused(row, refusals[place]);
      } else {
        set_replayed(row, parts[measured++][step], measuring_->tick_us());
      }
      text += row_to_json(row) + "\n";
    }
    TUTTI_RETURN_IF_ERROR(report("cell", text));
  }
  return {};
}

Status SessionWalk::try_faults(const FaultsTask& task, const Case& one) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Fault> faults, parse_faults(task.faults));
  const Sight sight;
  const bool is_on_gpu = has_gpu_memory(spec_, topology_);
  const MemorySource on_runner = [this](const Case& which, std::size_t index) {
    return systems_.own().allocator(which, index);
  };
  const TrialPlace place{.runner = runner_,
                         .own = systems_.own(),
                         .injector = *injector_,
                         .sight = sight,
                         .memory = is_on_gpu ? systems_.memory() : on_runner,
                         .is_on_gpu = is_on_gpu,
                         .takes_elements = topology_.on_devices()};
  for (const Fault fault : faults) {
    TUTTI_ASSIGN_OR_RETURN(const TrialResult result, try_fault(place, one, fault, spec_.seed));
    TUTTI_RETURN_IF_ERROR(report("fault", to_json(result)));
  }
  return {};
}

Status SessionWalk::report_clocks() {
  const Runner::Clocks& clocks = runner_.clocks();
  return report(
      "facts",
      nlohmann::json{
          {"clocks",
           {{"bound_ns", clocks.most_bound_ns}, {"change_ns", clocks.most_change_ns}, {"round_ns", clocks.round_ns}}}}
          .dump());
}

Status SessionWalk::report_order(const Order& order) {
  return report("facts", nlohmann::json{{"order", {{"steps", order.steps()}, {"trace", order.trace()}}}}.dump());
}

}  // namespace tutti::harness::session

// SPDX-License-Identifier: Apache-2.0
#include "harness/session/walk.h"

#include <string>

#include <nlohmann/json.hpp>

#include "harness/faults/trial.h"
#include "harness/measure/check.h"
#include "harness/measure/limit.h"
#include "harness/measure/memory.h"
#include "harness/measure/order.h"
#include "harness/measure/rows.h"
#include "harness/record/row_json.h"

namespace tutti::harness::session {

SessionWalk::SessionWalk(const SessionSpec& spec, const Place& place)
    : spec_(spec),
      host_(place.host),
      send_(place.send),
      options_(communicator_options(spec, place.host, place.cores)),
      systems_(spec, {.host = place.host, .domain = place.domain, .address = address_of(place.across)}) {
  const auto* const task = spec.as<MeasureTask>();
  if (task == nullptr) return;
  measuring_.emplace(
      spec, *task,
      Measuring::Place{
          .host = place.host, .domain = place.domain, .systems = systems_, .send = place.send, .across = place.across});
}

Status SessionWalk::run() {
  TUTTI_RETURN_IF_ERROR(open());
  for (std::size_t i = 0; i < spec_.cells.size(); ++i) {
    host_.set_case(first_number_of(spec_, i));
    TUTTI_RETURN_IF_ERROR(report("begin", std::to_string(i)));
    TUTTI_RETURN_IF_ERROR(run_cell(i));
  }
  if (measuring_ && host_.has_machines()) TUTTI_RETURN_IF_ERROR(report_clocks());
  TUTTI_RETURN_IF_ERROR(systems_.close());
  return host_.order() == nullptr ? Status() : report_order(*host_.order());
}

Status SessionWalk::open() {
  if (spec_.as<FaultsTask>() == nullptr) {
    TUTTI_RETURN_IF_ERROR(systems_.open(options_));
    return measuring_ ? measuring_->begin() : Status();
  }
  const auto breaker = std::make_shared<PlanBreaker>();
  TUTTI_RETURN_IF_ERROR(systems_.open(options_, PlanBreaker::hook(breaker)));
  injector_ = std::make_unique<Injector>(systems_.own(), host_.ranks(), breaker);
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
  if (host_.order() != nullptr) TUTTI_RETURN_IF_ERROR(systems_.open_own_afresh(options_));
  Prospect prospect;
  TUTTI_RETURN_IF_ERROR(foresee(index, prospect));
  std::vector<Row> refused;
  std::vector<Variant> variants;
  std::uint32_t number = first_number_of(spec_, index);
  for (Case one : spec_.cells[index]) {
    host_.set_case(number);
    one.algorithm = systems_.named(one.backend).algorithm_of(one);
    Result<Variant> variant = prospect.refusal.is_ok() ? make_ready(one, number) : Result<Variant>(prospect.refusal);
    ++number;
    TUTTI_ASSIGN_OR_RETURN(const Reason refusal, host_.first_reason(variant.status()));
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
  const std::vector<Case> on_host = cases_in(MemoryKind::host, spec_, cell);
  const MemoryNeed need = memory_need(on_host, spec_.conditions.cache);
  const bool has_limit = measuring_ && spec_.conditions.measures_limit() && !on_host.empty();
  const MemoryNeed with_its_limit = has_limit ? memory_need(with_limit(on_host), spec_.conditions.cache) : need;
  if (with_its_limit.sum() >= kLeastNeedChecked) {
    MemoryRoom room;
    if (spec_.ranks_as == RanksAs::processes) room.heap_bytes = spec_.heap_bytes;
    TUTTI_RETURN_IF_ERROR(host_.exchange(char{}).status());  // all have given back what the cell before had
    TUTTI_ASSIGN_OR_RETURN(room.left, host_.agree(memory_left()));
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
  TUTTI_RETURN_IF_ERROR(backend.supports(one));
  if (measuring_) TUTTI_RETURN_IF_ERROR(measuring_->has_start(one.backend));
  Variant::Request request = systems_.request_for(backend, one);
  request.number = number;
  return Variant::create(host_, request);
}

Result<std::vector<Row>> SessionWalk::check(std::vector<Variant>& variants) {
  std::vector<Row> rows;
  for (Variant& variant : variants) {
    TUTTI_ASSIGN_OR_RETURN(Row row, check_case(host_, variant));
    set_conditions_of_ranks(row, spec_.conditions);
    rows.push_back(std::move(row));
  }
  return rows;
}

Status SessionWalk::try_faults(const FaultsTask& task, const Case& one) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Fault> faults, parse_faults(task.faults));
  Sight sight;
  if (!task.blind.empty()) {
    TUTTI_ASSIGN_OR_RETURN(sight, sight_without(task.blind));
  }
  const bool is_on_gpu = uses_gpus(spec_);
  const MemorySource on_host = [this](const Case& which, std::size_t index) {
    return systems_.own().allocator(which, index);
  };
  const TrialPlace place{.host = host_,
                         .own = systems_.own(),
                         .injector = *injector_,
                         .sight = sight,
                         .memory = is_on_gpu ? systems_.memory() : on_host,
                         .is_on_gpu = is_on_gpu};
  for (const Fault fault : faults) {
    TUTTI_ASSIGN_OR_RETURN(const TrialResult result, try_fault(place, one, fault, spec_.seed));
    TUTTI_RETURN_IF_ERROR(report("fault", to_json(result)));
  }
  return {};
}

Status SessionWalk::report_clocks() {
  const Host::Clocks& clocks = host_.clocks();
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

// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/barriers.h"

#include "harness/cases/lists.h"
#include "harness/measure/cell.h"

namespace tutti::harness::measure {
namespace {

Result<Variant> make_barrier(Runner& runner, Backend& backend, const Case& one, const MemorySource& memory) {
  TUTTI_RETURN_IF_ERROR(backend.supports(one));
  return Variant::create(runner, {.backend = backend, .memory = memory, .instance = one});
}

}  // namespace

Status Barriers::open(Runner& runner, const Case& like, const Systems& systems, const MemorySource& memory) {
  for (const auto& [name, backend] : systems) {
    Case one;
    one.backend = name;
    one.transport = like.transport;
    one.ranks = like.ranks;
    one.ranks_as = like.ranks_as;
    one.algorithm = backend_of(name) == kOwnBackend ? kAuto : kNone;
    one.algorithm = backend->algorithm_of(one);
    Result<Variant> barrier = make_barrier(runner, *backend, one, memory);
    TUTTI_ASSIGN_OR_RETURN(const Reason why_none, runner.first_reason(barrier.status()));
    if (why_none.is_any()) {
      why_none_[name] = why_none.text();
    } else {
      by_backend_.emplace(name, std::move(barrier).value());
    }
  }
  return {};
}

Status Barriers::has_start(const std::string& backend) const {
  const auto why = why_none_.find(backend);
  if (why == why_none_.end()) return {};
  return error(Code::unavailable, "--sync library needs a barrier: {}", why->second);
}

Variant* Barriers::find(const std::string& backend) {
  const auto barrier = by_backend_.find(backend);
  return barrier == by_backend_.end() ? nullptr : &barrier->second;
}

Result<std::map<std::string, double>> Barriers::measure_floors(Runner& runner, Synchronisation sync) {
  std::map<std::string, double> floors_ns;
  for (auto& [name, barrier] : by_backend_) {
    TUTTI_ASSIGN_OR_RETURN(floors_ns[name], measure_floor(runner, {.how = sync, .barrier = &barrier}));
  }
  if (!floors_ns.empty()) return floors_ns;
  TUTTI_ASSIGN_OR_RETURN(floors_ns[std::string(kAll)], measure_floor(runner, {.how = sync}));
  return floors_ns;
}

}  // namespace tutti::harness::measure

// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/barriers.h"

#include <algorithm>

#include "harness/cases/lists.h"
#include "harness/measure/cell.h"
#include "harness/measure/refusal.h"

namespace tutti::harness {
namespace {

Result<Variant> make_barrier(Host& host, Systems& systems, Backend& backend, const Case& one) {
  TUTTI_RETURN_IF_ERROR(backend.supports(one));
  return Variant::create(host, {.backend = backend, .memory = systems.memory(), .instance = one});
}

}  // namespace

Status Barriers::open(const SessionSpec& spec, Host& host, const Domain& domain, Systems& systems) {
  for (const auto& [name, backend] : systems.by_name()) {
    Case one;
    one.backend = name;
    one.transport = domain.transport();
    one.ranks = spec.ranks;
    one.ranks_as = spec.ranks_as;
    one.algorithm = name == kOwnBackend ? kAuto : kNone;
    one.algorithm = backend->algorithm_of(one);
    Result<Variant> barrier = make_barrier(host, systems, *backend, one);
    TUTTI_ASSIGN_OR_RETURN(const Refusal refusal, first_refusal(host, Refusal::of(barrier.status())));
    if (refusal.code == Code::ok) {
      by_backend_.emplace(name, std::move(barrier).value());
    } else {
      why_none_[name] = refusal.reason.data();
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

Result<double> Barriers::floor_ns(Host& host, Synchronisation sync) {
  if (by_backend_.empty()) return measure_floor(host, {.how = sync});
  double longest = 0;
  for (auto& [name, barrier] : by_backend_) {
    TUTTI_ASSIGN_OR_RETURN(const double one, measure_floor(host, {.how = sync, .barrier = &barrier}));
    longest = std::max(longest, one);
  }
  return longest;
}

}  // namespace tutti::harness

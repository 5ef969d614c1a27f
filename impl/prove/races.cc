// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/races.h"

#include <algorithm>

namespace tutti {

Races::Races(const PlanSet& set, const Layout& layout, Findings& findings)
    : plans_(set.plans), layout_(layout), findings_(findings), ranks_(layout.ranks()) {
  std::size_t total = 0;
  for (const Plan& plan : plans_) total += plan.exposures().size();
  if (total == 0) return;
  const std::size_t pairs = static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_);
  exposures_.reserve(total);
  first_.reserve(pairs + 1);
  for (int rank = 0; rank < ranks_; ++rank) collect(rank);
  first_.push_back(exposures_.size());
  waited_.resize(pairs);
  signalled_.resize(pairs);
  events_.resize(static_cast<std::size_t>(ranks_));
}

/// Sorts one owner's exposures by target (counting sort) and checks that each belongs to a SIGNAL to its target.
void Races::collect(int rank) {
  const Plan& plan = plans_[static_cast<std::size_t>(rank)];
  const std::size_t base = exposures_.size();
  std::vector<std::size_t> count(static_cast<std::size_t>(ranks_) + 1);
  std::vector<const PlanExposure*> valid;
  for (const PlanExposure& exposure : plan.exposures()) {
    const PlanOp& op = plan.ops()[exposure.op];
    const bool is_user = exposure.space == Space::input || exposure.space == Space::output;
    if (op.verb != Verb::signal || !contains(plan.ranks(op), exposure.target, ranks_)) {
      findings_.add(rank, op.step, "exposes memory to rank {} without a SIGNAL to it", exposure.target);
    } else if (is_user && (op.marks & mark_exposes) == 0) {
      findings_.add(rank, op.step, "exposes a user buffer to rank {} without publishing where it is", exposure.target);
    } else if (exposure.bytes > 0) {
      valid.push_back(&exposure);
      ++count[static_cast<std::size_t>(exposure.target) + 1];
    }
  }
  for (std::size_t target = 0; target < static_cast<std::size_t>(ranks_); ++target) {
    count[target + 1] += count[target];
    first_.push_back(base + count[target]);
  }
  exposures_.resize(base + valid.size());
  for (const PlanExposure* exposure : valid) {
    exposures_[base + count[static_cast<std::size_t>(exposure->target)]++] = {
        .interval = layout_.locate(rank, exposure->space, exposure->offset, exposure->bytes),
        .target = exposure->target,
        .phase = plan.ops()[exposure->op].phase,
        .op = exposure->op,
        .close = kNever,
        .is_write = exposure->is_write};
  }
}

void Races::signalled(int rank, const PlanOp& op) {
  if (!has_exposures()) return;
  const RankSet set = plans_[static_cast<std::size_t>(rank)].ranks(op);
  for (int i = 0; i < set.n; ++i) signalled_[pair(set.at(i, ranks_), rank)] = op.phase;
}

void Races::heard(int rank, int peer, int phase, std::uint32_t op) {
  if (!has_exposures()) return;
  waited_[pair(peer, rank)] = static_cast<std::uint16_t>(phase);
  const std::size_t mine = pair(rank, peer);
  for (std::size_t i = first_[mine]; i < first_[mine + 1]; ++i) {
    Open& exposure = exposures_[i];
    if (exposure.close == kNever && exposure.op < op && exposure.phase < phase) exposure.close = op;
  }
}

void Races::own(const Access& access) {
  if (!exposes(access.owner) || access.interval.begin == access.interval.end) return;
  events_[static_cast<std::size_t>(access.owner)].push_back(
      {.interval = access.interval,
       .accessor = access.accessor,
       .step = static_cast<int>(step_of(access.accessor, access.op)),
       .from = access.op,
       .exposure = kNever,
       .is_write = access.is_write});
}

bool Races::remote(const Access& access) {
  Interval rest = access.interval;
  if (has_exposures()) {
    const std::size_t index = pair(access.owner, access.accessor);
    for (std::size_t i = first_[index]; i < first_[index + 1] && rest.begin < rest.end; ++i) {
      const Open& exposure = exposures_[i];
      const Interval& open = exposure.interval;
      if (exposure.is_write != access.is_write || open.memory != rest.memory || !is_open_to(exposure, index)) continue;
      if (open.begin > rest.begin || open.end <= rest.begin) continue;
      const std::int64_t end = std::min(rest.end, open.end);
      events_[static_cast<std::size_t>(access.owner)].push_back(
          {.interval = {.memory = rest.memory, .begin = rest.begin, .end = end},
           .accessor = access.accessor,
           .step = static_cast<int>(step_of(access.accessor, access.op)),
           .from = exposure.op,
           .exposure = static_cast<std::uint32_t>(i),
           .is_write = access.is_write});
      rest.begin = end;
      if (rest.begin < rest.end) i = first_[index] - 1;  // what is left may lie in an exposure listed earlier
    }
  }
  if (rest.begin == rest.end) return true;
  refuse(access);
  return false;
}

void Races::refuse(const Access& access) {
  const char* const verb = access.is_write ? "writes" : "reads";
  const char* reason = "which is not exposed to it";
  if (has_exposures()) {
    const std::size_t index = pair(access.owner, access.accessor);
    for (std::size_t i = first_[index]; i < first_[index + 1]; ++i) {
      const Open& exposure = exposures_[i];
      if (exposure.is_write != access.is_write || !exposure.interval.overlaps(access.interval)) continue;
      if (exposure.phase > waited_[index]) reason = "exposed in a phase that it has not waited for";
      if (exposure.phase < signalled_[index])
        reason = "though it has already signalled a later phase: the exposure may be closed";
      if (is_open_to(exposure, index)) reason = "which reaches outside the exposure";
    }
  }
  findings_.add(access.accessor, step_of(access.accessor, access.op), "{} {} of rank {}, {}", verb,
                Layout::describe(access.interval), access.owner, reason);
}

bool Races::conflict(const Event& a, const Event& b) const {
  const bool a_is_own = a.exposure == kNever;
  const bool b_is_own = b.exposure == kNever;
  if (a_is_own && b_is_own) return false;
  if (!a.is_write && !b.is_write) return false;
  if (a.accessor == b.accessor) return false;  // in one program
  if (a_is_own) return a.from > b.from && a.from < exposures_[b.exposure].close;
  if (b_is_own) return b.from > a.from && b.from < exposures_[a.exposure].close;
  return exposures_[a.exposure].close > b.from && exposures_[b.exposure].close > a.from;
}

void Races::report(int owner, const Event& a, const Event& b) {
  const Event& remote = a.exposure != kNever ? a : b;
  const Event& other = a.exposure != kNever ? b : a;
  const Open& exposure = exposures_[remote.exposure];
  const Interval both{.memory = a.interval.memory,
                      .begin = std::max(a.interval.begin, b.interval.begin),
                      .end = std::min(a.interval.end, b.interval.end)};
  findings_.add(other.accessor, other.step,
                "race: {} {} of rank {} while rank {} may {} it in its step {} (exposed at rank {} step {})",
                other.is_write ? "writes" : "reads", Layout::describe(both), owner, remote.accessor,
                remote.is_write ? "write" : "read", remote.step, owner, step_of(owner, exposure.op));
}

/// A sweep over the accesses in order of their first byte; only pairs with a write among them are looked at.
void Races::check_owner(int owner, std::vector<Event>& events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.interval.memory != b.interval.memory ? a.interval.memory < b.interval.memory
                                                  : a.interval.begin < b.interval.begin;
  });
  std::vector<const Event*> writes;
  std::vector<const Event*> reads;
  const auto meet = [&](std::vector<const Event*>& active, const Event& event) {
    std::erase_if(active, [&](const Event* other) { return !other->interval.overlaps(event.interval); });
    for (const Event* other : active) {
      if (conflict(*other, event)) {
        report(owner, *other, event);
        return;
      }
    }
  };
  for (const Event& event : events) {
    meet(writes, event);
    if (event.is_write) meet(reads, event);
    (event.is_write ? writes : reads).push_back(&event);
  }
}

void Races::finish() {
  for (int owner = 0; owner < ranks_ && has_exposures(); ++owner)
    check_owner(owner, events_[static_cast<std::size_t>(owner)]);
  for (int owner = 0; owner < ranks_ && has_exposures(); ++owner) {
    for (std::size_t i = of_rank(owner); i < first_[pair(owner, ranks_ - 1) + 1]; ++i) {
      const Open& exposure = exposures_[i];
      const bool is_user = exposure.interval.memory == memory_input || exposure.interval.memory == memory_output;
      if (!is_user || exposure.close != kNever) continue;
      findings_.add(owner, step_of(owner, exposure.op), "the exposure of {} to rank {} is still open at the end",
                    Layout::describe(exposure.interval), exposure.target);
    }
  }
}

}  // namespace tutti

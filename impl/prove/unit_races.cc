// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/unit_races.h"

#include <algorithm>
#include <tuple>

namespace tutti {
namespace {

bool shows(const Step& step) { return !step.read.is_empty() || !step.write.is_empty(); }

}  // namespace

std::uint32_t UnitRaces::place(int owner, Space space, int unit) const {
  const bool is_shared = form_.is_in_place && steps::is_user(space);
  const int begin =
      is_shared ? steps::begin_in_place(schedule_.problem, schedule_.shape.units_per_block, owner, space) : 0;
  return 3 * static_cast<std::uint32_t>(begin + unit) + static_cast<std::uint32_t>(memory(space));
}

/// The first WAIT of the owner for a later phase of `target`.
int UnitRaces::close_of(const Owner& owner, const Flag& show, int target) const {
  for (const Flag& wait : owner.waits) {
    if (wait.index > show.index && wait.step.phase > show.step.phase &&
        tutti::contains(wait.step.ranks, target, ranks_)) {
      return wait.index;
    }
  }
  return kNever;
}

int UnitRaces::last_phase(const std::vector<Flag>& sets, const std::unordered_map<int, int>& single, int rank) const {
  const auto found = single.find(rank);
  int last = found == single.end() ? 0 : found->second;
  for (std::size_t i = sets.size(); i-- > 0 && sets[i].step.phase > last;) {  // phases rise
    if (tutti::contains(sets[i].step.ranks, rank, ranks_)) last = sets[i].step.phase;
  }
  return last;
}

void UnitRaces::signalled(int rank, int index, const Step& step) {
  Flags& flags = flags_[static_cast<std::size_t>(rank)];
  if (step.ranks.n == 1) {
    flags.signalled[step.ranks.first] = step.phase;
  } else {
    flags.signals.push_back({.index = index, .step = step});
  }
  std::unique_ptr<Owner>& owner = owners_[static_cast<std::size_t>(rank)];
  if (owner != nullptr || !shows(step)) return;
  owner = std::make_unique<Owner>();
  const int count = schedule_.step_count(rank);
  for (int i = index; i < count; ++i) {
    const Step later = schedule_.step(rank, i);
    if (later.verb == Verb::signal && shows(later)) {
      owner->shows.push_back({.index = i, .step = later});
      if (!later.read.is_empty()) owner->is_shown[memory(later.read.space)] = true;
      if (!later.write.is_empty()) owner->is_shown[memory(later.write.space)] = true;
      if (!later.write.is_empty()) owner->is_written[memory(later.write.space)] = true;
    }
    if (later.verb == Verb::wait) owner->waits.push_back({.index = i, .step = later});
  }
}

void UnitRaces::waited(int rank, int index, const Step& step) {
  Flags& flags = flags_[static_cast<std::size_t>(rank)];
  if (step.ranks.n == 1) {
    flags.waited[step.ranks.first] = step.phase;
  } else {
    flags.waits.push_back({.index = index, .step = step});
  }
}

void UnitRaces::own(const Access& access) {
  Owner* const owner = owners_[static_cast<std::size_t>(access.owner)].get();
  if (owner == nullptr) return;
  const std::size_t at = memory(access.space);
  if (!(access.is_write ? owner->is_shown[at] : owner->is_written[at])) return;  // in nobody's way
  owner->events.push_back({.place = place(access.owner, access.space, access.unit),
                           .accessor = access.accessor,
                           .step = access.step,
                           .show = 0,
                           .is_own = 1,
                           .is_write = access.is_write ? 1U : 0U});
}

bool UnitRaces::remote(const Access& access, int count) {
  const char* reason = "which is not exposed to it";
  Owner* const owner = owners_[static_cast<std::size_t>(access.owner)].get();
  const Flags& mine = flags_[static_cast<std::size_t>(access.accessor)];
  for (std::size_t i = 0; owner != nullptr && i < owner->shows.size(); ++i) {
    const Flag& show = owner->shows[i];
    const Exposure& exposure = access.is_write ? show.step.write : show.step.read;
    if (exposure.is_empty() || exposure.space != access.space ||
        !tutti::contains(show.step.ranks, access.accessor, ranks_) ||
        !steps::contains(steps::shown_to(exposure, access.accessor, count), access.unit, count)) {
      continue;
    }
    if (show.step.phase > last_phase(mine.waits, mine.waited, access.owner)) {
      reason = "exposed in a phase that it has not waited for";
      continue;
    }
    if (show.step.phase < last_phase(mine.signals, mine.signalled, access.owner)) {
      reason = "though it has already signalled a later phase: the exposure may be closed";
      continue;
    }
    const bool is_in_the_way = access.is_write || memory(access.space) != static_cast<std::size_t>(Space::input);
    if (!is_in_the_way) return true;
    owner->events.push_back({.place = place(access.owner, access.space, access.unit),
                             .accessor = access.accessor,
                             .step = access.step,
                             .show = static_cast<std::uint32_t>(i) & Event::kMostShows,
                             .is_own = 0,
                             .is_write = access.is_write ? 1U : 0U});
    return true;
  }
  findings_.add(access.accessor, access.step, "{} {} unit {} of rank {}, {}", access.is_write ? "writes" : "reads",
                steps::name_of(access.space), access.unit, access.owner, reason);
  return false;
}

UnitRaces::Span UnitRaces::span_of(const Owner& owner, const Event& event) const {
  if (event.is_own != 0) return {.from = event.step, .to = event.step};
  const Flag& show = owner.shows[event.show];
  return {.from = show.index, .to = close_of(owner, show, event.accessor)};
}

bool UnitRaces::conflict(const Owner& owner, const Event& a, const Event& b) const {
  if (a.accessor == b.accessor || (a.is_write == 0 && b.is_write == 0)) return false;
  const Span at = span_of(owner, a), other = span_of(owner, b);
  if (a.is_own != 0) return at.from > other.from && at.from < other.to;
  if (b.is_own != 0) return other.from > at.from && other.from < at.to;
  return at.to > other.from && other.to > at.from;
}

/// Of each place one conflict.
void UnitRaces::check_races(int rank, Owner& owner) {
  std::vector<Event>& events = owner.events;
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    return std::tuple(a.place, b.is_write, a.accessor, a.step) < std::tuple(b.place, a.is_write, b.accessor, b.step);
  });
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    while (end < events.size() && events[end].place == events[begin].place) ++end;
    const auto first = events.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = events.begin() + static_cast<std::ptrdiff_t>(end);
    for (auto write = first; write != last && write->is_write != 0; ++write) {
      const auto other =
          std::find_if(write + 1, last, [&](const Event& event) { return conflict(owner, *write, event); });
      if (other == last) continue;
      report(rank, owner, *write, *other);
      break;
    }
  }
}

void UnitRaces::report(int rank, const Owner& owner, const Event& a, const Event& b) {
  const Event& remote = a.is_own != 0 ? b : a;
  const Event& other = a.is_own != 0 ? a : b;
  findings_.add(other.accessor, other.step,
                "race: {} {} unit {} of rank {} while rank {} may {} it in its step {} (exposed at rank {} step {})",
                other.is_write != 0 ? "writes" : "reads", steps::name_of(static_cast<Space>(a.place % 3)), a.place / 3,
                rank, remote.accessor, remote.is_write != 0 ? "write" : "read", remote.step, rank,
                span_of(owner, remote).from);
}

void UnitRaces::check_closed(int rank, const Owner& owner) {
  for (const Flag& show : owner.shows) {
    for (const Exposure* const exposure : {&show.step.read, &show.step.write}) {
      if (exposure->is_empty() || !steps::is_user(exposure->space)) continue;
      for (int i = 0; i < show.step.ranks.n; ++i) {
        const int target = show.step.ranks.at(i, ranks_);
        if (close_of(owner, show, target) != kNever) continue;
        findings_.add(rank, show.index, "the exposure of {} units to rank {} is still open at the end",
                      steps::name_of(exposure->space), target);
      }
    }
  }
}

void UnitRaces::finish() {
  for (int rank = 0; rank < ranks_; ++rank) {
    Owner* const owner = owners_[static_cast<std::size_t>(rank)].get();
    if (owner == nullptr) continue;
    check_races(rank, *owner);
    check_closed(rank, *owner);
  }
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/unit_races.h"

#include <algorithm>

namespace tutti {
namespace {

bool shows(const Step& step) { return !step.read.is_empty() || !step.write.is_empty(); }

}  // namespace

std::int64_t UnitRaces::place(int owner, Space space, int unit) const {
  const bool is_shared = form_.is_in_place && steps::is_user(space);
  const int begin =
      is_shared ? steps::begin_in_place(schedule_.problem, schedule_.shape.units_per_block, owner, space) : 0;
  return 3 * (static_cast<std::int64_t>(begin) + unit) + static_cast<std::int64_t>(memory(space));
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
  Log& log = owner->logs[place(access.owner, access.space, access.unit)];
  if (access.is_write) {
    log.own.push_back(
        {.accessor = access.accessor, .step = access.step, .from = access.step, .to = access.step, .is_own = true});
  } else {
    log.reads.push_back({.accessor = access.accessor,
                         .other = -1,
                         .step = access.step,
                         .from = access.step,
                         .to = access.step,
                         .is_own = true});
  }
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
    Log& log = owner->logs[place(access.owner, access.space, access.unit)];
    const int to = close_of(*owner, show, access.accessor);
    if (access.is_write) {
      log.writes.push_back(
          {.accessor = access.accessor, .step = access.step, .from = show.index, .to = to, .is_own = false});
      return true;
    }
    for (Reads& reads : log.reads) {
      if (reads.is_own || reads.from != show.index || reads.to != to) continue;
      if (reads.accessor != access.accessor) reads.other = access.accessor;
      return true;
    }
    log.reads.push_back(
        {.accessor = access.accessor, .other = -1, .step = access.step, .from = show.index, .to = to, .is_own = false});
    return true;
  }
  findings_.add(access.accessor, access.step, "{} {} unit {} of rank {}, {}", access.is_write ? "writes" : "reads",
                steps::name_of(access.space), access.unit, access.owner, reason);
  return false;
}

void UnitRaces::check(int owner, std::int64_t place, const Log& log) {
  const auto overlap = [](const auto& a, const auto& b) {
    if (a.is_own && b.is_own) return false;
    if (a.is_own) return a.from > b.from && a.from < b.to;
    if (b.is_own) return b.from > a.from && b.from < a.to;
    return a.to > b.from && b.to > a.from;
  };
  const auto report = [&](const auto& a, const char* a_does, const auto& b, const char* b_does) {
    const auto say = [&](const auto& other, const char* other_does, const auto& remote, const char* remote_does) {
      findings_.add(
          other.accessor, other.step,
          "race: {}s {} unit {} of rank {} while rank {} may {} it in its step {} (exposed at rank {} step {})",
          other_does, steps::name_of(static_cast<Space>(place % 3)), place / 3, owner, remote.accessor, remote_does,
          remote.step, owner, remote.from);
    };
    a.is_own ? say(a, a_does, b, b_does) : say(b, b_does, a, a_does);
  };
  const auto is_by_others = [](const Reads& reads, int accessor) {
    return reads.accessor != accessor || reads.other >= 0;
  };
  for (const Write& write : log.own) {
    for (const Reads& reads : log.reads) {
      if (reads.is_own || !overlap(reads, write)) continue;
      report(reads, "read", write, "write");
      return;
    }
  }
  for (std::size_t i = 0; i < log.writes.size(); ++i) {
    const Write& write = log.writes[i];
    const auto meets = [&](const Write& other) { return other.accessor != write.accessor && overlap(other, write); };
    const auto before = std::find_if(log.writes.begin(), log.writes.begin() + static_cast<std::ptrdiff_t>(i), meets);
    if (before != log.writes.begin() + static_cast<std::ptrdiff_t>(i)) return report(*before, "write", write, "write");
    const auto own = std::ranges::find_if(log.own, meets);
    if (own != log.own.end()) return report(*own, "write", write, "write");
    for (const Reads& reads : log.reads) {
      if (!is_by_others(reads, write.accessor) || !overlap(reads, write)) continue;
      report(reads, "read", write, "write");
      return;
    }
  }
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
    const Owner* const owner = owners_[static_cast<std::size_t>(rank)].get();
    if (owner == nullptr) continue;
    for (const auto& [place, log] : owner->logs) check(rank, place, log);
    check_closed(rank, *owner);
  }
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/unit_races.h"

#include <algorithm>
#include <tuple>

namespace tutti {
namespace {

bool shows(const Step& step) { return !step.read.is_empty() || !step.write.is_empty(); }

/// Whether `set` holds the whole of `arc`.
bool holds(const RankSet& set, steps::RankArc arc, int ranks) {
  if (set.stride != 1 || set.n < arc.end - arc.begin) return false;
  const int first = arc.begin >= set.first ? arc.begin - set.first : arc.begin - set.first + ranks;
  return first + arc.end - arc.begin <= set.n;
}

}  // namespace

UnitRaces::Flag UnitRaces::flag_of(int index, const Step& step) {
  return {.index = index, .phase = step.phase, .ranks = step.ranks, .read = step.read, .write = step.write};
}

std::uint32_t UnitRaces::place(int owner, Space space, int unit) const {
  const bool is_shared = form_.is_in_place && steps::is_user(space);
  const int begin =
      is_shared ? steps::begin_in_place(schedule_.problem, schedule_.shape.units_per_block, owner, space) : 0;
  return 3 * static_cast<std::uint32_t>(begin + unit) + static_cast<std::uint32_t>(memory(space));
}

/// The first WAIT of the owner for a later phase of `target`.
int UnitRaces::close_of(const Owner& owner, const Flag& show, int target) const {
  for (const Flag& wait : owner.waits) {
    if (wait.index > show.index && wait.phase > show.phase && tutti::contains(wait.ranks, target, ranks_)) {
      return wait.index;
    }
  }
  return kNever;
}

int UnitRaces::last_phase(const std::vector<Flag>& sets, const std::unordered_map<int, int>& single, int rank) const {
  const auto found = single.find(rank);
  int last = found == single.end() ? 0 : found->second;
  for (std::size_t i = sets.size(); i-- > 0 && sets[i].phase > last;) {  // phases rise
    if (tutti::contains(sets[i].ranks, rank, ranks_)) last = sets[i].phase;
  }
  return last;
}

void UnitRaces::signalled(int rank, int index, const Step& step) {
  Flags& flags = flags_[static_cast<std::size_t>(rank)];
  if (step.ranks.n == 1) {
    flags.signalled[step.ranks.first] = step.phase;
  } else {
    flags.signals.push_back(flag_of(index, step));
  }
  std::unique_ptr<Owner>& owner = owners_[static_cast<std::size_t>(rank)];
  if (owner != nullptr || !shows(step)) return;
  owner = std::make_unique<Owner>();
  const int count = schedule_.step_count(rank);
  for (int i = index; i < count; ++i) {
    const Step later = schedule_.step(rank, i);
    if (later.verb == Verb::signal && shows(later)) {
      owner->shows.push_back(flag_of(i, later));
      if (!later.read.is_empty()) owner->is_shown[memory(later.read.space)] = true;
      if (!later.write.is_empty()) owner->is_shown[memory(later.write.space)] = true;
      if (!later.write.is_empty()) owner->is_written[memory(later.write.space)] = true;
    }
    if (later.verb == Verb::wait) owner->waits.push_back(flag_of(i, later));
  }
}

void UnitRaces::waited(int rank, int index, const Step& step) {
  Flags& flags = flags_[static_cast<std::size_t>(rank)];
  if (step.ranks.n == 1) {
    flags.waited[step.ranks.first] = step.phase;
  } else {
    flags.waits.push_back(flag_of(index, step));
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

/// The first SIGNAL of the owner that shows the unit to the accessor, of phases `oldest` to `newest`; none, and a
/// finding, where there is none.
std::optional<std::size_t> UnitRaces::find_show(const Access& access, int count, Phases phases) {
  const char* reason = "which is not exposed to it";
  const Owner* const owner = owners_[static_cast<std::size_t>(access.owner)].get();
  for (std::size_t i = 0; owner != nullptr && i < owner->shows.size(); ++i) {
    const Flag& show = owner->shows[i];
    const Exposure& exposure = access.is_write ? show.write : show.read;
    if (exposure.is_empty() || exposure.space != access.space ||
        !tutti::contains(show.ranks, access.accessor, ranks_) ||
        !steps::contains(steps::shown_to(exposure, access.accessor, count), access.unit, count)) {
      continue;
    }
    if (show.phase > phases.newest) {
      reason = "exposed in a phase that it has not waited for";
    } else if (show.phase < phases.oldest) {
      reason = "though it has already signalled a later phase: the exposure may be closed";
    } else {
      return i;
    }
  }
  findings_.add(access.accessor, access.step, "{} {} unit {} of rank {}, {}", access.is_write ? "writes" : "reads",
                steps::name_of(access.space), access.unit, access.owner, reason);
  return {};
}

bool UnitRaces::remote(const Access& access, int count) {
  const Flags& mine = flags_[static_cast<std::size_t>(access.accessor)];
  const auto show = find_show(access, count,
                              {.oldest = last_phase(mine.signals, mine.signalled, access.owner),
                               .newest = last_phase(mine.waits, mine.waited, access.owner)});
  if (!show) return false;
  const bool is_in_the_way = access.is_write || memory(access.space) != static_cast<std::size_t>(Space::input);
  if (is_in_the_way) add_event(*owners_[static_cast<std::size_t>(access.owner)], access, *show);
  return true;
}

void UnitRaces::add_event(Owner& owner, const Access& access, std::size_t show) const {
  owner.events.push_back({.place = place(access.owner, access.space, access.unit),
                          .accessor = access.accessor,
                          .step = access.step,
                          .show = static_cast<std::uint32_t>(show) & Event::kMostShows,
                          .is_own = 0,
                          .is_write = access.is_write ? 1U : 0U});
}

/// The newest phase in which a flag of one of `ranks` came or went, the same one for all of them, 0 if in none; none
/// where that is not seen at once.
std::optional<int> UnitRaces::phase_for_all(const std::vector<Flag>& sets, const std::unordered_map<int, int>& single,
                                            steps::RankArc ranks) const {
  constexpr std::size_t kMostSingle = 16;
  if (single.size() > kMostSingle) return {};
  for (const auto& [rank, phase] : single) {
    if (rank >= ranks.begin && rank < ranks.end) return {};
  }
  for (std::size_t i = sets.size(); i-- > 0;) {  // phases rise
    if (sets[i].ranks.stride != 1) return {};
    if (holds(sets[i].ranks, ranks, ranks_)) return sets[i].phase;
    bool meets = false;
    steps::for_arcs(sets[i].ranks, ranks_, -1,
                    [&](steps::RankArc arc) { meets = meets || (arc.begin < ranks.end && ranks.begin < arc.end); });
    if (meets) return {};
  }
  return 0;
}

bool UnitRaces::remote(steps::RankArc owners, const Access& access) {
  const Flags& mine = flags_[static_cast<std::size_t>(access.accessor)];
  const std::optional<int> newest = phase_for_all(mine.waits, mine.waited, owners);
  const std::optional<int> oldest = phase_for_all(mine.signals, mine.signalled, owners);
  if (!newest || !oldest) return false;
  wide_reads_.push_back({.owners = owners,
                         .accessor = access.accessor,
                         .step = access.step,
                         .space = access.space,
                         .unit = access.unit,
                         .oldest = *oldest,
                         .newest = *newest});
  return true;
}

/// Whether all owners show what was read, in the same phase and as the same units; else rank by rank.
void UnitRaces::check_wide_reads() {
  struct Kind {  // of exposures
    Exposure exposure;
    int phase;
    steps::Coverage coverage;
  };
  std::vector<Kind> kinds;
  constexpr std::size_t kMostKinds = 16;
  for (int rank = 0; rank < ranks_ && !wide_reads_.empty(); ++rank) {
    const Owner* const owner = owners_[static_cast<std::size_t>(rank)].get();
    for (std::size_t i = 0; owner != nullptr && i < owner->shows.size(); ++i) {
      const Flag& show = owner->shows[i];
      if (show.read.is_empty()) continue;
      auto kind = std::ranges::find_if(
          kinds, [&](const Kind& one) { return one.exposure == show.read && one.phase == show.phase; });
      if (kind == kinds.end()) {
        if (kinds.size() == kMostKinds) continue;
        kinds.push_back({.exposure = show.read, .phase = show.phase, .coverage = steps::Coverage(ranks_)});
        kind = std::prev(kinds.end());
      }
      kind->coverage.give(rank, show.ranks);
    }
  }
  std::vector<bool> is_shown(wide_reads_.size());
  for (Kind& kind : kinds) {
    if (kind.exposure.space == Space::output) continue;  // not read as one
    const int count = units_of(0, kind.exposure.space);
    std::vector<std::size_t> asked;
    for (std::size_t id = 0; id < wide_reads_.size(); ++id) {
      const WideRead& read = wide_reads_[id];
      if (is_shown[id] || read.space != kind.exposure.space || kind.phase < read.oldest || kind.phase > read.newest ||
          !steps::contains(steps::shown_to(kind.exposure, read.accessor, count), read.unit, count)) {
        continue;
      }
      asked.push_back(id);
      kind.coverage.take(read.accessor, read.owners, id);
    }
    for (const std::size_t id : asked) is_shown[id] = true;
    kind.coverage.for_uncovered([&](std::size_t id) { is_shown[id] = false; });
  }
  for (std::size_t id = 0; id < wide_reads_.size(); ++id) {
    if (is_shown[id]) continue;
    const WideRead& read = wide_reads_[id];
    for (int owner = read.owners.begin; owner < read.owners.end; ++owner) {
      const Access access{.accessor = read.accessor,
                          .step = read.step,
                          .owner = owner,
                          .space = read.space,
                          .unit = read.unit,
                          .is_write = false};
      if (!find_show(access, units_of(owner, read.space), {.oldest = read.oldest, .newest = read.newest})) return;
    }
  }
}

/// Those that read where the owner's memory is stored to.
void UnitRaces::add_wide_reads(int rank, Owner& owner) {
  const auto is_write = [](const Event& event) { return event.is_write != 0; };
  if (std::ranges::none_of(owner.events, is_write)) return;
  std::vector<std::uint32_t> written;
  for (const Event& event : owner.events) {
    if (event.is_write != 0) written.push_back(event.place);
  }
  std::ranges::sort(written);
  for (const WideRead& read : wide_reads_) {
    if (rank < read.owners.begin || rank >= read.owners.end) continue;
    if (!std::ranges::binary_search(written, place(rank, read.space, read.unit))) continue;
    const Access access{.accessor = read.accessor,
                        .step = read.step,
                        .owner = rank,
                        .space = read.space,
                        .unit = read.unit,
                        .is_write = false};
    const auto show = find_show(access, units_of(rank, read.space), {.oldest = read.oldest, .newest = read.newest});
    if (show) add_event(owner, access, *show);
  }
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
    for (const Exposure* const exposure : {&show.read, &show.write}) {
      if (exposure->is_empty() || !steps::is_user(exposure->space)) continue;
      const auto closes_all = [&](const Flag& wait) {
        bool is_all = show.ranks.stride == 1 && wait.index > show.index && wait.phase > show.phase;
        if (!is_all) return false;
        steps::for_arcs(show.ranks, ranks_, -1,
                        [&](steps::RankArc arc) { is_all = is_all && holds(wait.ranks, arc, ranks_); });
        return is_all;
      };
      if (std::ranges::any_of(owner.waits, closes_all)) continue;
      for (int i = 0; i < show.ranks.n; ++i) {
        const int target = show.ranks.at(i, ranks_);
        if (close_of(owner, show, target) != kNever) continue;
        findings_.add(rank, show.index, "the exposure of {} units to rank {} is still open at the end",
                      steps::name_of(exposure->space), target);
      }
    }
  }
}

void UnitRaces::finish() {
  check_wide_reads();
  for (int rank = 0; rank < ranks_; ++rank) {
    Owner* const owner = owners_[static_cast<std::size_t>(rank)].get();
    if (owner == nullptr) continue;
    add_wide_reads(rank, *owner);
    check_races(rank, *owner);
    check_closed(rank, *owner);
  }
}

}  // namespace tutti

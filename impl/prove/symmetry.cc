// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/symmetry.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>
#include <tuple>

#include "impl/collective/collective.h"
#include "impl/prove/steps.h"
#include "impl/schedule/turning.h"

namespace tutti {
namespace {

using Group = Symmetry::Group;
using Units = Symmetry::Units;

/// Of the inputs and of the outputs.
struct Acts {
  Units inputs;
  Units outputs;
};

/// How units may go with the ranks so that the collective means the same: origin_of(g r, g b) is that of (r, b), taken
/// by g. The collectives that are not here have a root, an order, or pairs.
std::vector<Acts> meaningful(Collective collective, Group group) {
  const auto both = [group] {  // block b of everybody's output is made of block b of inputs, and so are units
    std::vector<Acts> acts{{Units::fixed, Units::fixed}, {Units::with_ranks, Units::with_ranks}};
    if (group == Group::hosts_by_local) acts.push_back({Units::with_local_first, Units::with_local_first});
    return acts;
  };
  switch (collective) {
    case Collective::all_reduce:
      return both();
    case Collective::sendrecv:  // the rank before is before wherever both go
      return group == Group::rotation ? both() : std::vector<Acts>();
    case Collective::all_gather:  // output block b is rank b's only input block
      return {{Units::fixed, Units::with_ranks}};
    case Collective::reduce_scatter:  // rank r's only output block is made of input blocks r
      return {{Units::with_ranks, Units::fixed}};
    case Collective::all_to_all:  // output block b of rank r is input block r of rank b
      return {{Units::with_ranks, Units::with_ranks}};
    case Collective::barrier:
      return {{Units::fixed, Units::fixed}};
    default:
      return {};
  }
}

/// Operands on the same units of arcs of ranks that touch are one operand on both arcs.
void join_arcs(std::vector<Operand>& list, int ranks) {
  const auto joins = [&](const Operand& left, const Operand& right) {
    return left.space == right.space && left.space != Space::channel && left.units == right.units &&
           (left.ranks.stride == 1 || left.ranks.n == 1) && (right.ranks.stride == 1 || right.ranks.n == 1) &&
           left.ranks.n + right.ranks.n <= ranks && (left.ranks.first + left.ranks.n) % ranks == right.ranks.first;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = 0; j < list.size(); ++j) {
      if (i == j || !joins(list[i], list[j])) continue;
      list[i].ranks.n += list[j].ranks.n;
      list[i].ranks.stride = 1;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
      i = static_cast<std::size_t>(-1);  // from the beginning
      break;
    }
  }
}

bool has_channel(const Step& step) {
  const auto is_channel = [](const Operand& operand) { return operand.space == Space::channel; };
  return std::any_of(step.destinations.begin(), step.destinations.end(), is_channel) ||
         std::any_of(step.sources.begin(), step.sources.end(), is_channel);
}

bool is_before(const Operand& a, const Operand& b) {
  const auto key = [](const Operand& o) {
    return std::tuple(o.space, o.ranks.first, o.ranks.n, o.ranks.stride, o.units.start, o.units.length, o.units.stride,
                      o.units.repeat);
  };
  return key(a) < key(b);
}

}  // namespace

std::optional<Symmetry> Symmetry::of(const Schedule& schedule, Group group, Units inputs, Units outputs,
                                     Units scratch) {
  const Problem& problem = schedule.problem;
  Symmetry symmetry;
  symmetry.group_ = group;
  symmetry.ranks_ = problem.ranks;
  if (group == Group::exclusive_or && !std::has_single_bit(static_cast<unsigned>(problem.ranks))) return {};
  if (group == Group::hosts_by_local) {
    const int each = problem.is_on_one_host() ? even_cache_width(problem) : problem.ranks_per_host;
    if (each >= problem.ranks || problem.ranks % each != 0) return {};
    symmetry.is_of_caches_ = problem.is_on_one_host();
    symmetry.per_host_ = each;
    symmetry.hosts_ = problem.ranks / each;
  }
  const int per_block = schedule.shape.units_per_block;
  const std::array<int, 3> units{input_blocks(problem, 0) * per_block, output_blocks(problem, 0) * per_block,
                                 schedule.shape.scratch_units};
  const std::array<Units, 3> acts{inputs, outputs, scratch};
  for (std::size_t space = 0; space < units.size(); ++space) {
    const int count = units[space];
    if (acts[space] == Units::with_ranks && (count == 0 || count % problem.ranks != 0)) return {};
    if (acts[space] == Units::with_local_first && count != problem.ranks) return {};
    if (acts[space] == Units::with_hosts && count != symmetry.hosts_) return {};
    symmetry.spaces_[space] = {.acts = acts[space], .units = count, .per_rank = std::max(1, count / problem.ranks)};
  }
  return symmetry;
}

std::string_view Symmetry::name() const {
  switch (group_) {
    case Group::rotation:
      return "rotation";
    case Group::exclusive_or:
      return "exclusive or";
    case Group::hosts_by_local:
      break;
  }
  return is_of_caches_ ? "caches x local" : "hosts x local";
}

/// As sets.
bool Symmetry::takes(const RankSet& set, int element, const RankSet& other) const {
  if (set.n != other.n) return false;
  if (set.n == 0 || (set.n == ranks_ && set.stride == 1 && other.stride == 1)) return true;
  if (set.n == 1) return rank(element, set.first) == other.first;
  if (set.stride != other.stride) return false;
  if (group_ == Group::rotation) return rank(element, set.first) == other.first;
  // The ranks of one place on all hosts.
  if (group_ == Group::hosts_by_local && set.stride == per_host_ && set.n == hosts_) {
    return around(element % per_host_ + set.first % per_host_, per_host_) == other.first % per_host_;
  }
  const bool is_host = group_ == Group::hosts_by_local && set.stride == 1 && set.n == per_host_ &&
                       set.first % per_host_ == 0 && other.first % per_host_ == 0;
  return is_host && around(element / per_host_ + set.first / per_host_, hosts_) == other.first / per_host_;
}

/// Unit by unit: the k-th of `set` is taken to the k-th of `other`.
bool Symmetry::takes(Space space, const UnitSet& set, int element, const UnitSet& other) const {
  constexpr int kMostStart = 1 << 30;  // sums of it do not overflow
  if (set.length != other.length || set.repeat != other.repeat) return false;
  if (set.repeat > 1 && set.stride != other.stride) return false;
  if (set.length == 0) return true;
  const Of& of = spaces_[static_cast<std::size_t>(space)];
  if (of.units == 0 || set.start < 0 || other.start < 0 || set.start >= kMostStart || other.start >= kMostStart) {
    return false;
  }
  const int start = set.start < of.units ? set.start : set.start % of.units;
  if (unit(space, element, start) != (other.start < of.units ? other.start : other.start % of.units)) return false;
  if (of.acts == Units::fixed || count_of(set) == 1) return true;
  if (of.acts == Units::with_ranks && group_ == Group::rotation) return true;  // all go on by as many units
  if (of.acts == Units::with_hosts) return set.repeat == 1;                    // so they do here
  const bool is_column = group_ == Group::hosts_by_local && of.acts == Units::with_ranks && of.per_rank == 1 &&
                         set.length == 1 && set.stride == per_host_ && set.repeat == hosts_;
  if (is_column) return true;  // the blocks of one place on all hosts, host after host
  // Within what goes with one rank the units keep their order.
  return of.acts == Units::with_ranks && set.repeat == 1 && start % of.per_rank + set.length <= of.per_rank;
}

/// Exclusive or: whether an operand has one unit of each of `length` ranks that differ in low bits only.
bool Symmetry::is_aligned(const Operand& operand, int length) const {
  if (operand.space == Space::channel) return true;
  const Of& of = spaces_[static_cast<std::size_t>(operand.space)];
  const UnitSet& set = operand.units;
  return operand.ranks.n == 1 && of.acts == Units::with_ranks && of.per_rank == 1 && set.repeat == 1 &&
         set.length == length && set.start >= 0 && set.start % length == 0 && set.start + length <= of.units;
}

/// Exclusive or: a MOVE of aligned units of 2^i ranks is taken to one in which the k-th unit is the (k xor g)-th, of
/// the low i bits of g. All its operands are in the same order, and so is the other end of a message, where those bits
/// are the same.
bool Symmetry::takes_aligned(const Step& step, int element, const Step& other) const {
  int length = 1;
  for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
    for (const Operand& operand : *list) length = std::max(length, operand.units.length);
  }
  if (group_ != Group::exclusive_or || length == 1 || !std::has_single_bit(static_cast<unsigned>(length))) return false;
  const auto is_taken = [&](const Operand& a, const Operand& b) {
    if (a.space != b.space || !takes(a.ranks, element, b.ranks)) return false;
    if (a.space == Space::channel) return a.ranks.first % length == 0;
    return is_aligned(a, length) && is_aligned(b, length) &&
           (a.units.start ^ element) / length == b.units.start / length;
  };
  return step.destinations.size == other.destinations.size && step.sources.size == other.sources.size &&
         std::equal(step.destinations.begin(), step.destinations.end(), other.destinations.begin(), is_taken) &&
         std::equal(step.sources.begin(), step.sources.end(), other.sources.begin(), is_taken);
}

bool Symmetry::takes(const Operand& operand, int element, const Operand& other) const {
  if (operand.space != other.space || !takes(operand.ranks, element, other.ranks)) return false;
  return operand.space == Space::channel || takes(operand.space, operand.units, element, other.units);
}

/// For every target: what rank 0 exposes to t, taken by `element`, is what the other exposes to t taken by it.
bool Symmetry::takes(const Exposure& exposure, int element, const Exposure& other) const {
  if (exposure.is_empty() || other.is_empty()) return exposure.is_empty() == other.is_empty();
  if (exposure.space != other.space || exposure.per_target != other.per_target || exposure.per_target < 0) return false;
  const std::size_t space = static_cast<std::size_t>(exposure.space);
  if (space >= spaces_.size()) return false;
  const Of& of = spaces_[space];
  const int per_target = exposure.per_target;
  if (of.units == 0) return false;
  const auto is_whole = [&](const UnitSet& set) { return set.length == of.units && set.repeat == 1; };
  if (is_whole(exposure.units) && is_whole(other.units)) return true;
  if (per_target == 0) return takes(exposure.space, exposure.units, element, other.units);
  if (group_ == Group::rotation) {
    // Targets go around as the units do, or P of them come to all units.
    if (static_cast<std::int64_t>(per_target) * ranks_ % of.units != 0) return false;
    UnitSet moved = other.units;
    if (moved.start < 0) return false;
    moved.start = static_cast<int>((moved.start + static_cast<std::int64_t>(element) * per_target) % of.units);
    return takes(exposure.space, exposure.units, element, moved);
  }
  if (exposure.units != other.units) return false;
  const UnitSet& set = exposure.units;
  if (of.acts == Units::with_ranks && per_target == of.per_rank) {
    // Some of what goes with the target; or of all ranks that have its place on their hosts.
    if (set.repeat == 1) return set.start >= 0 && set.start + set.length <= of.per_rank;
    return group_ == Group::hosts_by_local && of.per_rank == 1 && set.start == 0 && set.length == 1 &&
           set.stride == per_host_ && set.repeat == hosts_;
  }
  // All that goes with the ranks that have the target's place on their hosts.
  return of.acts == Units::with_local_first && per_target == hosts_ && set.start == 0 && set.length == hosts_ &&
         set.repeat == 1;
}

/// As they are written, or else in any order.
bool Symmetry::takes(const Operands<4>& list, int element, const Operands<4>& other) const {
  const auto is_taken = [&](const Operand& a, const Operand& b) { return takes(a, element, b); };
  if (list.size == other.size && std::equal(list.begin(), list.end(), other.begin(), is_taken)) return true;
  if (list.size < 2 && other.size < 2) return false;
  std::vector<Operand> ours;
  for (const Operand& operand : list) {  // taken there
    Operand there = operand;
    const bool is_set = operand.ranks.n > 1 && group_ != Group::rotation;
    const bool has_units = operand.space != Space::channel && count_of(operand.units) > 1;
    if (is_set || has_units || operand.units.start < 0) return false;
    if (operand.ranks.n == 1) there.ranks = only(operand.ranks.first);
    there.ranks.first = rank(element, operand.ranks.first);
    if (operand.space == Space::channel) {
      there.units = {};
    } else {
      const int count = units(operand.space);
      if (count == 0) return false;
      there.units = tutti::unit(unit(operand.space, element, operand.units.start % count));
    }
    ours.push_back(there);
  }
  std::vector<Operand> theirs;
  for (const Operand& operand : other) {
    Operand there = operand;
    if (operand.ranks.n == 1) there.ranks = only(operand.ranks.first);
    if (operand.space == Space::channel) {
      there.units = {};
    } else {
      const int count = units(operand.space);
      if (count == 0 || operand.units.start < 0 || count_of(operand.units) != 1) return false;
      there.units = tutti::unit(operand.units.start % count);
    }
    theirs.push_back(there);
  }
  for (std::vector<Operand>* const side : {&ours, &theirs}) {
    join_arcs(*side, ranks_);
    std::sort(side->begin(), side->end(), is_before);
  }
  return ours == theirs;
}

bool Symmetry::takes(const Step& step, int element, const Step& other) const {
  if (step.verb != other.verb || step.phase != other.phase || step.is_final != other.is_final ||
      step.in_turn_with_next != other.in_turn_with_next || step.only_closes_reads != other.only_closes_reads) {
    return false;
  }
  if (step.verb != Verb::move) {
    return takes(step.ranks, element, other.ranks) && takes(step.read, element, other.read) &&
           takes(step.write, element, other.write);
  }
  if (step.as_long_as.space != other.as_long_as.space ||
      count_of(step.as_long_as.units) != count_of(other.as_long_as.units)) {
    return false;
  }
  // Where the order of a message's units goes with the rank, it must at both ends: so in all such messages.
  if (group_ == Group::exclusive_or && has_channel(step) && length_of(step) > 1) {
    return takes_aligned(step, element, other);
  }
  return takes(step.destinations, element, other.destinations) && takes(step.sources, element, other.sources);
}

namespace {

/// Compares programs with that of rank 0, `program`, taken there.
class ProgramComparison {
 public:
  ProgramComparison(const Schedule& schedule, const Symmetry& symmetry, const std::vector<Step>& program)
      : schedule_(schedule), symmetry_(symmetry), program_(program) {}

  [[nodiscard]] bool holds_for(int rank) const {
    if (schedule_.step_count(rank) != static_cast<int>(program_.size())) return false;
    for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
      if (!symmetry_.takes(program_[static_cast<std::size_t>(i)], rank, schedule_.step(rank, i))) return false;
    }
    return true;
  }

  /// Where there are many steps, by all cores.
  [[nodiscard]] bool holds_for_all() const {
    constexpr std::size_t kMostStepsOfOneThread = 1U << 20U;
    const int ranks = symmetry_.ranks();
    const bool is_long = program_.size() * static_cast<std::size_t>(ranks) > kMostStepsOfOneThread;
    std::atomic<int> next = 0;
    std::atomic<bool> holds = true;
    const auto work = [&] {
      for (int rank = next++; rank < ranks && holds; rank = next++) {
        if (!holds_for(rank)) holds = false;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; is_long && i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    return holds;
  }

 private:
  const Schedule& schedule_;
  const Symmetry& symmetry_;
  const std::vector<Step>& program_;
};

}  // namespace

namespace {

/// That of a schedule whose steps the library turns around: nothing need be compared. Few ranks are, and all of few, so
/// that other steps under the same name are noticed.
std::optional<Symmetry> symmetry_of_turning(const Schedule& schedule) {
  if (schedule.turning != Turning::around) return {};
  const Turner turner(schedule.problem, schedule.shape, schedule.turning);
  const auto units_of = [&](Space space) { return turner.goes_around(space) ? Units::with_ranks : Units::fixed; };
  const Acts acts{.inputs = units_of(Space::input), .outputs = units_of(Space::output)};
  const auto is_meant = [&](const Acts& other) { return acts.inputs == other.inputs && acts.outputs == other.outputs; };
  if (std::ranges::none_of(meaningful(schedule.problem.collective, Group::rotation), is_meant)) return {};
  auto symmetry = Symmetry::of(schedule, Group::rotation, acts.inputs, acts.outputs);
  if (!symmetry) return {};
  std::vector<Step> program;
  for (int i = 0; i < schedule.step_count(0); ++i) program.push_back(schedule.step(0, i));
  const ProgramComparison comparison(schedule, *symmetry, program);
  constexpr int kFew = 64;
  const int ranks = schedule.problem.ranks;
  for (int rank = 1; rank<ranks; rank += ranks> kFew ? std::max(1, (ranks - 2) / 2) : 1) {
    if (!comparison.holds_for(rank)) return {};
  }
  return symmetry;
}

}  // namespace

std::optional<Symmetry> find_symmetry(const Schedule& schedule) {
  if (auto turned = symmetry_of_turning(schedule)) return turned;
  const int ranks = schedule.problem.ranks;
  std::vector<Step> program;
  const std::array few{0, std::min(1, ranks - 1), std::min(2, ranks - 1), ranks - 1};
  for (const Group group : {Group::rotation, Group::exclusive_or, Group::hosts_by_local}) {
    for (const auto& [inputs, outputs] : meaningful(schedule.problem.collective, group)) {
      for (const Units scratch : {Units::fixed, Units::with_hosts}) {
        if (scratch == Units::with_hosts && group != Group::hosts_by_local) continue;
        const std::optional<Symmetry> symmetry = Symmetry::of(schedule, group, inputs, outputs, scratch);
        if (!symmetry) continue;
        for (int i = static_cast<int>(program.size()); i < schedule.step_count(0); ++i) {
          program.push_back(schedule.step(0, i));
        }
        const ProgramComparison comparison(schedule, *symmetry, program);
        const auto holds = [&](int rank) { return comparison.holds_for(rank); };
        if (std::ranges::all_of(few, holds) && comparison.holds_for_all()) return symmetry;
      }
    }
  }
  return {};
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/refines.h"

#include <algorithm>

#include "impl/prove/refinement.h"

namespace tutti {

bool Refinement::check_extent(Space space, std::int64_t stated) {
  std::int64_t extent = 0;
  if (request_.blocks != nullptr) {
    extent = extent_of(space == Space::input ? request_.blocks->input : request_.blocks->output);
  } else if (const int blocks = blocks_of(space, rank_); blocks > 0) {
    extent = (blocks - 1) * user_stride_ + segment_bytes_;
  }
  if (extent == stated) return true;
  return refuse(-1, "the plan says that the {} has {} bytes; it has {}", name_of_space(space), stated, extent);
}

bool Refinement::check_header() {
  if (header_.rank != rank_ || header_.ranks != problem_.ranks) {
    return refuse(-1, "the plan is that of rank {} of {}", header_.rank, header_.ranks);
  }
  if (header_.op != request_.op || header_.dtype != request_.dtype || header_.is_in_place != request_.is_in_place ||
      header_.synchronises != schedule_.synchronises) {
    return refuse(-1, "the plan is of another call");
  }
  if (header_.is_exchange && !is_exchange(plan_.ops())) {
    return refuse(-1, "the plan is marked as an exchange, which it is not");
  }
  if (header_.scratch_bytes < scratch_bytes_) {
    return refuse(-1, "the plan has {} bytes of scratch; its units and mirrors take {}", header_.scratch_bytes,
                  scratch_bytes_);
  }
  if (header_.slices != slices_) {
    return refuse(-1, "the plan's longest message has {} slices; the schedule's has {}", header_.slices, slices_);
  }
  if (const int slots = request_.resources.slots; slices_ > 0 && schedule_.least_slots(slices_) > slots) {
    return refuse(-1, "messages of {} slices need {} slots; the channel has {}", slices_,
                  schedule_.least_slots(slices_), slots);
  }
  return check_extent(Space::input, header_.input_bytes) && check_extent(Space::output, header_.output_bytes);
}

bool Refinement::walk() {
  const int count = schedule_.step_count(rank_);
  for (int index = 0; index < count;) {
    const Step step = schedule_.step(rank_, index);
    if (step.verb != Verb::move) {
      if (!take_sync(step, index++)) return false;
      continue;
    }
    const int first = index;
    chain_.assign(1, step);
    while (chain_.back().in_turn_with_next && ++index < count) chain_.push_back(schedule_.step(rank_, index));
    index = first + static_cast<int>(chain_.size());
    if (!take_moves(first)) return false;
  }
  return true;
}

bool Refinement::check_end() {
  if (const PlanOp* const op = next_op()) return refuse(op->step, "an op that no step has");
  if (exposure_ < plan_.exposures().size()) return refuse(-1, "an exposure that no SIGNAL has");
  for (std::size_t peer = 0; peer < incoming_.size(); ++peer) {
    if (incoming_[peer].empty()) continue;
    return refuse(-1, "what rank {} writes to the mirror is never copied to the output", peer);
  }
  if (takes_generation_ && !header_.uses_generation) {
    return refuse(-1, "SIGNALs, or scratch, in a plan that takes no generation");
  }
  if (has_channel_ops_ && !header_.uses_channels) return refuse(-1, "a channel in a plan that uses no channels");
  return true;
}

// ---- SIGNAL and WAIT

bool Refinement::take_sync(const Step& step, int index) {
  const bool is_signal = step.verb == Verb::signal;
  if (step.only_closes_reads && is_signal && !(step.read.is_empty() && step.write.is_empty())) {
    return refuse(index, "is said only to end reads, and exposes something");
  }
  if (step.only_closes_reads && is_staged_) {
    for (int i = 0; !is_signal && !incoming_.empty() && i < step.ranks.n; ++i) {
      for (const Incoming& one : incoming_[static_cast<std::size_t>(step.ranks.at(i, problem_.ranks))]) {
        if (one.phase < step.phase) return refuse(index, "is said only to end reads, and ends a write");
      }
    }
    return true;  // left out
  }
  if (is_signal && is_staged_ && is_user_space(step.read.space) && !take_copies_before(step, index)) return false;
  const PlanOp* const op = next_op();
  if (op == nullptr || op->verb != step.verb || op->step != static_cast<std::uint32_t>(index)) {
    return refuse(index, "{} is missing", is_signal ? "the SIGNAL" : "the WAIT");
  }
  if (!has_operands(*op, 1) || !is_same_set(plan_.ranks(*op), step.ranks)) return refuse(index, "other ranks");
  if (op->phase != step.phase) return refuse(index, "phase {} instead of {}", op->phase, step.phase);
  int marks = is_signal && !has_signalled_ ? mark_identifies : 0;
  for (const Exposure* const exposure : {&step.read, &step.write}) {
    const bool publishes = is_signal && !exposure->is_empty() && is_user_space(exposure->space) && !is_staged_;
    marks |= publishes ? mark_exposes : 0;
  }
  if (op->marks != marks) return refuse(index, "marks {:#x} instead of {:#x}", op->marks, marks);
  has_signalled_ |= is_signal;
  takes_generation_ |= is_signal;
  if (is_signal && request_.keep_exposures) {
    if (!take_exposures(step, index, step.read, false) || !take_exposures(step, index, step.write, true)) return false;
  }
  ++op_;
  return is_signal ? note_incoming(step, index) : take_copies_after(step, index);
}

UnitSet exposed_to(const Exposure& exposure, int target) {
  UnitSet set = exposure.units;
  set.start += target * exposure.per_target;
  return set;
}

bool Refinement::take_exposures(const Step& step, int index, const Exposure& exposure, bool is_write) {
  if (exposure.is_empty()) return true;
  const bool is_in_mirror = is_user_space(exposure.space) && is_staged_;
  const UnitPlaces places = is_in_mirror                    ? mirror_places(exposure.space, rank_)
                            : is_user_space(exposure.space) ? user_places(exposure.space, rank_)
                                                            : scratch_places(room_);
  const Space space = is_in_mirror                                    ? Space::scratch
                      : !is_user_space(exposure.space) && is_in_line_ ? Space::line
                                                                      : exposure.space;
  const auto exposures = plan_.exposures();
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, problem_.ranks);
    if (target == rank_) continue;
    const UnitSet set = exposed_to(exposure, target);
    UnitBytes bytes(places, {&set, 1});
    for (std::int64_t rest = bytes.total(); rest > 0; ++exposure_) {
      if (exposure_ == exposures.size()) return refuse(index, "exposes less to rank {}", target);
      const PlanExposure& is = exposures[exposure_];
      const bool is_right = is.op == op_ && is.target == target && is.space == space && is.is_write == is_write &&
                            is.bytes > 0 && is.bytes <= rest && bytes.take(is.offset, is.bytes);
      if (!is_right) return refuse(index, "exposes something else to rank {}", target);
      rest -= is.bytes;
    }
  }
  return true;
}

/// A copy in the mirror is read until the generation is over, so no unit is copied there again.
bool Refinement::take_copies_before(const Step& step, int index) {
  const Exposure& read = step.read;
  if (read.is_empty()) return true;
  const UnitPlaces user = user_places(read.space, rank_);
  std::vector<bool>& copied = copied_units_[read.space == Space::input ? 0 : 1];
  copied.resize(static_cast<std::size_t>(user.units));
  std::vector<UnitSet> units;
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, problem_.ranks);
    if (target == rank_) continue;
    units.push_back(exposed_to(read, target));
    if (read.per_target == 0) break;  // the same for all
  }
  const auto for_units = [&](auto f) {
    for (const UnitSet& set : units) {
      for (std::int64_t i = 0; user.units > 0 && i < count_of(set); ++i) {
        const std::int64_t at = set.start + i / set.length * set.stride + i % set.length;
        if (!f(static_cast<std::size_t>(at % user.units))) return false;
      }
    }
    return true;
  };
  if (!for_units([&](std::size_t unit) { return !copied[unit]; })) {
    return refuse(index, "copies to the mirror what peers may still read there");
  }
  (void)for_units([&](std::size_t unit) { return copied[unit] = true; });
  return take_copy(index, Space::scratch, read.space, units, user, mirror_places(read.space, rank_));
}

bool Refinement::note_incoming(const Step& step, int index) {
  if (!is_staged_ || step.write.is_empty() || !is_user_space(step.write.space)) return true;
  if (step.write.space == Space::input) return refuse(index, "lets peers write the input");
  incoming_.resize(static_cast<std::size_t>(problem_.ranks));
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, problem_.ranks);
    if (target == rank_) continue;
    incoming_[static_cast<std::size_t>(target)].push_back(
        {.space = step.write.space, .units = exposed_to(step.write, target), .phase = step.phase});
  }
  return true;
}

bool Refinement::take_copies_after(const Step& step, int index) {
  if (incoming_.empty()) return true;
  std::vector<UnitSet> units;
  for (int i = 0; i < step.ranks.n; ++i) {
    std::vector<Incoming>& from = incoming_[static_cast<std::size_t>(step.ranks.at(i, problem_.ranks))];
    for (const Incoming& one : from) {
      if (one.phase < step.phase) units.push_back(one.units);
    }
    std::erase_if(from, [&](const Incoming& one) { return one.phase < step.phase; });
  }
  return take_copy(index, Space::output, Space::scratch, units, user_places(Space::output, rank_),
                   mirror_places(Space::output, rank_));
}

bool Refinement::take_copy(int index, Space to, Space from, const std::vector<UnitSet>& units, const UnitPlaces& user,
                           const UnitPlaces& mirror) {
  moves_.resize(std::max<std::size_t>(moves_.size(), 1));
  ExpectedMove& move = moves_.front();
  move.step = index;
  move.destinations.assign(1, {to, only(rank_), {to == Space::scratch ? mirror : user, units}});
  move.sources.assign(1, {from, only(rank_), {from == Space::scratch ? mirror : user, units}});
  move.bytes = move.sources[0].bytes.total();
  move.marks = request_.op == Op::premul_sum && from == Space::input ? mark_scales : 0;
  move.has_channel = false;
  move.done = 0;
  for (move.is_over = move.bytes == 0; !move.is_over;) {
    if (!take_move_op(move)) return false;
  }
  return true;
}

std::vector<Finding> find_departures(const Schedule& schedule, const BoundPlan& bound) {
  return Refinement(schedule, bound).run();
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// The walk over the program, and SIGNAL and WAIT. Each becomes one op that keeps its set of ranks. Where buffers are
// staged, what a SIGNAL lets peers read is copied to the mirror before it. What it let them write is copied out of the
// mirror after the WAIT that ends the exposure. A set may hold the rank itself, which needs no mirror of its own
// memory. A rank waits for a peer once per phase, so what is expected is kept by peer. A plan then takes time in its
// number of (SIGNAL, peer) pairs, not in its square.
#include "impl/schedule/lower.h"

#include <algorithm>
#include <vector>

#include "impl/schedule/check.h"
#include "impl/schedule/lowering.h"

namespace tutti {

Result<Plan> lower(const LowerRequest& request) { return Lowering(request).run(); }

Lowering::Lowering(const LowerRequest& lower)
    : schedule_(lower.schedule),
      request_(lower.request),
      rank_(lower.request.rank),
      ranks_(lower.schedule.problem.ranks),
      table_({.units_per_block = lower.schedule.shape.units_per_block,
              .segment = lower.segment,
              .block = lower.request.count,
              .element_bytes = static_cast<std::int64_t>(size_of(lower.request.dtype))}),
      layout_(scratch_layout(lower.schedule, lower.request, table_)),
      is_staged_(is_staged(lower.schedule, lower.request)) {
  header_.hash = lower.hash;
  header_.rank = rank_;
  header_.ranks = ranks_;
  header_.dtype = request_.dtype;
  header_.op = request_.op;
  header_.is_in_place = request_.is_in_place;
  header_.synchronises = schedule_.synchronises;
  header_.slices = slices_of(schedule_, request_, table_);
  header_.scratch_bytes = layout_.bytes;
  header_.input_bytes = extent(Space::input);
  header_.output_bytes = extent(Space::output);
  const std::int64_t touched = request_.is_in_place ? std::max(header_.input_bytes, header_.output_bytes)
                                                    : header_.input_bytes + header_.output_bytes;
  const std::int64_t cache = request_.resources.cache_bytes;
  const bool is_large = cache > 0 && touched > cache / ranks_;
  const Stores stores = schedule_.tuning.stores;
  streams_ = !is_staged_ && (stores == Stores::streamed || (stores != Stores::plain && is_large));
}

Result<Plan> Lowering::run() {
  const int count = schedule_.step_count(rank_);
  ops_.reserve(static_cast<std::size_t>(count));
  operands_.reserve(3 * static_cast<std::size_t>(count));
  Place place;
  for (index_ = 0; index_ < count; ++index_) {
    const Step step = schedule_.step(rank_, index_);
    place.is_last = index_ + 1 == count;
    const std::string flaw = request_.has_sound_steps ? std::string() : flaw_of(schedule_, step, place);
    if (!flaw.empty()) {
      return error(Code::invalid_argument, "{} {} on {} ranks: rank {} step {}: {}",
                   to_string(schedule_.problem.collective), schedule_.name, ranks_, rank_, index_, flaw);
    }
    switch (step.verb) {
      case Verb::signal:
        lower_signal(step);
        break;
      case Verb::wait:
        lower_wait(step);
        break;
      case Verb::move:
        if (step.in_turn_with_next || place.is_in_turn_with_previous) chain_.push_back(ops_.size());
        lower_move(step);
        break;
    }
    if (place.is_in_turn_with_previous && !step.in_turn_with_next) {
      take_turns();
      chain_.clear();
    }
    place.is_in_turn_with_previous = step.in_turn_with_next;
  }
  header_.is_exchange = is_exchange(ops_);
  return Plan(header_, ops_, operands_, exposures_);
}

std::int64_t Lowering::extent(Space space) const {
  if (request_.blocks != nullptr) {
    return extent_of(space == Space::input ? request_.blocks->input : request_.blocks->output);
  }
  const int blocks = blocks_of(space, rank_);
  return blocks == 0 ? 0 : (blocks - 1) * table_.user_stride() + table_.segment_bytes();
}

std::int64_t Lowering::user_bytes(Space space, int rank, const UnitSet& set) const {
  const int blocks = blocks_of(space, rank);
  if (request_.blocks == nullptr) return table_.bytes(set, blocks);
  const BlockTable& table = *request_.blocks;
  return table_.bytes(set, blocks, [&](int block) {
    if (rank != rank_) return table.shared.at(static_cast<std::size_t>(blocks == 1 ? rank : block));
    return (space == Space::input ? table.input : table.output)[static_cast<std::size_t>(block)].bytes;
  });
}

Pieces Lowering::user_pieces(Space space, int rank, const UnitSet& set) const {
  if (request_.blocks != nullptr) {
    return table_.pieces(set, space == Space::input ? request_.blocks->input : request_.blocks->output);
  }
  return table_.pieces(set, blocks_of(space, rank), table_.user_stride());
}

Pieces Lowering::mirror_pieces(Space space, int rank, const UnitSet& set) const {
  Pieces pieces = table_.pieces(set, blocks_of(space, rank), table_.mirror_stride());
  for (Piece& piece : pieces) piece.offset += space == Space::input ? layout_.input_mirror : layout_.output_mirror;
  return pieces;
}

void Lowering::lower_signal(const Step& step) {
  if (step.only_closes_reads && is_staged_) return;
  if (is_staged_) {
    if (is_user(step.read.space)) copy_exposed_reads(step);
    if (is_user(step.write.space)) expect_exposed_writes(step);
  }
  PlanOp op = sync_op(step);
  const auto exposes_user = [this](const Exposure& e) { return !e.is_empty() && is_user(e.space) && !is_staged_; };
  if (exposes_user(step.read) || exposes_user(step.write)) op.marks |= mark_exposes;
  if (!is_identified_) op.marks |= mark_identifies;
  is_identified_ = true;
  if (request_.keep_exposures) {
    keep(step, step.read, false);
    keep(step, step.write, true);
  }
  ops_.push_back(op);
  header_.uses_generation = true;
}

void Lowering::lower_wait(const Step& step) {
  if (step.only_closes_reads && is_staged_) return;
  ops_.push_back(sync_op(step));
  if (incoming_.empty()) return;
  Staged arrived;
  for (int i = 0; i < step.ranks.n; ++i) {
    std::erase_if(incoming_[static_cast<std::size_t>(step.ranks.at(i, ranks_))], [&](const Incoming& from_peer) {
      if (from_peer.phase >= step.phase) return false;
      append(arrived, from_peer.space, from_peer.units);
      return true;
    });
  }
  copy_local({Space::output, only(rank_), arrived.user}, {Space::scratch, only(rank_), arrived.mirror});
}

PlanOp Lowering::sync_op(const Step& step) {
  PlanOp op{.verb = step.verb, .phase = static_cast<std::uint16_t>(step.phase)};
  op.first_operand = static_cast<std::uint32_t>(operands_.size());
  op.step = static_cast<std::uint32_t>(index_);
  operands_.push_back({.offset = 0, .ranks = step.ranks, .space = Space::line});
  return op;
}

UnitSet Lowering::exposed_to(const Exposure& exposure, int target) {
  UnitSet set = exposure.units;
  set.start += target * exposure.per_target;
  return set;
}

void Lowering::append(Staged& staged, Space space, const UnitSet& set) const {
  for (const Piece& piece : user_pieces(space, rank_, set)) staged.user.append(piece);
  for (const Piece& piece : mirror_pieces(space, rank_, set)) staged.mirror.append(piece);
}

void Lowering::copy_exposed_reads(const Step& step) {
  Staged exposed;
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, ranks_);
    if (target == rank_) continue;
    append(exposed, step.read.space, exposed_to(step.read, target));
    if (step.read.per_target == 0) break;  // once only where all targets get the same units
  }
  copy_local({Space::scratch, only(rank_), exposed.mirror}, {step.read.space, only(rank_), exposed.user});
}

void Lowering::expect_exposed_writes(const Step& step) {
  if (step.write.is_empty()) return;
  incoming_.resize(static_cast<std::size_t>(ranks_));
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, ranks_);
    if (target == rank_) continue;
    incoming_[static_cast<std::size_t>(target)].push_back(
        {.space = step.write.space, .units = exposed_to(step.write, target), .phase = step.phase});
  }
}

void Lowering::keep(const Step& step, const Exposure& exposure, bool is_write) {
  if (exposure.is_empty()) return;
  const auto op = static_cast<std::uint32_t>(ops_.size());
  for (int i = 0; i < step.ranks.n; ++i) {
    const int target = step.ranks.at(i, ranks_);
    if (target == rank_) continue;
    const Operand exposed{.space = exposure.space, .ranks = only(rank_), .units = exposed_to(exposure, target)};
    if (!is_user(exposure.space)) move_bytes_ = exposure.units.length * table_.largest_unit_bytes();
    const Located located = locate_memory(exposed, is_user(exposure.space) && is_staged_);
    for (const Piece& piece : located.pieces) {
      exposures_.push_back({.op = op,
                            .target = target,
                            .offset = piece.offset,
                            .bytes = piece.bytes,
                            .space = located.space,
                            .is_write = is_write});
    }
  }
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// MOVE: operands get their places in bytes, in the mirror where a peer's buffer is staged. Copies onto themselves are
// dropped. The rest is cut into ops, one per piece that is contiguous in every operand and lies in one slice. Operands
// are streams of equally many bytes, so that the cuts are the ends of all their pieces. MOVEs that take turns are
// lowered one after the other and then dealt out, as many slices of each at a time as the slots allow.
#include <algorithm>
#include <vector>

#include "impl/schedule/lowering.h"

namespace tutti {
namespace {

std::int64_t total_bytes(const Pieces& pieces) {
  std::int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.bytes;
  return total;
}

bool writes_output(const std::vector<Located>& destinations) {
  return std::any_of(destinations.begin(), destinations.end(),
                     [](const Located& d) { return d.space == Space::output; });
}

bool has_channels(const std::vector<Located>& list) {
  return std::any_of(list.begin(), list.end(), [](const Located& l) { return l.space == Space::channel; });
}

}  // namespace

void Lowering::lower_move(const Step& step) {
  move_bytes_ = length_of(step);
  destinations_.clear();
  sources_.clear();
  for (const Operand& operand : step.destinations) locate(operand, destinations_);
  for (const Operand& operand : step.sources) locate(operand, sources_);
  const bool divides = step.is_final && request_.op == Op::avg && ranks_ > 1;
  if (!divides) drop_copies_onto_itself(destinations_, sources_);
  if (!destinations_.empty()) emit(destinations_, sources_, step.is_final ? mark_final : 0);
}

/// A turn of n slices is a slice of n times the size to a channel of a share of the slots.
int Lowering::slices_per_turn() const {
  const int slots = request_.resources.slots;
  for (int n = slots; n > 1; --n) {
    if (n * schedule_.least_slots((header_.slices + n - 1) / n) <= slots) return n;
  }
  return 1;
}

void Lowering::take_turns() {
  if (ops_.size() - chain_.front() == chain_.size()) return;  // one op each
  struct Rest {
    std::size_t next;
    std::size_t end;
  };
  std::vector<Rest> rests;
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    rests.push_back({.next = chain_[i], .end = i + 1 < chain_.size() ? chain_[i + 1] : ops_.size()});
  }
  const auto begin = static_cast<std::ptrdiff_t>(chain_.front());
  std::vector<PlanOp> in_turn;
  in_turn.reserve(ops_.size() - chain_.front());
  const int most = slices_per_turn();
  while (!rests.empty()) {
    for (Rest& rest : rests) {
      for (int slices = 0; slices < most && rest.next < rest.end; ++rest.next) {
        in_turn.push_back(ops_[rest.next]);
        if ((ops_[rest.next].marks & mark_closes) != 0) ++slices;
      }
    }
    std::erase_if(rests, [](const Rest& rest) { return rest.next == rest.end; });
  }
  std::copy(in_turn.begin(), in_turn.end(), ops_.begin() + begin);
}

void Lowering::copy_local(const Located& destination, const Located& source) {
  move_bytes_ = total_bytes(source.pieces);
  if (move_bytes_ > 0) emit({destination}, {source}, 0);
}

std::int64_t Lowering::length_of(const Step& step) const {
  const auto bytes_of = [this](const Operand& operand) {
    return user_bytes(operand.space, operand.ranks.first, operand.units);
  };
  if (step.as_long_as.units.length > 0) return bytes_of(step.as_long_as);
  std::int64_t scratch_bytes = 0;
  for (const Operands<4>* list : {&step.destinations, &step.sources}) {
    for (const Operand& operand : *list) {
      if (is_user(operand.space)) return bytes_of(operand);
      if (operand.space == Space::scratch) scratch_bytes = count_of(operand.units) * table_.largest_unit_bytes();
    }
  }
  return scratch_bytes;
}

Located Lowering::locate_memory(const Operand& operand, bool in_mirror) const {
  if (is_user(operand.space)) {
    const int owner = operand.ranks.first;
    if (in_mirror) return {Space::scratch, operand.ranks, mirror_pieces(operand.space, owner, operand.units)};
    return {operand.space, operand.ranks, user_pieces(operand.space, owner, operand.units)};
  }
  const UnitSet& set = operand.units;
  const std::int64_t bytes = count_of(set) == 1 ? move_bytes_ : table_.largest_unit_bytes();
  const int total = std::max(schedule_.shape.scratch_units, 1);
  Pieces pieces;
  for (int j = 0; j < set.repeat; ++j) {
    for (int i = 0; i < set.length; ++i) {
      const int index = (set.start + j * set.stride + i) % total;
      pieces.append({.offset = index * layout_.unit_stride, .bytes = bytes});
    }
  }
  return {layout_.is_in_line ? Space::line : Space::scratch, operand.ranks, pieces};
}

void Lowering::locate(const Operand& operand, std::vector<Located>& list) const {
  if (operand.space == Space::channel) {
    list.push_back({Space::channel, operand.ranks, {{.offset = 0, .bytes = move_bytes_}}});
    return;
  }
  if (!is_user(operand.space) || !is_staged_) {
    list.push_back(locate_memory(operand, false));
    return;
  }
  const auto append_part = [&](int begin, int end, bool is_mine) {
    if (begin == end) return;
    Operand part = operand;
    part.ranks = {.first = operand.ranks.at(begin, ranks_), .stride = operand.ranks.stride, .n = end - begin};
    list.push_back(locate_memory(part, !is_mine));
  };
  int mine = 0;
  while (mine < operand.ranks.n && operand.ranks.at(mine, ranks_) != rank_) ++mine;
  append_part(0, mine, false);
  if (mine == operand.ranks.n) return;
  append_part(mine, mine + 1, true);
  append_part(mine + 1, operand.ranks.n, false);
}

std::int64_t Lowering::input_shift(int rank) const {
  if (request_.blocks != nullptr) return in_place_shift(schedule_.problem, rank, *request_.blocks);
  return in_place_block(schedule_.problem, rank) * table_.user_stride();
}

bool Lowering::is_same_memory(const Located& a, const Located& b) const {
  if (a.ranks.n != 1 || b.ranks.n != 1 || a.ranks.first != b.ranks.first) return false;
  if (a.space == Space::channel || b.space == Space::channel) return false;
  const bool is_aliased = request_.is_in_place && is_user(a.space) && is_user(b.space);
  if (a.space != b.space && !is_aliased) return false;
  const auto shift = [&](const Located& l) {
    return is_aliased && l.space == Space::input ? input_shift(l.ranks.first) : 0;
  };
  const std::int64_t shift_a = shift(a), shift_b = shift(b);
  return std::equal(
      a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
      [=](const Piece& x, const Piece& y) { return x.offset + shift_a == y.offset + shift_b && x.bytes == y.bytes; });
}

bool Lowering::scales(const std::vector<Located>& sources) const {
  return request_.op == Op::premul_sum &&
         std::any_of(sources.begin(), sources.end(), [](const Located& s) { return s.space == Space::input; });
}

void Lowering::drop_copies_onto_itself(std::vector<Located>& destinations, const std::vector<Located>& sources) const {
  if (sources.size() != 1 || sources[0].ranks.n != 1 || scales(sources)) return;
  std::erase_if(destinations, [&](const Located& destination) { return is_same_memory(destination, sources[0]); });
}

const std::vector<std::int64_t>& Lowering::cuts_of(std::initializer_list<const std::vector<Located>*> lists,
                                                   bool has_channel) {
  std::vector<std::int64_t>& cuts = cuts_;
  cuts.assign({0, move_bytes_});
  for (const std::vector<Located>* list : lists) {
    for (const Located& located : *list) {
      std::int64_t position = 0;
      for (const Piece& piece : located.pieces) {
        position += piece.bytes;
        if (position != move_bytes_) cuts.push_back(position);
      }
    }
  }
  const std::int64_t slot = request_.resources.slot_bytes;
  for (std::int64_t at = slot; has_channel && at < move_bytes_; at += slot) cuts.push_back(at);
  if (cuts.size() == 2 && move_bytes_ > 0) return cuts;
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  if (move_bytes_ == 0 && has_channel) cuts.push_back(0);  // one empty token
  return cuts;
}

void Lowering::emit(const std::vector<Located>& destinations, const std::vector<Located>& sources, int marks) {
  const bool has_channel = has_channels(destinations) || has_channels(sources);
  header_.uses_channels |= has_channel;
  if (streams_ && writes_output(destinations)) marks |= mark_streams;
  if (scales(sources)) marks |= mark_scales;
  const bool writes_scratch =
      std::any_of(destinations.begin(), destinations.end(), [](const Located& d) { return d.space == Space::scratch; });
  to_.clear();
  from_.clear();
  for (const Located& destination : destinations) to_.emplace_back(destination);
  for (const Located& source : sources) from_.emplace_back(source);
  const std::vector<std::int64_t>& cuts = cuts_of({&destinations, &sources}, has_channel);
  const std::int64_t slot = request_.resources.slot_bytes;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::int64_t slice_begin = cuts[i] / slot * slot;
    const std::int64_t slice_end = std::min(move_bytes_, slice_begin + slot);
    PlanOp op{.verb = Verb::move, .marks = static_cast<std::uint8_t>(marks)};
    op.bytes = cuts[i + 1] - cuts[i];
    op.first_operand = static_cast<std::uint32_t>(operands_.size());
    op.step = static_cast<std::uint32_t>(index_);
    op.destinations = append_operands(to_, cuts[i], slice_begin);
    op.sources = append_operands(from_, cuts[i], slice_begin);
    if (has_channel) {
      op.has_channel = 1;
      op.rest_bytes = move_bytes_ - slice_begin;
      if (cuts[i] == slice_begin) op.marks |= mark_opens;
      if (cuts[i + 1] == slice_end) op.marks |= mark_closes;
    }
    op.shortcut =
        shortcut_of(op, {operands_.data() + op.first_operand, op.destinations + std::size_t{op.sources}}, request_.op);
    if (writes_scratch) op.marks |= mark_stages;
    ops_.push_back(op);
  }
}

std::uint8_t Lowering::append_operands(std::vector<Cursor>& list, std::int64_t position, std::int64_t slice_begin) {
  for (Cursor& cursor : list) {
    const Located& located = cursor.located();
    const bool is_channel = located.space == Space::channel;
    const bool is_mine = !is_channel && located.ranks.n == 1 && located.ranks.first == rank_;
    const std::int64_t offset = is_channel ? position - slice_begin : cursor.offset_at(position);
    operands_.push_back({.offset = offset, .ranks = located.ranks, .space = located.space, .is_mine = is_mine});
    header_.uses_generation |= is_mine && !is_user(located.space);
  }
  return static_cast<std::uint8_t>(list.size());
}

}  // namespace tutti

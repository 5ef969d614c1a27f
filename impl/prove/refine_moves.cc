// SPDX-License-Identifier: Apache-2.0
// MOVE: each op is the next piece of its MOVE, in every operand and in its slice.
#include <algorithm>

#include "impl/prove/refinement.h"

namespace tutti {

/// Those of `chain_`: one, or several that take turns.
bool Refinement::take_moves(int first) {
  moves_.resize(std::max(moves_.size(), chain_.size()));
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    if (!expect(chain_[i], first + static_cast<int>(i), moves_[i])) return false;
  }
  const int most = chain_.size() > 1 ? slices_per_turn() : INT32_MAX;
  for (bool is_over = false; !is_over;) {
    is_over = true;
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      ExpectedMove& move = moves_[i];
      for (int slices = 0; slices < most && !move.is_over;) {
        if (!take_move_op(move)) return false;
        if ((plan_.ops()[op_ - 1].marks & mark_closes) != 0) ++slices;
      }
      is_over = is_over && move.is_over;
    }
  }
  return true;
}

bool Refinement::expect(const Step& step, int index, ExpectedMove& move) {
  move.step = index;
  move.bytes = length_of(step);
  move.destinations.clear();
  move.sources.clear();
  move.done = 0;
  for (const Operand& operand : step.destinations) {
    if (operand.space == Space::input) return refuse(index, "writes into an input");
    if (!expect_operand(operand, index, move.bytes, move.destinations)) return false;
  }
  for (const Operand& operand : step.sources) {
    if (!expect_operand(operand, index, move.bytes, move.sources)) return false;
  }
  const auto is_channel = [](const ExpectedOperand& operand) { return operand.space == Space::channel; };
  const auto is_input = [](const ExpectedOperand& operand) { return operand.space == Space::input; };
  move.has_channel =
      std::ranges::any_of(move.destinations, is_channel) || std::ranges::any_of(move.sources, is_channel);
  const bool scales = request_.op == Op::premul_sum && std::ranges::any_of(move.sources, is_input);
  move.marks = static_cast<std::uint8_t>((step.is_final ? mark_final : 0) | (scales ? mark_scales : 0));
  leave_out_copies_onto_itself(step, move);
  move.is_over = move.destinations.empty() || (move.bytes == 0 && !move.has_channel);
  return true;
}

/// Where staged, of a set of ranks this rank's part lies in the user's memory and the peers' parts in their mirrors.
bool Refinement::expect_operand(const Operand& operand, int index, std::int64_t bytes,
                                std::vector<ExpectedOperand>& list) {
  const RankSet& set = operand.ranks;
  if (operand.space == Space::channel) {
    list.push_back({.space = Space::channel, .ranks = set});
    return true;
  }
  const std::span<const UnitSet> units(&operand.units, 1);
  if (!is_user_space(operand.space)) {
    const std::int64_t each = count_of(operand.units) == 1 ? bytes : room_;
    if (each > room_) return refuse(index, "{} bytes in a unit of scratch, which has {}", each, room_);
    list.push_back({is_in_line_ ? Space::line : Space::scratch, set, {scratch_places(each), units}});
    return true;
  }
  int mine = 0;
  while (mine < set.n && set.at(mine, problem_.ranks) != rank_) ++mine;
  if (request_.blocks != nullptr && (set.n != 1 || mine != 0)) return refuse(index, "a v form touches a peer's buffer");
  if (!is_staged_) {
    list.push_back({operand.space, set, {user_places(operand.space, set.first), units}});
    return true;
  }
  const auto add = [&](int begin, int end, bool is_mine) {
    if (begin >= end) return;
    const RankSet part{.first = set.at(begin, problem_.ranks), .stride = set.stride, .n = end - begin};
    if (is_mine) {
      list.push_back({operand.space, part, {user_places(operand.space, rank_), units}});
    } else {
      list.push_back({Space::scratch, part, {mirror_places(operand.space, part.first), units}});
    }
  };
  add(0, mine, false);
  add(mine, std::min(mine + 1, set.n), true);
  add(mine + 1, set.n, false);
  return true;
}

/// That of what it is as long as, else of its operands in users' memory, else of whole units of scratch.
std::int64_t Refinement::length_of(const Step& step) const {
  const auto bytes_of = [this](const Operand& operand) {
    return UnitBytes(user_places(operand.space, operand.ranks.first), {&operand.units, 1}).total();
  };
  if (step.as_long_as.units.length > 0) return bytes_of(step.as_long_as);
  std::int64_t bytes = 0;
  for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
    for (const Operand& operand : *list) {
      if (is_user_space(operand.space)) return bytes_of(operand);
      if (operand.space == Space::scratch) bytes = count_of(operand.units) * room_;
    }
  }
  return bytes;
}

bool Refinement::is_same_memory(const ExpectedOperand& a, const ExpectedOperand& b) const {
  if (!a.is_of_one() || !b.is_of_one() || a.ranks.first != b.ranks.first) return false;
  const bool is_one_buffer = request_.is_in_place && is_user_space(a.space) && is_user_space(b.space);
  if (a.space != b.space && !is_one_buffer) return false;
  const auto begin_of = [&](Space space) {
    return is_one_buffer && space == Space::input ? input_shift(a.ranks.first) : 0;
  };
  return are_same_bytes(a.bytes, b.bytes, begin_of(a.space) - begin_of(b.space));
}

/// A copy onto itself does nothing, unless it multiplies or divides.
void Refinement::leave_out_copies_onto_itself(const Step& step, ExpectedMove& move) const {
  const bool divides = step.is_final && request_.op == Op::avg && problem_.ranks > 1;
  if (move.sources.size() != 1 || divides || (move.marks & mark_scales) != 0) return;
  std::erase_if(move.destinations, [&](const ExpectedOperand& to) { return is_same_memory(to, move.sources[0]); });
}

bool Refinement::take_move_op(ExpectedMove& move) {
  const PlanOp* const op = next_op();
  if (op == nullptr || op->verb != Verb::move || op->step != static_cast<std::uint32_t>(move.step)) {
    return refuse(move.step, "bytes [{}, {}) are not moved", move.done, move.bytes);
  }
  const std::size_t operands = std::size_t{op->destinations} + op->sources;
  if (op->destinations != move.destinations.size() || op->sources != move.sources.size() ||
      !has_operands(*op, operands)) {
    return refuse(move.step, "{} destinations and {} sources instead of {} and {}", op->destinations, op->sources,
                  move.destinations.size(), move.sources.size());
  }
  const bool is_token = op->bytes == 0 && move.bytes == 0;
  if ((op->bytes <= 0 && !is_token) || op->bytes > move.bytes - move.done) {
    return refuse(move.step, "a piece of {} bytes, of {} that are left", op->bytes, move.bytes - move.done);
  }
  if (!check_slice(move, *op) || !check_marks(move, *op)) return false;
  const PlanOperand* is = &plan_.operands()[op->first_operand];
  for (std::vector<ExpectedOperand>* const side : {&move.destinations, &move.sources}) {
    for (ExpectedOperand& expected : *side) {
      if (!check_operand(move, *op, expected, *is++)) return false;
    }
  }
  ++op_;
  move.done += op->bytes;
  move.is_over = move.done == move.bytes;
  for (std::vector<ExpectedOperand>* const side : {&move.destinations, &move.sources}) {
    for (ExpectedOperand& expected : *side) {
      if (!move.is_over || expected.space == Space::channel || expected.bytes.next(1).bytes == 0) continue;
      return refuse(move.step, "moves less than an operand has");
    }
  }
  return true;
}

/// Slices are as long as a slot, but for the last. A piece lies in one.
bool Refinement::check_slice(const ExpectedMove& move, const PlanOp& op) {
  if ((op.has_channel != 0) != move.has_channel) return refuse(move.step, "is not marked as what uses a channel");
  int marks = 0;
  std::int64_t rest = 0;
  if (move.has_channel) {
    const std::int64_t slot = request_.resources.slot_bytes;
    const std::int64_t begin = move.done / slot * slot;
    const std::int64_t end = std::min(move.bytes, begin + slot);
    if (move.done + op.bytes > end) return refuse(move.step, "a piece of {} bytes beyond its slice", op.bytes);
    marks = (move.done == begin ? mark_opens : 0) | (move.done + op.bytes == end ? mark_closes : 0);
    rest = move.bytes - begin;
    has_channel_ops_ = true;
  }
  if ((op.marks & (mark_opens | mark_closes)) != marks) {
    return refuse(move.step, "bytes [{}, {}) open or close a slice wrongly", move.done, move.done + op.bytes);
  }
  if (op.rest_bytes == rest) return true;
  return refuse(move.step, "{} bytes of the message are left, and not {}", rest, op.rest_bytes);
}

bool Refinement::check_marks(const ExpectedMove& move, const PlanOp& op) {
  if ((op.marks & (mark_final | mark_scales | mark_exposes | mark_identifies)) != move.marks) {
    return refuse(move.step, "marks {:#x} instead of {:#x}", op.marks, move.marks);
  }
  const auto writes = [&](Space space) {
    return std::ranges::any_of(move.destinations, [&](const ExpectedOperand& to) { return to.space == space; });
  };
  if ((op.marks & mark_streams) != 0 && !writes(Space::output))
    return refuse(move.step, "streams, but not to an output");
  if (((op.marks & mark_stages) != 0) != writes(Space::scratch)) {
    return refuse(move.step, "is not marked as what writes scratch");
  }
  takes_generation_ |= writes(Space::scratch) || writes(Space::line);
  const Shortcut shortcut = shortcut_of(op, plan_.operands().subspan(op.first_operand), header_.op);
  if (op.shortcut == Shortcut::none || op.shortcut == shortcut) return true;
  return refuse(move.step, "is marked for a shortcut that it cannot take");
}

bool Refinement::check_operand(const ExpectedMove& move, const PlanOp& op, ExpectedOperand& expected,
                               const PlanOperand& is) {
  if (is.space != expected.space || !is_same_set(is.ranks, expected.ranks)) {
    return refuse(move.step, "{} of rank {} instead of {} of rank {}", name_of_space(is.space), is.ranks.first,
                  name_of_space(expected.space), expected.ranks.first);
  }
  const bool is_mine = expected.is_of_one() && expected.ranks.first == rank_;
  if (is.is_mine != is_mine) return refuse(move.step, "is not marked as whose memory it touches");
  if (is_mine && !is_user_space(expected.space)) takes_generation_ = true;
  std::int64_t offset = 0;
  if (expected.space == Space::channel) {
    offset = move.done % request_.resources.slot_bytes;
  } else if (op.bytes > 0) {
    if (expected.bytes.take(is.offset, op.bytes)) return true;
    return refuse(move.step, "bytes [{}, {}) of the {} of rank {}, which are not those of the units", is.offset,
                  is.offset + op.bytes, name_of_space(is.space), is.ranks.first);
  }
  return is.offset == offset || refuse(move.step, "byte {} of a slice instead of {}", is.offset, offset);
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Links between hosts in the model (model.h): what a rank tells of what it writes, and how it arrives.
//
// A slice is a message that says its number: payload, then header arrive, and the payload is read from the sender's
// slot as late as that. A line is a copy of the moment; its cells arrive, then its flag. A count is how many slices
// were released. It goes with what is told to that rank anyway, when half of the slots are owed, or when a rank waits.
#pragma once

#include "suites/unit/impl/execute/model.h"

namespace tutti::model {

/// The first word of a message: what it is, whether half of it has arrived, and a slice, a count or a generation. A
/// line has its flag and its cells behind it.
enum class Message : Word { slice, count, line };
constexpr Word kMessageShift = 29, kHalfway = 1U << 28U, kMessageNumber = kHalfway - 1;
constexpr Word first_word(Message message, Word number) { return static_cast<Word>(message) << kMessageShift | number; }
constexpr Message message_of(Word first) { return static_cast<Message>(first >> kMessageShift); }
constexpr int words_of(Word first) { return message_of(first) == Message::line ? 2 + World::kCrossing : 1; }

inline bool World::signals_across(const std::vector<Plan>& plans_of_ranks) const {
  for (int rank = 0; rank < ranks; ++rank) {
    const PlanView plan = plans_of_ranks[static_cast<std::size_t>(rank)].view();
    for (const PlanOp& op : std::span(plan.ops(), plan.header().ops)) {
      if (op.verb != Verb::signal) continue;
      const RankSet set = plan.operands()[op.first_operand].ranks;
      for (int i = 0; i < set.n; ++i) {
        if (is_across(set.at(i, ranks), rank)) return true;
      }
    }
  }
  return false;
}

// ---- what a rank sees of another one

inline int ModelMachine::flag_of(int rank) const {
  return is_across(rank) ? world_.line_copy(rank, rank_, generation()) : world_.flag(rank, generation());
}

inline int ModelMachine::cell_of_line(int rank, int cell) {
  if (!is_across(rank)) return world_.line(rank, generation()) + cell;
  demand_crossing(cell);
  return world_.line_copy(rank, rank_, generation()) + 1 + cell % World::kCrossing;
}

inline int ModelMachine::count_of(int rank) const {
  return is_across(rank) ? world_.count_copy(rank, rank_) : world_.consumed(rank_, rank);
}

inline int ModelMachine::header_of(int rank, Word slot) const {
  return is_across(rank) ? world_.slot_copy(rank, rank_, slot) : world_.header(rank, rank_, slot);
}

inline int ModelMachine::cell_of_slot(int rank, Word slot, int cell) const {
  if (!is_across(rank)) return world_.payload(rank, rank_, slot) + cell;
  return world_.slot_copy(rank, rank_, slot) + 1 + cell % World::kCrossing;
}

inline void ModelMachine::demand_near(int rank, Space space) {
  if (is_across(rank) && space != Space::channel && space != Space::line) {
    fail(fmt::format("touches memory of rank {}, which is on another host", rank));
  }
}

inline void ModelMachine::demand_crossing(int cell) {
  if (!world_.hosts.empty() && cell >= World::kCrossing) fail("the model's links carry no such cell");
}

// ---- what it tells

inline void ModelMachine::push(int peer, std::span<const Word> message) {
  Word* const link = &state_[static_cast<std::size_t>(world_.on_the_way(rank_, peer))];
  if (link[0] + message.size() > World::kLinkWords) return fail("the model has no room for so many messages");
  std::copy(message.begin(), message.end(), link + 1 + link[0]);
  link[0] += static_cast<Word>(message.size());
}

inline bool ModelMachine::tell_count(int peer, Word count) {
  Word& told = state_[static_cast<std::size_t>(world_.told_count(rank_, peer))];
  if (count <= told) return false;
  told = count;
  push(peer, std::array{first_word(Message::count, count)});
  return true;
}

inline void ModelMachine::announce_across(const PlanOp& op, RankSet to) {
  was_local_ = world_.is_alone(rank_);
  for (int i = 0; i < to.n; ++i) {
    const int peer = to.at(i, world_.ranks);
    if (!is_across(peer)) continue;
    if ((op.marks & mark_exposes) != 0) fail(fmt::format("shows memory to rank {}, which is on another host", peer));
    tell_count(peer, received(peer));
    std::array<Word, 2 + World::kCrossing> line{first_word(Message::line, static_cast<Word>(generation())),
                                                number() << 16U | op.phase};
    for (int cell = 0; cell < World::kCrossing; ++cell) {
      line[static_cast<std::size_t>(2 + cell)] = load(world_.line(rank_, generation()) + cell);
    }
    push(peer, line);
  }
}

inline void ModelMachine::publish_across(int peer) {
  tell_count(peer, received(peer));
  push(peer, std::array{first_word(Message::slice, sent(peer) + 1)});
}

inline void ModelMachine::release_across(int peer, Word count) {
  const Word told = state_[static_cast<std::size_t>(world_.told_count(rank_, peer))];
  const bool is_urgent = count - told >= static_cast<Word>(world_.slots + 1) / 2;
  if (is_urgent && world_.fault != Fault::keeps_counts) tell_count(peer, count);
}

inline bool ModelMachine::idle() {
  if (world_.fault == Fault::keeps_counts || world_.fault == Fault::keeps_counts_when_idle) return false;
  bool has_told = false;
  for (int peer = 0; peer < world_.ranks; ++peer) {
    if (is_across(peer)) has_told |= tell_count(peer, received(peer));
  }
  return has_told;
}

// ---- what arrives

inline bool ModelMachine::deliver(int from, Word index) {
  if (!is_across(from) || (index > 0 && world_.fault != Fault::delivers_out_of_order)) return false;
  Word* const link = &state_[static_cast<std::size_t>(world_.on_the_way(from, rank_))];
  Word* const end = link + 1 + link[0];
  Word* message = link + 1;
  for (; index > 0 && message != end; --index) message += words_of(*message);
  if (message == end) return false;
  const int words = words_of(*message);
  const bool is_halfway = (*message & kHalfway) != 0;
  const Word number = *message & kMessageNumber;
  switch (message_of(*message)) {
    case Message::slice:
      take_slice(from, number, is_halfway != (world_.fault == Fault::delivers_header_first));
      break;
    case Message::count:
      take_count(from, number);
      break;
    case Message::line:
      take_line(from, std::span(message, static_cast<std::size_t>(words)),
                is_halfway != (world_.fault == Fault::delivers_flag_first));
      break;
  }
  if (message_of(*message) != Message::count && !is_halfway) {
    *message |= kHalfway;
    // Nobody is right to look there before the other half, and sooner is worse for what was there.
    was_local_ = world_.fault != Fault::delivers_header_first && world_.fault != Fault::delivers_flag_first &&
                 world_.fault != Fault::delivers_out_of_order;
    return true;
  }
  was_local_ = is_done() && world_.fault != Fault::delivers_out_of_order;
  std::fill(std::copy(message + words, end, message), end, 0);
  link[0] -= static_cast<Word>(words);
  return true;
}

inline void ModelMachine::take_slice(int from, Word slice, bool is_header) {
  const Word slot = (slice - 1) % static_cast<Word>(world_.slots);
  Word* const copy = &state_[static_cast<std::size_t>(world_.slot_copy(from, rank_, slot))];
  Word& arrived = state_[static_cast<std::size_t>(world_.arrived(from, rank_))];
  if (is_header) {
    copy[0] = slice;
    arrived = slice;
    return;
  }
  const bool is_header_there = world_.fault == Fault::delivers_header_first;
  if (!is_header_there && slice != arrived + 1) {
    fail(fmt::format("slice {} of rank {} arrives where {} is next", slice, from, arrived + 1));
  }
  if (slice > received(from) + static_cast<Word>(world_.slots)) {
    fail(fmt::format("slice {} of rank {} arrives in a slot that is not free", slice, from));
  }
  const Word* const payload = &state_[static_cast<std::size_t>(world_.payload(from, rank_, slot))];
  std::copy(payload, payload + World::kCrossing, copy + 1);
}

inline void ModelMachine::take_count(int from, Word count) {
  Word& known = state_[static_cast<std::size_t>(world_.count_copy(from, rank_))];
  if (count < known || count > sent(from)) {
    fail(fmt::format("rank {} says that it has released {} slices, after {} of {}", from, count, known, sent(from)));
  }
  known = count;
}

/// A line that is older than the one that is there is dropped.
inline void ModelMachine::take_line(int from, std::span<const Word> message, bool is_flag) {
  Word* const copy =
      &state_[static_cast<std::size_t>(world_.line_copy(from, rank_, static_cast<int>(message[0] & kMessageNumber)))];
  if (message[1] < copy[0]) return;
  if (is_flag) {
    copy[0] = message[1];
  } else {
    std::copy(message.begin() + 2, message.end(), copy + 1);
  }
}

}  // namespace tutti::model

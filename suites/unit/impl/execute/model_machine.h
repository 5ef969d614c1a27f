// SPDX-License-Identifier: Apache-2.0
// What the model's machine does (model.h).
#pragma once

#include <span>

#include "suites/unit/impl/execute/model.h"
#include "suites/unit/impl/execute/model_links.h"

namespace tutti::model {

inline State initial_state(const World& world) {
  State state(static_cast<std::size_t>(world.words()), 0);
  for (int rank = 0; rank < world.ranks; ++rank) {
    const auto seat = static_cast<std::size_t>(world.seat(rank));
    state[seat + World::operation] = 1;
    state[seat + World::free_until] = static_cast<Word>(world.generations);
    state[seat + World::heard_until] = static_cast<Word>(world.generations);
  }
  return state;
}

// ---- memory

inline Word ModelMachine::load(int address) {
  for (Word i = stores(); i > 0; --i) {
    const Word* const pending = store_at(i - 1);
    if (pending[0] == static_cast<Word>(address)) return pending[1];
  }
  return state_[static_cast<std::size_t>(address)];
}

inline void ModelMachine::store(int address, Word value, bool releases) {
  if (!world_.delays_stores) {
    state_[static_cast<std::size_t>(address)] = value;
    return;
  }
  if (stores() == World::kMostStores) return fail("the model has no room for so many stores on their way");
  Word* const pending = store_at(at(World::stores)++);
  pending[0] = static_cast<Word>(address);
  pending[1] = value;
  pending[2] = releases ? 1 : 0;
}

inline bool ModelMachine::commit(Word index) {
  if (index >= stores()) return false;
  Word* const chosen = store_at(index);
  if (chosen[2] != 0 && index > 0) return false;  // a release: what was stored before it comes first
  for (Word i = 0; i < index; ++i) {
    if (store_at(i)[0] == chosen[0]) return false;
  }
  state_[chosen[0]] = chosen[1];
  Word* const end = store_at(--at(World::stores));
  std::copy(chosen + 3, end + 3, chosen);
  std::fill(end, end + 3, 0);
  return true;
}

inline Word ModelMachine::untagged(Word cell, Word wanted, const char* what) {
  const Word tag = cell >> kDataBits;
  if (tag < wanted) fail(fmt::format("reads {} before it was written: {} for {}", what, tag, wanted));
  if (tag > wanted) fail(fmt::format("reads {} that was overwritten: {} for {}", what, tag, wanted));
  return cell & kDataMask;
}

inline void ModelMachine::check_generation() {
  if (!plan().header().uses_generation) return;
  for (int rank = 0; rank < world_.ranks; ++rank) {
    if (is_across(rank)) continue;  // it looks at its copy
    const Word theirs = state_[static_cast<std::size_t>(world_.seat(rank) + World::operation)];
    if (theirs + static_cast<Word>(world_.generations) > number()) continue;
    fail(fmt::format("uses generation {} again, which rank {} has in use in operation {}", generation(), rank, theirs));
  }
}

inline void ModelMachine::check_reference(int rank) {
  const Word reference = load(world_.references(rank, generation()));
  if (rank != rank_ && reference != number()) {
    fail(fmt::format("addresses a buffer of rank {} by the reference of operation {}", rank, reference));
  }
}

// ---- from one operation to the next, as Engine does

inline bool ModelMachine::act() {
  // Room for the stores of one action, so that a full buffer is only ever a reason to commit.
  if (world_.delays_stores && stores() + 2 > World::kMostStores) return false;
  switch (at(World::stage)) {
    case World::to_start:
      return start();
    case World::walking:
      return walk();
    default:
      tell();
      return true;
  }
}

inline bool ModelMachine::start() {
  const PlanHeader& header = plan().header();
  was_local_ = true;
  if (world_.needs_fence[number() - 1] && number() > at(World::heard_until)) return false;
  if (world_.fault == Fault::tells_before_read && !header.synchronises) {
    store(world_.completion(rank_), number(), true);
    was_local_ = world_.is_alone(rank_);
  }
  const bool looks = header.uses_generation && number() > at(World::free_until);
  if (looks && world_.fault != Fault::reuses_without_wait) {
    was_local_ = world_.is_alone(rank_);
    Word least = number() - 1;
    for (int peer = 0; peer < world_.ranks; ++peer) {
      if (is_across(peer)) {
        if (world_.fault == Fault::hears_completion_across) least = 0;  // nobody tells it
      } else if (peer != rank_) {
        least = std::min(least, load(world_.completion(peer)));
      }
    }
    at(World::free_until) = std::max(at(World::free_until), least + static_cast<Word>(world_.generations));
    if (number() > at(World::free_until)) return false;
  }
  at(World::stage) = World::walking;
  return true;
}

inline bool ModelMachine::walk() {
  Lane lane{.at = at(World::at), .cursor = static_cast<std::int32_t>(at(World::cursor))};
  const bool is_complete = advance(lane, plan().view(), *this);
  if (is_waiting_) return false;
  if (!is_complete || after_ != After::nothing) {
    if (after_ == After::a_wait) {  // where the walk stopped by itself is where it goes on
      at(World::at) = lane.at;
      at(World::cursor) = static_cast<Word>(lane.cursor);
      at(World::actions) = 0;
    } else {
      ++at(World::actions);
    }
    return true;
  }
  was_local_ = world_.is_alone(rank_);
  at(World::at) = at(World::cursor) = at(World::actions) = 0;
  for (int cell = 0; cell < World::kRegisters; ++cell) register_(cell) = 0;
  if (!plan().header().synchronises) {
    at(World::stage) = World::to_tell;
    return true;
  }
  const bool credits_all = world_.fault == Fault::credits_all_generations || world_.fault == Fault::fences_late;
  const int credit = credits_all ? world_.generations : world_.generations / 2;
  for (const int until : {World::free_until, World::heard_until}) {
    at(until) = std::max(at(until), number() + static_cast<Word>(credit));
  }
  return_from_call();
  return true;
}

inline void ModelMachine::tell() {
  was_local_ = world_.is_alone(rank_);
  const bool tells = world_.fault != Fault::tells_before_read && world_.fault != Fault::never_tells;
  if (tells) store(world_.completion(rank_), number(), true);
  return_from_call();
}

inline void ModelMachine::return_from_call() {
  check_output();
  ++at(World::operation);
  at(World::stage) = World::to_start;
}

inline void ModelMachine::check_output() {
  const Problem& problem = world_.problems[number() - 1];
  const int count = world_.counts[number() - 1];
  for (int block = 0; block < output_blocks(problem, rank_); ++block) {
    const Origin origin = origin_of(problem, rank_, block);
    for (int i = 0; i < count; ++i) {
      Word expected = 0;
      for (int rank = 0; rank < world_.ranks; ++rank) {
        if (!origin.has(rank)) continue;
        expected += input_element(rank, number(), origin.block * count + i);
      }
      const Word found = load(world_.output(rank_) + block * count + i);
      if (found != expected) fail(fmt::format("output block {} is {:06x}, not {:06x}", block, found, expected));
    }
  }
}

// ---- channels, as CpuMachine has them

inline bool ModelMachine::channels_ready(const PlanOp& op, const PlanOperand* operand) {
  if (is_past()) return true;
  if (!is_next(true)) return false;
  const auto slots = static_cast<Word>(world_.slots) + (world_.fault == Fault::counts_a_slot_too_few ? 1U : 0U);
  was_local_ = true;
  for (int i = 0; i < op.destinations + op.sources && !is_waiting_; ++i, ++operand) {
    if (operand->space != Space::channel) continue;
    const int peer = operand->ranks.first;
    was_local_ &= is_across(peer);  // what has arrived stays
    if (i < op.destinations) {
      if (is_across(peer)) {
        is_waiting_ = sent(peer) - load(count_of(peer)) >= slots;
        continue;
      }
      if (sent(peer) - consumed_seen(peer) < slots) continue;
      consumed_seen(peer) = load(count_of(peer));
      is_waiting_ = sent(peer) - consumed_seen(peer) >= slots;
    } else {
      const Word slot = received(peer) % static_cast<Word>(world_.slots);
      is_waiting_ = load(header_of(peer, slot)) < received(peer) + 1;
    }
  }
  return !is_waiting_;
}

inline void ModelMachine::publish(int peer) {
  if (is_across(peer)) return publish_across(peer);
  const Word slot = sent(peer) % static_cast<Word>(world_.slots);
  store(world_.header(rank_, peer, slot), sent(peer) + 1, world_.fault != Fault::publishes_relaxed);
}

inline void ModelMachine::consume(int peer) {
  if (is_across(peer)) return release_across(peer, received(peer) + 1);
  store(world_.consumed(peer, rank_), received(peer) + 1, true);
}

inline void ModelMachine::count_as_read(int peer) {
  Word& read = state_[static_cast<std::size_t>(world_.read(peer, rank_))];
  read = std::max(read, received(peer) + 1);
}

inline void ModelMachine::close_channels(const PlanOp& op, const PlanOperand* operand) {
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->space != Space::channel || !takes()) continue;
    const int peer = operand->ranks.first;
    was_local_ = is_across(peer);  // the end of a link's queue: only a delivery looks at it, once it is there
    if (i < op.destinations) {
      if (world_.fault != Fault::publishes_before_write) publish(peer);
      ++sent(peer);
    } else {
      count_as_read(peer);  // an empty slice has no cell that is read
      if (world_.fault != Fault::consumes_before_read) consume(peer);
      ++received(peer);
    }
  }
}

// ---- data

inline Word ModelMachine::read_cell(const PlanOperand& operand, int rank, int cell) {
  demand_near(rank, operand.space);
  switch (operand.space) {
    case Space::input: {
      if (rank != rank_) check_reference(rank);
      return input_element(rank, state_[static_cast<std::size_t>(world_.seat(rank) + World::operation)], cell);
    }
    case Space::output:
      if (rank != rank_) check_reference(rank);
      return load(world_.output(rank) + cell);
    case Space::scratch:
      return untagged(load(world_.scratch(rank, generation()) + cell), number(), "scratch");
    case Space::line:
      return untagged(load(cell_of_line(rank, cell)), number(), "a line");
    case Space::channel:
      break;
  }
  count_as_read(rank);
  const Word slot = received(rank) % static_cast<Word>(world_.slots);
  return untagged(load(cell_of_slot(rank, slot, cell)), received(rank) + 1, "a slot");
}

inline void ModelMachine::write_cell(const PlanOperand& operand, int rank, int cell, Word value) {
  if (operand.space != Space::channel) demand_near(rank, operand.space);
  switch (operand.space) {
    case Space::input:
      return fail("writes to an input");
    case Space::output:
      if (rank != rank_) check_reference(rank);
      if (world_.shares_outputs) return store(world_.output(rank) + cell, value);
      state_[static_cast<std::size_t>(world_.output(rank) + cell)] = value;
      return;
    case Space::scratch:
      check_generation();
      return store(world_.scratch(rank, generation()) + cell, number() << kDataBits | value);
    case Space::line:
      check_generation();
      demand_crossing(cell);
      return store(world_.line(rank, generation()) + cell, number() << kDataBits | value);
    case Space::channel:
      break;
  }
  const Word slice = sent(rank) + 1;
  if (is_across(rank)) {
    demand_crossing(cell);
    if (slice > static_cast<Word>(world_.slots) + load(count_of(rank))) {
      fail(fmt::format("writes slice {} to a slot that rank {} has not given back", slice, rank));
    }
  }
  if (slice > static_cast<Word>(world_.slots) + state_[static_cast<std::size_t>(world_.read(rank_, rank))]) {
    fail(fmt::format("writes slice {} to a slot of rank {} that was not read yet", slice, rank));
  }
  const Word slot = sent(rank) % static_cast<Word>(world_.slots);
  store(world_.payload(rank_, rank, slot) + cell, slice << kDataBits | value);
}

/// Nobody else looks at it, or a link does that is told of it later.
inline bool ModelMachine::is_private(const PlanOperand& operand, bool is_written) const {
  switch (operand.space) {
    case Space::channel:
      // What I give to a link it reads when it is told; what has arrived stays until I give it back.
      return is_across(operand.ranks.first) &&
             world_.fault != (is_written ? Fault::publishes_before_write : Fault::consumes_before_read);
    case Space::input:
      return operand.is_mine;
    case Space::output:
      return operand.is_mine && !world_.shares_outputs;
    default:
      return operand.is_mine && world_.is_alone(rank_);
  }
}

/// A source on one rank is one action, then a destination on one rank is one.
inline void ModelMachine::move(const PlanOp& op, const PlanOperand* operand) {
  const int cells = static_cast<int>(op.bytes) / world_.cell_bytes;
  for (const PlanOperand& one : std::span(operand, static_cast<std::size_t>(op.destinations) + op.sources)) {
    const bool fits = one.space == Space::input || one.offset + op.bytes <= World::kCells * world_.cell_bytes;
    if (!fits || op.bytes % world_.cell_bytes != 0) return fail("the model has no such cells");
  }
  const auto on_each_rank = [&](const PlanOperand& one, bool is_written, auto what) {
    int rank = one.is_mine ? rank_ : one.ranks.first;
    for (int i = 0; i < (one.is_mine ? 1 : one.ranks.n); ++i) {
      if (takes()) {
        what(rank, i);
        was_local_ = is_private(one, is_written);
      }
      rank = one.ranks.after(rank, world_.ranks);
    }
  };
  const auto first_cell = [&](const PlanOperand& one) { return static_cast<int>(one.offset) / world_.cell_bytes; };
  const PlanOperand* const sources = operand + op.destinations;
  const bool closes = (op.marks & mark_closes) != 0;
  for (int i = 0; i < op.sources && closes && world_.fault == Fault::consumes_before_read; ++i) {
    if (sources[i].space == Space::channel && takes()) consume(sources[i].ranks.first);
  }
  if (cells > 0) {
    for (int i = 0; i < op.sources; ++i) {
      on_each_rank(sources[i], false, [&](int rank, int index) {
        for (int cell = 0; cell < cells; ++cell) {
          const Word value = read_cell(sources[i], rank, first_cell(sources[i]) + cell);
          register_(cell) = i == 0 && index == 0 ? value : register_(cell) + value;
        }
      });
    }
  }
  for (int i = 0; i < op.destinations && closes && world_.fault == Fault::publishes_before_write; ++i) {
    if (operand[i].space == Space::channel && takes()) publish(operand[i].ranks.first);
  }
  for (int i = 0; i < op.destinations && cells > 0; ++i) {
    on_each_rank(operand[i], true, [&](int rank, int /*index*/) {
      for (int cell = 0; cell < cells; ++cell) {
        write_cell(operand[i], rank, first_cell(operand[i]) + cell, register_(cell));
      }
    });
  }
}

}  // namespace tutti::model

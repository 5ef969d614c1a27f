// SPDX-License-Identifier: Apache-2.0
// What a rank tells of itself, and what it makes of what the others tell: nothing here is on the way of a call that
// goes well.
#include <algorithm>

#include "impl/communicator/diagnosis.h"
#include "impl/communicator/engine.h"
#include "impl/transports/failure.h"

namespace tutti {

void Engine::note(BoundEntry& entry, std::uint64_t number) {
  noted_ = &entry;
  CallNote told = entry.note;
  told.first = number;
  if (entry.blocks) note_counts(*entry.blocks, number);
  const std::uint64_t index = journal_.notes.load(std::memory_order_relaxed);
  journal_.calls[index % Journal::kNotes].write(told);
  if (entry.is_compared) return journal_.notes.store(index + 1, std::memory_order_release);
  entry.is_compared = true;
  // Of two ranks that do so at once, one sees the other's note (diagnosis.cc loads in the same order).
  journal_.notes.store(index + 1, std::memory_order_seq_cst);
  for (const int peer : {(rank_ + 1) % ranks_, (rank_ + ranks_ - 1) % ranks_}) {
    if (failed_.is_ok()) (void)compare_with(peer);
  }
}

void Engine::note_counts(const BlockTable& blocks, std::uint64_t number) {
  journal_.counted.store(0, std::memory_order_relaxed);
  if (blocks.shared.empty()) return;  // each rank knows its own only
  for (std::size_t block = 0; block < blocks.shared.size(); ++block) {
    journal_.counts()[block].store(blocks.shared[block], std::memory_order_release);
  }
  journal_.counted.store(number, std::memory_order_release);
}

void Engine::tell(const Standing& standing) {
  if (standing.wait == Wait::generation) {
    // It has not started, so it is not noted yet; a reader of its number would take it for the call before it.
    BoundEntry& entry = *pending(starting_).entry;
    if (&entry != noted_) note(entry, standing.operation);
  }
  journal_.standing.write(standing);
  is_told_ = true;
}

void Engine::withdraw_standing() {
  journal_.standing.write({.finished = completed_});
  is_told_ = false;
}

Status Engine::look(const Ticket& ticket) {
  const Standing standing = standing_of(ticket);
  tell(standing);
  TUTTI_RETURN_IF_ERROR(failed_);
  return standing.operation == 0 || standing.peer < 0 ? Status() : compare_with(standing.peer);
}

Status Engine::compare_with(int peer) {
  if (peer == rank_) return {};
  const auto text = disagreement(domain_, rank_, peer);
  return text ? fail(error(Code::mismatch, "{}", *text)) : Status();
}

Status Engine::explained(const Status& mismatch) const {
  const int peer = machine_.disagrees_with();
  if (peer < 0) return mismatch;
  const auto text = disagreement(domain_, rank_, peer);
  return text ? error(Code::mismatch, "{}", *text) : mismatch;
}

Status Engine::give_up(const Ticket& ticket) {
  tell(standing_of(ticket));
  for (int peer = 0; peer < ranks_; ++peer) TUTTI_RETURN_IF_ERROR(compare_with(peer));
  // Ranks that wait together give up together: one of them reports.
  const Status late = error(Code::timeout, "{} gave up: {}{}", domain_.name_of(rank_), position(ticket), report());
  if (announce_failure(domain_, rank_, rank_, text_for_others(domain_, rank_, late))) return fail(late);
  return fail(announced_failure(domain_));
}

std::string Engine::report() const { return report_of(domain_); }

CallNote Engine::note_for(std::uint64_t ticket, std::uint64_t number) const {
  const Pending& call = pending(ticket);
  CallNote note = call.entry->note;
  note.first = number - static_cast<std::uint64_t>(call.segment);
  return note;
}

int Engine::slowest() const {
  int slowest = -1;
  std::uint64_t least = completed_;
  for (int peer = 0; peer < ranks_; ++peer) {
    const auto done = lines_[static_cast<std::size_t>(peer)]->operation.load(std::memory_order_acquire);
    if (peer == rank_ || done >= least) continue;
    slowest = peer;
    least = done;
  }
  return slowest;
}

Standing Engine::standing_of(const Operation& operation) const {
  const Plan& plan = pending(operation.ticket).entry->call.plan(pending(operation.ticket).segment);
  const PlanOp& op = plan.ops()[operation.lane.at];
  Standing standing{.operation = operation.number,
                    .finished = completed_,
                    .step = static_cast<std::int32_t>(op.step) + 1,
                    .steps = pending(operation.ticket).entry->schedule.step_count(rank_)};
  if (op.verb == Verb::wait) {
    standing.wait = Wait::phase;
    standing.phase = op.phase;
    standing.peer = plan.ranks(op).at(operation.lane.cursor, ranks_);
    return standing;
  }
  const auto find_channel = [&](std::span<const PlanOperand> operands, Wait wait) {
    const auto channel = std::ranges::find(operands, Space::channel, &PlanOperand::space);
    if (channel == operands.end()) return;
    standing.wait = wait;
    standing.peer = channel->ranks.first;
    standing.bytes = op.rest_bytes;
  };
  find_channel(plan.destinations(op), Wait::room);
  find_channel(plan.sources(op), Wait::data);
  return standing;
}

Standing Engine::oldest_standing() const {
  for (std::uint64_t number = completed_ + 1; number <= completed_ + in_flight_; ++number) {
    if (!operation(number).is_complete) return standing_of(operation(number));
  }
  return {.operation = completed_ + 1, .finished = completed_, .peer = slowest(), .wait = Wait::generation};
}

Standing Engine::standing_of(const Ticket& ticket) const {
  if (ticket.kind == Ticket::Kind::collective) return oldest_standing();
  const Direction direction = ticket.kind == Ticket::Kind::send ? Direction::send : Direction::receive;
  Standing standing = transfers_.standing(direction, ticket.peer, ticket.number);
  standing.finished = completed_;
  return standing;
}

std::string Engine::position(const Ticket& ticket) const {
  if (is_complete(ticket)) return "complete";
  if (ticket.kind != Ticket::Kind::collective) return standing_text(domain_, standing_of(ticket), nullptr);
  for (std::uint64_t number = completed_ + 1; number <= completed_ + in_flight_; ++number) {
    const Operation& each = operation(number);
    if (each.ticket != ticket.number || each.is_complete) continue;
    const CallNote note = note_for(each.ticket, number);
    return standing_text(domain_, standing_of(each), &note);
  }
  const Standing oldest = oldest_standing();
  const std::uint64_t first = in_flight_ > 0 ? operation(oldest.operation).ticket : starting_;
  const CallNote note = note_for(first, oldest.operation);
  const std::string where = standing_text(domain_, oldest, &note);
  if (first == ticket.number) return where;
  return fmt::format("{}: waits for operations before it, first {}", call_text(pending(ticket.number).entry->note, 0),
                     where);
}

}  // namespace tutti

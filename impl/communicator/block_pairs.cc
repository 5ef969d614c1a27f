// SPDX-License-Identifier: Apache-2.0
// Sends and receives of thread blocks: both ends of a message are launched together, each on its device.
#include <algorithm>
#include <array>
#include <cstring>

#include "impl/communicator/block_world.h"
#include "impl/communicator/diagnosis.h"
#include "impl/execute/transfers.h"

namespace tutti {
namespace {

/// What one end of a message does: slice by slice into the channel to the peer, or out of the one from it. Of a message
/// to itself a rank's one copy.
Plan plan_of(const BlockWorld::Message& message, int ranks, std::int64_t slot_bytes) {
  const bool is_to_itself = message.rank == message.peer;
  std::vector<PlanOp> ops;
  std::vector<PlanOperand> operands;
  const PlanOperand channel{.ranks = only(message.peer), .space = Space::channel};
  std::int64_t done = 0;
  do {
    const std::int64_t rest = message.bytes - done;
    const std::int64_t bytes = is_to_itself ? rest : std::min(rest, slot_bytes);
    const PlanOperand mine{.offset = done,
                           .ranks = only(message.rank),
                           .space = message.is_send ? Space::input : Space::output,
                           .is_mine = true};
    PlanOp op{.destinations = 1, .sources = 1, .first_operand = static_cast<std::uint32_t>(operands.size())};
    op.bytes = bytes;
    if (is_to_itself) {
      operands.push_back({.ranks = only(message.rank), .space = Space::output, .is_mine = true});
      operands.push_back({.ranks = only(message.rank), .space = Space::input, .is_mine = true});
    } else {
      op.marks = mark_opens | mark_closes;
      op.has_channel = 1;
      op.rest_bytes = rest;
      operands.push_back(message.is_send ? channel : mine);
      operands.push_back(message.is_send ? mine : channel);
    }
    ops.push_back(op);
    done += bytes;
  } while (done < message.bytes);
  const PlanHeader header{.rank = message.rank,
                          .ranks = ranks,
                          .ops = static_cast<std::uint32_t>(ops.size()),
                          .operands = static_cast<std::uint32_t>(operands.size()),
                          .dtype = message.dtype,
                          .uses_channels = !is_to_itself};
  return {header, ops, operands, {}};
}

/// Who sends to whom.
std::pair<int, int> ends_of(const BlockWorld::Message& message) {
  return message.is_send ? std::pair(message.rank, message.peer) : std::pair(message.peer, message.rank);
}

}  // namespace

Result<std::uint64_t> BlockWorld::post(const Message& message) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
  if (is_shared()) {
    return error(
        Code::unavailable,
        "sends and receives of single ranks on the GPUs of several processes: their collectives can be called, "
        "sendrecv among them");
  }
  TUTTI_RETURN_IF_ERROR(check_not_captured(message.rank, message.is_send ? "a send" : "a receive"));
  Pair& pair = pairs_[ends_of(message)];
  (message.is_send ? pair.sends : pair.receives).push_back(message);
  const std::uint64_t number = pair.posted[message.is_send ? 1 : 0]++;
  if (!pair.sends.empty() && !pair.receives.empty()) TUTTI_RETURN_IF_ERROR(launch_pair(pair));
  return number;
}

Result<BlockWorld::Prepared> BlockWorld::prepare(const std::vector<const Message*>& ends, std::byte* to_itself) {
  Place& place = place_of(ends.front()->rank);
  const auto slot_bytes = static_cast<std::int64_t>(place.world.slot_bytes);
  // Calls, plans and the ranks' numbers lie in one piece.
  std::vector<std::byte> image(ends.size() * sizeof(DeviceCall));
  const auto append = [&image](std::span<const std::byte> bytes) {
    const std::size_t at = image.size();
    image.insert(image.end(), bytes.begin(), bytes.end());
    return at;
  };
  std::vector<std::size_t> plan_at;
  std::vector<int> ranks;
  for (const Message* const one : ends) {
    plan_at.push_back(append(std::as_bytes(plan_of(*one, ranks_, slot_bytes).block())));
    ranks.push_back(one->rank);
  }
  const std::size_t ranks_at = append(std::as_bytes(std::span(ranks)));
  TUTTI_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::make(*place.device, image.size()));
  std::byte* const base = memory.get();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Message& one = *ends[i];
    const DeviceCall call{.tail = PlanView(base + plan_at[i]),
                          .input = one.is_send ? one.buffer : nullptr,
                          .output = one.rank == one.peer ? to_itself
                                    : one.is_send        ? nullptr
                                                         : one.buffer,
                          .segments = 1};
    std::memcpy(image.data() + i * sizeof call, &call, sizeof call);
  }
  TUTTI_RETURN_IF_ERROR(place.device->write(base, image.data(), image.size()));
  Prepared prepared;
  prepared.part.place = &place;
  prepared.part.memory = std::move(memory);
  prepared.launch = launch_on(place, ends.front()->dtype, Op::none);
  DeviceWork& work = prepared.launch.work;
  work.calls = reinterpret_cast<const DeviceCall*>(base);
  work.parties = static_cast<int>(ends.size());
  work.ranks = reinterpret_cast<const int*>(base + ranks_at);
  work.transfer = transfers_;
  return prepared;
}

Status BlockWorld::launch_pair(Pair& pair) {
  const Message send = pair.sends.front();
  const Message receive = pair.receives.front();
  if (send.bytes != receive.bytes || send.dtype != receive.dtype) {
    return fail(error_of({.number = pair.complete + pair.under_way.size() + 1,
                          .sender = domain_->name_of(send.rank),
                          .receiver = domain_->name_of(receive.rank),
                          .sent = {.bytes = send.bytes, .dtype = send.dtype},
                          .expected = {.bytes = receive.bytes, .dtype = receive.dtype}}));
  }
  pair.sends.pop_front();
  pair.receives.pop_front();
  ++transfers_;
  std::vector<const Message*> ends{&send, &receive};
  if (send.rank == send.peer) ends.pop_back();
  std::vector<Prepared> parts;
  if (ends.size() == 2 && &place_of(send.rank) != &place_of(receive.rank)) {
    for (const Message* const one : ends) {
      Result<Prepared> part = prepare({one}, receive.buffer);
      if (!part.is_ok()) return fail(told_of(place_of(one->rank), part.status()));
      parts.push_back(std::move(part).value());
    }
  } else {
    Result<Prepared> part = prepare(ends, receive.buffer);
    if (!part.is_ok()) return fail(told_of(place_of(send.rank), part.status()));
    parts.push_back(std::move(part).value());
  }
  Transfer& transfer = pair.under_way.emplace_back(
      Transfer{.send = send, .receive = receive, .launched = {.number = transfers_, .is_transfer = true, .parts = {}}});
  return fail_unless_ok(launch_all(std::move(parts), transfer.launched));
}

Result<bool> BlockWorld::is_complete(const Message& message, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  if (number < pairs_[ends_of(message)].complete) return true;
  TUTTI_RETURN_IF_ERROR(failed_);
  return false;
}

std::string BlockWorld::position(const Message& message, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Pair& pair = pairs_[ends_of(message)];
  if (number < pair.complete) return "complete";
  const std::deque<Message>& alone = message.is_send ? pair.sends : pair.receives;
  const std::uint64_t first = pair.posted[message.is_send ? 1 : 0] - alone.size();
  const bool is_alone = number >= first;
  const Transfer* const both = is_alone ? nullptr : &pair.under_way[number - pair.complete];
  const Message& posted = is_alone ? alone[number - first] : message.is_send ? both->send : both->receive;
  const Standing standing{.bytes = posted.bytes,
                          .before = number - pair.complete,
                          .peer = posted.peer,
                          .wait = posted.is_send ? Wait::send : Wait::receive,
                          .dtype = posted.dtype,
                          .is_begun = !is_alone};
  return standing_text(*domain_, standing, nullptr);
}

Status BlockWorld::fail_in(const Transfer& transfer, const DeviceFailure& failure) {
  const bool is_send = failure.kind == DeviceFailure::room;
  const Message& mine = is_send ? transfer.send : transfer.receive;
  return fail_late(mine.rank,
                   {.bytes = mine.bytes,
                    .done = mine.bytes - static_cast<std::int64_t>(failure.wanted),
                    .peer = mine.peer,
                    .wait = is_send ? Wait::send : Wait::receive,
                    .dtype = mine.dtype,
                    .is_begun = true},
                   failure, nullptr);
}

}  // namespace tutti

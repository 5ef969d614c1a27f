// SPDX-License-Identifier: Apache-2.0
// Sends and receives of thread blocks: both ends of a message are one launch.
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
  Pair& pair = pairs_[ends_of(message)];
  (message.is_send ? pair.sends : pair.receives).push_back(message);
  const std::uint64_t number = pair.posted[message.is_send ? 1 : 0]++;
  if (!pair.sends.empty() && !pair.receives.empty()) TUTTI_RETURN_IF_ERROR(launch_pair(pair));
  return number;
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
  const bool is_to_itself = send.rank == send.peer;
  const auto slot_bytes = static_cast<std::int64_t>(device_world_.slot_bytes);
  const std::array plans{plan_of(send, ranks_, slot_bytes), plan_of(receive, ranks_, slot_bytes)};
  const std::array ranks{send.rank, receive.rank};
  // Calls, plans and the ranks' numbers lie in one piece.
  const int parties = is_to_itself ? 1 : 2;
  std::vector<std::byte> image(2 * sizeof(DeviceCall));
  std::array<std::size_t, 2> plan_at{};
  for (int i = 0; i < parties; ++i) {
    plan_at[static_cast<std::size_t>(i)] = image.size();
    const auto block = std::as_bytes(plans[static_cast<std::size_t>(i)].block());
    image.insert(image.end(), block.begin(), block.end());
  }
  const std::size_t ranks_at = image.size();
  const auto numbers = std::as_bytes(std::span(ranks));
  image.insert(image.end(), numbers.begin(), numbers.end());
  Result<DeviceMemory> memory = DeviceMemory::make(common_.device, image.size());
  if (!memory.is_ok()) return fail(memory.status());
  std::byte* const base = memory.value().get();
  for (int i = 0; i < parties; ++i) {
    const DeviceCall call{.tail = PlanView(base + plan_at[static_cast<std::size_t>(i)]),
                          .input = i == 0 ? send.buffer : nullptr,
                          .output = i == 1 || is_to_itself ? receive.buffer : nullptr,
                          .segments = 1};
    std::memcpy(image.data() + static_cast<std::size_t>(i) * sizeof call, &call, sizeof call);
  }
  TUTTI_RETURN_IF_ERROR(fail_unless_ok(common_.device.write(base, image.data(), image.size())));
  DeviceLaunch launch{.world = device_world_,
                      .work = next_work(reinterpret_cast<const DeviceCall*>(base), parties),
                      .dtype = send.dtype,
                      .threads = common_.blocks.threads};
  launch.work.ranks = reinterpret_cast<const int*>(base + ranks_at);
  launch.work.is_transfer = true;
  const Result<Device::Ticket> ticket = common_.device.launch(std::move(launch));
  if (!ticket.is_ok()) return fail(ticket.status());
  pair.under_way.push_back({.send = send,
                            .receive = receive,
                            .launch = launches_,
                            .ticket = ticket.value(),
                            .memory = std::move(memory).value()});
  return {};
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

Status BlockWorld::fail_in(const Transfer& transfer) {
  const DeviceFailure& failure = *device_world_.failure;
  const bool is_send = failure.kind == DeviceFailure::room;
  const Message& mine = is_send ? transfer.send : transfer.receive;
  return fail_late(mine.rank,
                   {.bytes = mine.bytes,
                    .done = mine.bytes - static_cast<std::int64_t>(failure.wanted),
                    .peer = mine.peer,
                    .wait = is_send ? Wait::send : Wait::receive,
                    .dtype = mine.dtype,
                    .is_begun = true},
                   nullptr);
}

}  // namespace tutti

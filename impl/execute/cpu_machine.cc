// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/cpu_machine.h"

namespace tutti {
namespace {

/// [0, bytes) of `source` to `destination`, 1 <= bytes <= kLineBytes, by two overlapping moves: no call and no loop.
void copy_small(std::byte* destination, const std::byte* source, std::size_t bytes) {
  const auto both_ends = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
    std::array<std::byte, width> first, last;
    std::memcpy(first.data(), source, width);
    std::memcpy(last.data(), source + bytes - width, width);
    std::memcpy(destination, first.data(), width);
    std::memcpy(destination + bytes - width, last.data(), width);
  };
  if (bytes >= 32) return both_ends(std::integral_constant<std::size_t, 32>());
  if (bytes >= 16) return both_ends(std::integral_constant<std::size_t, 16>());
  if (bytes >= 8) return both_ends(std::integral_constant<std::size_t, 8>());
  if (bytes >= 4) return both_ends(std::integral_constant<std::size_t, 4>());
  for (std::size_t i = 0; i < bytes; ++i) destination[i] = source[i];
}

}  // namespace

CpuMachine::CpuMachine(Domain& domain, int rank)
    : rank_(rank),
      ranks_(domain.shape().ranks),
      generation_mask_(static_cast<std::uint64_t>(domain.shape().generations) - 1),
      slots_(static_cast<std::uint64_t>(domain.shape().slots)),
      slot_stride_(sizeof(SlotHeader) + domain.shape().slot_bytes),
      scratch_bytes_(domain.shape().scratch_bytes) {
  const auto count = static_cast<std::size_t>(ranks_);
  for (int peer = 0; peer < ranks_; ++peer) {
    seats_.push_back(domain.seat(peer));
    senders_.push_back({.memory = domain.channel(rank, peer)});
    receivers_.push_back({.memory = domain.channel(peer, rank)});
  }
  const Seat& mine = seats_[static_cast<std::size_t>(rank)];
  my_lines_ = mine.lines;
  my_scratch_ = mine.scratch;
  heap_address_ = reinterpret_cast<std::uintptr_t>(mine.heap);
  // A step has four operands a side, each a set of at most all ranks, and staging cuts a set in three.
  destinations_.resize(4 * count + 8);
  sources_.resize(4 * count + 8);
}

inline std::byte* CpuMachine::address(const PlanOperand& operand, int rank) const {
  const Seat& seat = seats_[static_cast<std::size_t>(rank)];
  FlagLine& line = seat.lines[generation_];
  const auto user_buffer = [&](std::uint64_t References::*which) {
    References references;
    std::memcpy(&references, line.payload.data(), sizeof references);
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(seat.heap) + references.*which) +
           operand.offset;
  };
  switch (operand.space) {
    case Space::input:
      return rank == rank_ ? mine_[static_cast<std::size_t>(Space::input)] + operand.offset
                           : user_buffer(&References::input);
    case Space::output:
      return rank == rank_ ? mine_[static_cast<std::size_t>(Space::output)] + operand.offset
                           : user_buffer(&References::output);
    case Space::scratch:
      return seat.scratch + generation_ * scratch_bytes_ + operand.offset;
    case Space::line:
      return line.payload.data() + operand.offset;
    case Space::channel:
      break;  // resolved by move(), which knows the direction
  }
  return nullptr;
}

bool CpuMachine::is_free(ChannelEnd& end) {
  if (end.slices - end.consumed_seen < slots_) return true;
  end.consumed_seen = end.memory.consumed->load(std::memory_order_acquire);
  return end.slices - end.consumed_seen < slots_ || await(*end.memory.consumed, end.slices - slots_ + 1);
}

bool CpuMachine::is_full(const ChannelEnd& end, int peer, const PlanOp& op) {
  const SlotHeader& header = slot(end);
  if (header.message.load(std::memory_order_acquire) < end.slices + 1) return await(header.message, end.slices + 1);
  const bool is_as_planned =
      header.bytes == static_cast<std::uint64_t>(op.slice_bytes) && header.hash == static_cast<std::uint32_t>(hash_);
  if (!is_as_planned) fail_on_mismatch(peer);
  return is_as_planned;
}

bool CpuMachine::channels_ready(const PlanView& plan, const PlanOp& op) {
  const PlanOperand* operand = plan.operands() + op.first_operand;
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->space != Space::channel) continue;
    const int peer = operand->ranks.first;
    const auto index = static_cast<std::size_t>(peer);
    if (i < op.destinations ? !is_free(senders_[index]) : !is_full(receivers_[index], peer, op)) return false;
  }
  return true;
}

template <class Pointer>
inline Pointer* CpuMachine::resolve(const PlanOperand& operand, const std::vector<ChannelEnd>& ends, const PlanOp& op,
                                    Pointer* out) const {
  if (operand.is_mine) {
    *out = mine_[static_cast<std::size_t>(operand.space)] + operand.offset;
    return out + 1;
  }
  int rank = operand.ranks.first;
  if (operand.space == Space::channel) {
    *out = payload(ends[static_cast<std::size_t>(rank)], op.slice_bytes) + operand.offset;
    return out + 1;
  }
  if (operand.space == Space::line) {  // small operations: no choice inside the loop
    for (int i = 0; i < operand.ranks.n; ++i) {
      *out++ = seats_[static_cast<std::size_t>(rank)].lines[generation_].payload.data() + operand.offset;
      rank = operand.ranks.after(rank, ranks_);
    }
    return out;
  }
  for (int i = 0; i < operand.ranks.n; ++i) {
    *out++ = address(operand, rank);
    rank = operand.ranks.after(rank, ranks_);
  }
  return out;
}

void CpuMachine::move(const PlanView& plan, const PlanOp& op) {
  if (op.bytes == 0) return;
  const PlanOperand* operand = plan.operands() + op.first_operand;
  if (op.is_small_copy != 0) {
    copy_small(mine_[static_cast<std::size_t>(operand[0].space)] + operand[0].offset,
               mine_[static_cast<std::size_t>(operand[1].space)] + operand[1].offset,
               static_cast<std::size_t>(op.bytes));
    return;
  }
  std::byte** destination = destinations_.data();
  for (int i = 0; i < op.destinations; ++i) destination = resolve(*operand++, senders_, op, destination);
  const std::byte** source = sources_.data();
  for (int i = 0; i < op.sources; ++i) source = resolve(*operand++, receivers_, op, source);
  operation_.kernel({.destinations = destinations_.data(),
                     .destination_count = static_cast<int>(destination - destinations_.data()),
                     .sources = sources_.data(),
                     .source_count = static_cast<int>(source - sources_.data()),
                     .bytes = static_cast<std::size_t>(op.bytes),
                     .ranks = ranks_,
                     .is_final = (op.marks & mark_final) != 0,
                     .streams = (op.marks & mark_streams) != 0});
}

void CpuMachine::close_channels(const PlanView& plan, const PlanOp& op) {
  const PlanOperand* operand = plan.operands() + op.first_operand;
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->space != Space::channel) continue;
    const auto peer = static_cast<std::size_t>(operand->ranks.first);
    if (i < op.destinations) {
      ChannelEnd& end = senders_[peer];
      SlotHeader& header = slot(end);
      header.bytes = static_cast<std::uint64_t>(op.slice_bytes);
      header.hash = static_cast<std::uint32_t>(hash_);
      header.message.store(end.slices + 1, std::memory_order_release);
      pass(end);
    } else {
      ChannelEnd& end = receivers_[peer];
      end.memory.consumed->store(end.slices + 1, std::memory_order_release);
      pass(end);
    }
  }
}

void CpuMachine::fail_on_mismatch(int peer) {
  failure_ = error(
      Code::mismatch,
      "rank {} and rank {} do not agree on operation {}: collective, algorithm, root, count, dtype, op, placement "
      "and buffer kind must be the same on all ranks",
      rank_, peer, operation_.number);
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// The Machine of a CPU rank: what the steps of a plan do to memory that the ranks of a domain share. One per rank; it
// executes one operation at a time and keeps the rank's ends of its channels between operations.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "impl/execute/step.h"
#include "impl/reduce/kernels.h"
#include "impl/transports/domain.h"

namespace tutti {

class CpuMachine {
 public:
  CpuMachine(Domain& domain, int rank);

  struct Operation {
    PlanView plan;
    std::uint64_t number = 0;  ///< of the communicator's sequence, from 1
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    Kernel kernel = nullptr;
  };
  /// Requires: where the plan uses its generation, every rank has completed operation number - K.
  void begin(const Operation& operation) {
    operation_ = operation;
    generation_ = operation.number & generation_mask_;
    mine_ = {const_cast<std::byte*>(operation.input), operation.output, my_scratch_ + generation_ * scratch_bytes_,
             nullptr, my_lines_[generation_].payload.data()};
    hash_ = operation.plan.header().hash;
    is_announced_ = false;
    awaited_ = nullptr;
  }

  /// Whether the word that stopped the last walk has changed enough for another one: what a spinning wait looks at, in
  /// place of the whole way to that word.
  [[nodiscard]] bool may_go_on() const {
    return awaited_ == nullptr || awaited_->load(std::memory_order_acquire) >= awaited_value_;
  }

  /// Empty, or why the operation cannot go on (mismatch naming the peer).
  [[nodiscard]] const Status& failure() const { return failure_; }

  // ---- what step.h asks for

  [[nodiscard]] bool heard(int rank, std::uint16_t phase) {
    const FlagLine& line = seats_[static_cast<std::size_t>(rank)].lines[generation_];
    if (line.flag.load(std::memory_order_acquire) < flag_for(phase)) return await(line.flag, flag_for(phase));
    if (line.hash == hash_) return true;
    fail_on_mismatch(rank);
    return false;
  }

  void announce(const PlanOp& op) {
    FlagLine& line = my_lines_[generation_];
    if ((op.marks & mark_exposes) != 0) {
      const References references{.input = reinterpret_cast<std::uintptr_t>(operation_.input) - heap_address_,
                                  .output = reinterpret_cast<std::uintptr_t>(operation_.output) - heap_address_};
      std::memcpy(line.payload.data(), &references, sizeof references);
    }
    if (!is_announced_) line.hash = hash_;
    is_announced_ = true;
    line.flag.store(flag_for(op.phase), std::memory_order_release);
  }

  [[nodiscard]] bool channels_ready(const PlanView& plan, const PlanOp& op);
  void move(const PlanView& plan, const PlanOp& op);
  void close_channels(const PlanView& plan, const PlanOp& op);

 private:
  /// My end of one direction to or from a peer.
  struct ChannelEnd {
    ChannelMemory memory;
    std::uint64_t slices = 0;         ///< sent or received so far
    std::uint64_t slot = 0;           ///< slices modulo the number of slots
    std::uint64_t consumed_seen = 0;  ///< sender: the receiver's count when last read
  };

  bool await(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    awaited_ = &word;
    awaited_value_ = value;
    return false;
  }
  [[nodiscard]] std::uint64_t flag_for(std::uint16_t phase) const { return operation_.number << 16U | phase; }
  [[nodiscard]] SlotHeader& slot(const ChannelEnd& end) const {
    return *reinterpret_cast<SlotHeader*>(end.memory.slots + end.slot * slot_stride_);
  }
  [[nodiscard]] std::byte* payload(const ChannelEnd& end, std::int64_t slice_bytes) const {
    SlotHeader& header = slot(end);
    if (slice_bytes <= static_cast<std::int64_t>(SlotHeader::kInline)) return header.payload.data();
    return reinterpret_cast<std::byte*>(&header + 1);
  }
  void pass(ChannelEnd& end) const {
    ++end.slices;
    if (++end.slot == slots_) end.slot = 0;
  }
  [[nodiscard]] std::byte* address(const PlanOperand& operand, int rank) const;
  /// Appends the addresses of one operand on all ranks of its set; `ends` are those of its direction.
  template <class Pointer>
  Pointer* resolve(const PlanOperand& operand, const std::vector<ChannelEnd>& ends, const PlanOp& op,
                   Pointer* out) const;
  [[nodiscard]] bool is_free(ChannelEnd& end);
  [[nodiscard]] bool is_full(const ChannelEnd& end, int peer, const PlanOp& op);
  void fail_on_mismatch(int peer);

  int rank_;
  int ranks_;
  std::uint64_t generation_mask_;
  std::uint64_t slots_;
  std::size_t slot_stride_;
  std::size_t scratch_bytes_;
  std::vector<Seat> seats_;
  std::vector<ChannelEnd> senders_;    // [peer]
  std::vector<ChannelEnd> receivers_;  // [peer]
  FlagLine* my_lines_;
  std::byte* my_scratch_;
  std::uintptr_t heap_address_;
  std::vector<std::byte*> destinations_;  // of the MOVE at hand
  std::vector<const std::byte*> sources_;

  Operation operation_;
  std::array<std::byte*, 5> mine_{};  // [Space] in this operation
  std::uint64_t generation_ = 0;
  std::uint64_t hash_ = 0;
  bool is_announced_ = false;
  const std::atomic<std::uint64_t>* awaited_ = nullptr;  // all words only grow
  std::uint64_t awaited_value_ = 0;
  Status failure_;
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// The plan: one rank's program bound to a count, dtype, op, placement and buffer kind. One flat block of plain data
// with byte offsets and no addresses, so that it can be cached, proved, copied to a GPU and walked there.
//
//   block: | PlanHeader | PlanOp x ops | PlanOperand x operands | PlanExposure x exposures |
//
// A MOVE of the schedule becomes one PlanOp per contiguous piece and per channel slice. `marks` say which of them opens
// and which closes its slice; the pieces of a slice stay together, also where MOVEs take turns. Empty pieces are
// absent, but for one empty token where a channel is involved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "impl/schedule/schedule.h"
#include "impl/types/dtype.h"
#include "impl/types/host_device.h"
#include "impl/types/op.h"

namespace tutti {

/// Memory that a PlanOp touches: `offset` bytes into `space` of each rank of the set. For a channel, `ranks.first` is
/// the peer and `offset` counts from the start of the slot. For SIGNAL and WAIT, only `ranks` counts.
struct PlanOperand {
  std::int64_t offset = 0;
  RankSet ranks;
  Space space = Space::input;
  bool is_mine = false;  ///< memory of this rank alone

  bool operator==(const PlanOperand&) const = default;
};
static_assert(std::is_trivially_copyable_v<PlanOperand> && sizeof(PlanOperand) == 24);

/// Bytes of scratch that fit in the flag's cache line (64 - flag - hash), where it holds no references to user buffers.
inline constexpr std::int64_t kLineBytes = 48;

/// MOVEs of at most kLineBytes whose destination is one place of mine take a way without a kernel's preparations.
enum class Shortcut : std::uint8_t {
  none,
  copy,    ///< from another place of mine
  reduce,  ///< of places of mine and flag lines, at most kMostShortcutSources; nothing to divide
};
inline constexpr int kMostShortcutSources = 16;

/// Bits of PlanOp::marks.
enum Mark : std::uint8_t {
  mark_final = 1,        ///< MOVE: divides by P where the op is avg
  mark_opens = 2,        ///< MOVE with channels: first piece of its slice, waits for the slots
  mark_closes = 4,       ///< MOVE with channels: last piece of its slice, publishes and releases the slots
  mark_streams = 8,      ///< MOVE: non-temporal stores pay (working set beyond the last-level cache)
  mark_exposes = 16,     ///< SIGNAL: publishes references to my input and output first
  mark_identifies = 32,  ///< SIGNAL: the first of the plan, publishes the hash of its key
  mark_stages = 64,      ///< MOVE: writes scratch that another rank reads next
  mark_scales = 128,     ///< MOVE: its source in my input is multiplied by my factor first (premul_sum)
};

struct PlanOp {
  Verb verb = Verb::move;
  std::uint8_t marks = 0;
  std::uint16_t phase = 0;        ///< SIGNAL, WAIT
  std::uint8_t destinations = 0;  ///< MOVE: operands [first_operand, +destinations), then the sources
  std::uint8_t sources = 0;
  std::uint8_t has_channel = 0;        ///< MOVE
  Shortcut shortcut = Shortcut::none;  ///< MOVE
  std::uint32_t first_operand = 0;
  std::uint32_t step =
      0;  ///< index of the schedule's step, for messages; staging copies carry their SIGNAL's or WAIT's
  std::int64_t bytes = 0;  ///< MOVE: length of this piece
  /// MOVE with channels: what is left of the message, this slice included. The receiver compares it, so that the first
  /// slice shows whether both ends mean the same message.
  std::int64_t rest_bytes = 0;

  bool operator==(const PlanOp&) const = default;
};
static_assert(std::is_trivially_copyable_v<PlanOp> && sizeof(PlanOp) == 32);

/// The shortcut that a MOVE may take; `operands` are its own, destinations first.
[[nodiscard]] Shortcut shortcut_of(const PlanOp& op, std::span<const PlanOperand> operands, Op reduction);
/// Whether these are all ops of an exchange: MOVE by a shortcut, SIGNAL, WAIT, MOVE by a shortcut.
[[nodiscard]] bool is_exchange(std::span<const PlanOp> ops);

/// What the SIGNAL at `op` lets `target` touch. Kept only where asked for (BindRequest::keep_exposures): for the
/// prover.
struct PlanExposure {
  std::uint32_t op = 0;
  std::int32_t target = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  Space space = Space::input;
  bool is_write = false;

  bool operator==(const PlanExposure&) const = default;
};
static_assert(std::is_trivially_copyable_v<PlanExposure>);

struct PlanHeader {
  std::uint64_t hash = 0;  ///< of everything that must be the same on all ranks; a mismatch is an error by name
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint32_t ops = 0;
  std::uint32_t operands = 0;
  std::uint32_t exposures = 0;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  bool uses_generation = false;  ///< writes its flag line or scratch: the generation must be free
  bool uses_channels = false;
  bool synchronises = false;
  bool is_in_place = false;  ///< input and output lie as in_place_block says
  bool is_exchange = false;  ///< MOVE by a shortcut, SIGNAL, WAIT, MOVE by a shortcut: that and nothing else
  std::int32_t slices = 0;   ///< of the longest message; 0 without channels
  std::int64_t scratch_bytes = 0;
  std::int64_t input_bytes = 0;  ///< extent of the user's buffers as seen from the base of this segment
  std::int64_t output_bytes = 0;

  bool operator==(const PlanHeader&) const = default;
};
static_assert(std::is_trivially_copyable_v<PlanHeader>);

/// A plan in memory that somebody else owns. Trivially copyable; what executors walk, on CPU and GPU alike.
class PlanView {
 public:
  PlanView() = default;
  TUTTI_HOST_DEVICE explicit PlanView(const void* block) : block_(static_cast<const std::byte*>(block)) {}

  [[nodiscard]] TUTTI_HOST_DEVICE const PlanHeader& header() const {
    return *reinterpret_cast<const PlanHeader*>(block_);
  }
  [[nodiscard]] TUTTI_HOST_DEVICE const PlanOp* ops() const {
    return reinterpret_cast<const PlanOp*>(block_ + sizeof(PlanHeader));
  }
  [[nodiscard]] TUTTI_HOST_DEVICE const PlanOperand* operands() const {
    return reinterpret_cast<const PlanOperand*>(ops() + header().ops);
  }
  [[nodiscard]] TUTTI_HOST_DEVICE const PlanExposure* exposures() const {
    return reinterpret_cast<const PlanExposure*>(operands() + header().operands);
  }

 private:
  const std::byte* block_ = nullptr;
};
static_assert(std::is_trivially_copyable_v<PlanView>);

/// Owns a plan's block.
class Plan {
 public:
  Plan() = default;
  Plan(PlanHeader header, std::span<const PlanOp> ops, std::span<const PlanOperand> operands,
       std::span<const PlanExposure> exposures);

  [[nodiscard]] PlanView view() const { return PlanView(block_.data()); }
  [[nodiscard]] const PlanHeader& header() const { return view().header(); }
  [[nodiscard]] std::span<const PlanOp> ops() const { return {view().ops(), header().ops}; }
  [[nodiscard]] std::span<const PlanOperand> operands() const { return {view().operands(), header().operands}; }
  [[nodiscard]] std::span<const PlanExposure> exposures() const { return {view().exposures(), header().exposures}; }
  /// Destinations and sources of a MOVE.
  [[nodiscard]] std::span<const PlanOperand> destinations(const PlanOp& op) const {
    return operands().subspan(op.first_operand, op.destinations);
  }
  [[nodiscard]] std::span<const PlanOperand> sources(const PlanOp& op) const {
    return operands().subspan(op.first_operand + op.destinations, op.sources);
  }
  /// The ranks of a SIGNAL or WAIT.
  [[nodiscard]] RankSet ranks(const PlanOp& op) const { return operands()[op.first_operand].ranks; }
  [[nodiscard]] std::span<const std::uint64_t> block() const { return block_; }

 private:
  std::vector<std::uint64_t> block_;
};

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Binding: a schedule and a rank, with count, dtype, op, placement and buffer kind, become a plan.
//
// Binding does the following:
// - cuts units into bytes
// - cuts the call into segments that fit the channel's slots and the generation's scratch
// - cuts messages into slices
// - places small scratch in the flag line
// - stages exposed private buffers in scratch
// - drops what is empty or a copy onto itself
// It looks at this rank's program only; both ends of every transfer derive the same lengths because they derive them
// from the same table of units.
#pragma once

#include "impl/collective/blocks.h"
#include "impl/schedule/plan.h"
#include "impl/schedule/schedule.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti {

/// Whether peers can address the user's buffers. Part of the call: the same on all ranks.
enum class Buffers : std::uint8_t { private_, shared };
[[nodiscard]] std::string_view to_string(Buffers buffers);

/// What a communicator has for a plan to use.
struct Resources {
  int slots = 8;                            ///< of each channel
  std::int64_t slot_bytes = 16 * 1024;      ///< payload of one slot; a multiple of 64
  std::int64_t scratch_bytes = 256 * 1024;  ///< per rank and generation
  std::int64_t cache_bytes = 0;             ///< last-level cache: beyond it, stores to user buffers stream; 0: never
};

struct BindRequest {
  int rank = 0;
  Count count = 0;  ///< elements per block; unused in a v form
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  bool is_in_place = false;
  Buffers buffers = Buffers::private_;
  /// Bytes of a block: shared inputs up to this are staged, unless peers write outputs. 0: none.
  std::int64_t most_copied = 0;
  Resources resources;
  Count segment = 0;             ///< elements per block and segment; 0: the largest that fits
  int lanes = 1;                 ///< that share the segments out: no segment is longer than one lane's part
  bool keep_exposures = false;   ///< for the prover
  bool has_sound_steps = false;  ///< for the prover, after it has found no flaw in any step: flaw_of is not asked again
  /// A v form of the schedule's collective: this rank's blocks, as long as `bind` runs. It is one segment.
  const BlockTable* blocks = nullptr;
};

/// A call as a sequence of segments: `full` plans one after the other, then the tail where there is one. Segment i
/// works on the user's buffers shifted by i * segment_bytes; each is an operation of its own.
struct BoundCall {
  Plan full;
  Plan tail;
  Count full_segments = 0;
  bool has_tail = false;
  std::int64_t segment_bytes = 0;

  [[nodiscard]] Count segments() const { return full_segments + (has_tail ? 1 : 0); }
  [[nodiscard]] const Plan& plan(Count segment) const { return segment < full_segments ? full : tail; }
};

/// Errors:
/// - invalid_argument: rank, count, segment or shape out of range; blocks that check_blocks refuses, or blocks of a
///   schedule that does not take counts; a step of this rank that check.h refuses.
/// - resource with the numbers: a plan whose messages need more slots than the channel has, or whose smallest segment
///   needs more scratch than there is.
[[nodiscard]] Result<BoundCall> bind(const Schedule& schedule, const BindRequest& request);

}  // namespace tutti

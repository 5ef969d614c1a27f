// SPDX-License-Identifier: Apache-2.0
// Adding up the gradients of all ranks, in four ways that programs have:
//   per-parameter  an all_reduce for each tensor, one after the other, when the backward pass is over
//   buckets        the same for buckets of neighbouring tensors
//   overlapped     a bucket's all_reduce is posted as soon as the backward pass has filled it
//   ring           buckets again, by a ring all_reduce written from isend and recv, with chunks
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/group.h"
#include "harness/measure/runner.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::train {

enum class Way : std::uint8_t { per_parameter, buckets, overlapped, ring };
[[nodiscard]] std::string_view to_string(Way way);
/// Names with commas between them, or all. Errors: invalid_argument naming the nearest right one.
[[nodiscard]] Result<std::vector<Way>> parse_ways(std::string_view text);

/// Neighbouring gradients that one call adds up.
struct Piece {
  std::size_t first = 0;
  std::size_t count = 0;

  bool operator==(const Piece&) const = default;
};
/// In the order in which a backward pass fills them. A bucket takes tensors until one more would make it larger than
/// `bucket_bytes`; a tensor that is larger has a bucket of its own.
[[nodiscard]] std::vector<Piece> pieces_of(Way way, std::size_t bucket_bytes);

/// Whether an all_reduce adds as a serial run does, from the first rank to the last, and so gives its bits. It has the
/// label keeps_order, and every sum is one MOVE over all ranks: the label alone allows (0 + 1) + (2 + 3) too. Errors:
/// those of the proof.
[[nodiscard]] Result<bool> adds_serially(const Algorithm& algorithm, int ranks);

/// One call as a trace has it (README.md).
struct TracedCall {
  std::size_t step = 0;
  std::string_view operation;
  std::size_t bytes = 0;
  double gap_us = 0;  ///< since the call before it was over, or, of the first one, since the training began
};

class Averager {
 public:
  struct Plan {
    Way way = Way::buckets;
    std::vector<Piece> pieces;
    std::vector<const Algorithm*> algorithms;  ///< [piece]; null: the system chooses
    Buffers buffers = Buffers::private_;
  };
  /// `gradients[kParameters]` are in the group's memory of that kind. All outlive the averager.
  Averager(Group& group, const Runner& runner, Plan plan, std::span<float> gradients);

  /// Errors: unavailable where the system has no such call.
  [[nodiscard]] Status supports() const;
  /// From here on the calls of a step are noted.
  void trace_into(std::vector<TracedCall>& calls) { calls_ = &calls; }
  void trace_nothing() { calls_ = nullptr; }

  void begin_step(std::size_t step);
  /// Gradients [0, count) are complete.
  Status on_filled(std::size_t count);
  /// What is in flight gets on.
  Status on_pause();
  /// The gradients are the sums of all ranks on return. Errors: those of the system.
  Status finish();

 private:
  [[nodiscard]] GroupCall call_for(std::size_t piece) const;
  Status post(std::size_t piece);
  Status wait(Pending& pending) const;
  Status reduce_in_ring(const Piece& piece);
  /// Sends one chunk to the next rank while `into` comes from the one before.
  Status pass_on(std::span<const float> chunk, std::span<float> into);
  void note(std::string_view operation, std::size_t count);
  void note_end();

  Group& group_;
  const Runner& runner_;
  Plan plan_;
  std::span<float> gradients_;
  std::vector<Operation> operations_;  // [piece]
  std::vector<std::unique_ptr<Pending>> pending_;
  std::size_t posted_ = 0;
  std::vector<float> received_;  // of a ring
  std::vector<TracedCall>* calls_ = nullptr;
  std::size_t step_ = 0;
  std::int64_t over_ns_ = 0;  // the last call
};

}  // namespace tutti::harness::train

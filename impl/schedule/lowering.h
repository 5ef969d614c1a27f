// SPDX-License-Identifier: Apache-2.0
// What the two halves of lowering share: lower.cc walks the program and lowers SIGNAL and WAIT, lower_move.cc lowers
// MOVE and appends the ops. For nobody else.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "impl/schedule/lower.h"
#include "impl/schedule/segment.h"
#include "impl/schedule/unit_table.h"

namespace tutti {

/// One operand of a MOVE after staging: pieces in order, the same on every rank of the set. A channel is one stream.
struct Located {
  Space space;
  RankSet ranks;
  Pieces pieces;
};

/// Finds the bytes of an operand's stream, position after position.
class Cursor {
 public:
  explicit Cursor(const Located& located) : located_(&located) {}

  [[nodiscard]] const Located& located() const { return *located_; }
  /// Where the byte at `position` lies. Requires: positions do not fall from call to call.
  [[nodiscard]] std::int64_t offset_at(std::int64_t position) {
    const Pieces& pieces = located_->pieces;
    while (piece_ < pieces.size() && position - begin_ >= pieces[piece_].bytes) begin_ += pieces[piece_++].bytes;
    if (piece_ < pieces.size()) return pieces[piece_].offset + position - begin_;
    return pieces.empty() ? 0 : pieces.back().offset + pieces.back().bytes;
  }

 private:
  const Located* located_;
  std::size_t piece_ = 0;
  std::int64_t begin_ = 0;  ///< of the piece, in the stream
};

/// One rank's program on its way to a plan.
class Lowering {
 public:
  explicit Lowering(const LowerRequest& lower);

  Result<Plan> run();

 private:
  [[nodiscard]] std::int64_t extent(Space space) const;
  /// Bytes of `set` in the user's buffer of `rank`: in a v form also of a rank whose blocks' places are not known here.
  [[nodiscard]] std::int64_t user_bytes(Space space, int rank, const UnitSet& set) const;
  [[nodiscard]] int blocks_of(Space space, int rank) const {
    return space == Space::input ? input_blocks(schedule_.problem, rank) : output_blocks(schedule_.problem, rank);
  }
  [[nodiscard]] static bool is_user(Space space) { return space == Space::input || space == Space::output; }
  /// Where `set` lies in the user's buffer of `rank`, and in that buffer's mirror.
  [[nodiscard]] Pieces user_pieces(Space space, int rank, const UnitSet& set) const;
  [[nodiscard]] Pieces mirror_pieces(Space space, int rank, const UnitSet& set) const;

  // ---- SIGNAL and WAIT: lower.cc

  /// Units of mine that a peer may write. Where buffers are staged they arrive in the mirror, and are copied out when a
  /// later phase of that peer has been waited for.
  struct Incoming {
    Space space;
    UnitSet units;
    int phase;
  };
  /// The same bytes in the user's buffer and in its mirror.
  struct Staged {
    Pieces user;
    Pieces mirror;
  };

  void lower_signal(const Step& step);
  void lower_wait(const Step& step);
  [[nodiscard]] PlanOp sync_op(const Step& step);
  [[nodiscard]] static UnitSet exposed_to(const Exposure& exposure, int target);
  void append(Staged& staged, Space space, const UnitSet& set) const;
  void copy_exposed_reads(const Step& step);
  void expect_exposed_writes(const Step& step);
  void keep(const Step& step, const Exposure& exposure, bool is_write);

  // ---- MOVE: lower_move.cc

  void lower_move(const Step& step);
  /// How many slices of each MOVE go through in a turn.
  [[nodiscard]] int slices_per_turn() const;
  /// Puts the ops of the chain's MOVEs in the order of their turns.
  void take_turns();
  /// A MOVE within my memory, for staging; nothing where it is empty.
  void copy_local(const Located& destination, const Located& source);
  /// Every MOVE has an operand in the user's memory; its length is the others'.
  [[nodiscard]] std::int64_t length_of(const Step& step) const;
  /// Requires: not a channel.
  [[nodiscard]] Located locate_memory(const Operand& operand, bool in_mirror) const;
  /// Appends the operand; where it is staged, peers' parts of a set move to their mirrors and mine stays, in set order.
  void locate(const Operand& operand, std::vector<Located>& list) const;
  /// In place, the bytes from the output of `rank` to its input.
  [[nodiscard]] std::int64_t input_shift(int rank) const;
  [[nodiscard]] bool is_same_memory(const Located& a, const Located& b) const;
  /// Whether a MOVE with these sources multiplies one of them by this rank's factor.
  [[nodiscard]] bool scales(const std::vector<Located>& sources) const;
  void drop_copies_onto_itself(std::vector<Located>& destinations, const std::vector<Located>& sources) const;
  /// Where one op ends and the next begins: at the ends of pieces and of slices.
  [[nodiscard]] const std::vector<std::int64_t>& cuts_of(std::initializer_list<const std::vector<Located>*> lists,
                                                         bool has_channel);
  /// Appends the ops of a MOVE of `move_bytes_`.
  void emit(const std::vector<Located>& destinations, const std::vector<Located>& sources, int marks);
  std::uint8_t append_operands(std::vector<Cursor>& list, std::int64_t position, std::int64_t slice_begin);

  const Schedule& schedule_;
  const BindRequest& request_;
  int rank_;
  int ranks_;
  UnitTable table_;
  ScratchLayout layout_;
  bool is_staged_;
  bool streams_ = false;
  bool is_identified_ = false;   ///< a SIGNAL has published the plan's hash
  int index_ = 0;                ///< of the step being lowered
  std::int64_t move_bytes_ = 0;  ///< of the MOVE, copy or exposure being lowered
  // Of it; kept for their memory.
  std::vector<Located> destinations_;
  std::vector<Located> sources_;
  std::vector<Cursor> to_;
  std::vector<Cursor> from_;
  std::vector<std::int64_t> cuts_;
  std::vector<std::size_t> chain_;               ///< where the ops of each MOVE of the present chain begin
  std::vector<std::vector<Incoming>> incoming_;  ///< by peer; empty before the first one
  PlanHeader header_;
  std::vector<PlanOp> ops_;
  std::vector<PlanOperand> operands_;
  std::vector<PlanExposure> exposures_;
};

}  // namespace tutti

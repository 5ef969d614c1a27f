// SPDX-License-Identifier: Apache-2.0
// What the parts of `refines` share: refines.cc walks the program and its SIGNALs and WAITs, refine_moves.cc the ops of
// MOVEs, refine_places.cc says where all of it lies. For nobody else.
#pragma once

#include <array>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/refines.h"
#include "impl/prove/unit_bytes.h"

namespace tutti {

[[nodiscard]] inline bool is_user_space(Space space) { return space == Space::input || space == Space::output; }
[[nodiscard]] inline const char* name_of_space(Space space) {
  constexpr std::array kNames{"input", "output", "scratch", "channel", "flag line"};
  return kNames[static_cast<std::size_t>(space)];
}
[[nodiscard]] inline bool is_same_set(const RankSet& a, const RankSet& b) {
  return a.first == b.first && a.n == b.n && (a.n < 2 || a.stride == b.stride);
}

/// What one operand of an op should be: of a step, or of a copy between a user's buffer and its mirror.
struct ExpectedOperand {
  Space space = Space::channel;
  RankSet ranks;
  UnitBytes bytes = {};  ///< unused of a channel

  [[nodiscard]] bool is_of_one() const { return space != Space::channel && ranks.n == 1; }
};

/// A MOVE on its way: what its ops should be, and how far they have come.
struct ExpectedMove {
  int step = 0;
  std::vector<ExpectedOperand> destinations;
  std::vector<ExpectedOperand> sources;
  std::int64_t bytes = 0;
  std::uint8_t marks = 0;  ///< those that all its ops have, or none
  bool has_channel = false;
  std::int64_t done = 0;
  bool is_over = false;
};

class Refinement {
 public:
  Refinement(const Schedule& schedule, const BoundPlan& bound);

  std::vector<Finding> run() {
    if (check_header() && walk()) check_end();
    return findings_.take();
  }

 private:
  /// What a peer may write to the mirror, until a later phase of it has been waited for.
  struct Incoming {
    Space space;
    UnitSet units;
    int phase;
  };

  template <class... Args>
  bool refuse(std::int64_t step, fmt::format_string<Args...> format, Args&&... args) {
    findings_.add(rank_, step, format, std::forward<Args>(args)...);
    return false;
  }

  // ---- places

  void place_scratch();
  [[nodiscard]] bool has_channels() const { return schedule_.shape.largest_message > 0; }
  [[nodiscard]] int blocks_of(Space space, int rank) const {
    return space == Space::input ? input_blocks(problem_, rank) : output_blocks(problem_, rank);
  }
  [[nodiscard]] std::int64_t most_blocks(Space space) const;
  [[nodiscard]] int slices_of_longest() const;
  [[nodiscard]] int slices_per_turn() const;
  [[nodiscard]] UnitPlaces user_places(Space space, int rank) const;
  [[nodiscard]] UnitPlaces mirror_places(Space space, int rank) const;
  [[nodiscard]] UnitPlaces scratch_places(std::int64_t bytes) const;
  [[nodiscard]] std::int64_t input_shift(int rank) const;

  // ---- the program

  bool check_header();
  bool check_extent(Space space, std::int64_t stated);
  bool walk();
  bool check_end();
  bool take_sync(const Step& step, int index);
  bool take_exposures(const Step& step, int index, const Exposure& exposure, bool is_write);
  bool take_copies_before(const Step& step, int index);
  bool take_copies_after(const Step& step, int index);
  bool note_incoming(const Step& step, int index);
  bool take_copy(int index, Space to, Space from, const std::vector<UnitSet>& units, const UnitPlaces& user,
                 const UnitPlaces& mirror);

  // ---- MOVE

  bool take_moves(int first);
  bool expect(const Step& step, int index, ExpectedMove& move);
  bool expect_operand(const Operand& operand, int index, std::int64_t bytes, std::vector<ExpectedOperand>& list);
  [[nodiscard]] std::int64_t length_of(const Step& step) const;
  [[nodiscard]] bool is_same_memory(const ExpectedOperand& a, const ExpectedOperand& b) const;
  void leave_out_copies_onto_itself(const Step& step, ExpectedMove& move) const;
  bool take_move_op(ExpectedMove& move);
  bool check_slice(const ExpectedMove& move, const PlanOp& op);
  bool check_marks(const ExpectedMove& move, const PlanOp& op);
  bool check_operand(const ExpectedMove& move, const PlanOp& op, ExpectedOperand& expected, const PlanOperand& is);

  [[nodiscard]] const PlanOp* next_op() const { return op_ < plan_.ops().size() ? &plan_.ops()[op_] : nullptr; }
  [[nodiscard]] bool has_operands(const PlanOp& op, std::size_t count) const {
    return op.first_operand + count <= plan_.operands().size();
  }

  const Schedule& schedule_;
  const Problem& problem_;
  const BindRequest& request_;
  const Plan& plan_;
  const PlanHeader& header_;
  int rank_;
  std::int64_t element_bytes_;
  std::int64_t segment_bytes_;  ///< of each block
  std::int64_t user_stride_;
  bool must_stage_;
  bool is_staged_;
  std::int64_t room_ = 0;  ///< of a scratch unit
  std::int64_t room_stride_ = 0;
  std::int64_t input_mirror_ = 0;
  std::int64_t output_mirror_ = 0;
  std::int64_t scratch_bytes_ = 0;
  bool is_in_line_ = false;
  int slices_ = 0;  ///< of the longest message
  Findings findings_;
  std::size_t op_ = 0;
  std::size_t exposure_ = 0;
  bool has_signalled_ = false;
  bool takes_generation_ = false;
  bool has_channel_ops_ = false;
  std::vector<Step> chain_;
  std::vector<ExpectedMove> moves_;
  std::vector<std::vector<Incoming>> incoming_;    ///< by peer; empty before the first one
  std::array<std::vector<bool>, 2> copied_units_;  ///< of the input (output): copied to the mirror by a SIGNAL
};

}  // namespace tutti

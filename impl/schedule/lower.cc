// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/lower.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "impl/schedule/segment.h"
#include "impl/schedule/unit_table.h"

namespace tutti {
namespace {

/// One operand of a MOVE after staging: pieces in order, the same on every rank of the set. A channel is one stream.
struct Located {
  Space space;
  RankSet ranks;
  std::vector<Piece> pieces;
};

/// A write exposure whose data arrives in the mirror and is copied out when the target's later phase has been waited
/// for.
struct Incoming {
  int target;
  int phase;
  std::vector<Piece> user;
  std::vector<Piece> mirror;
};

std::int64_t total_bytes(const std::vector<Piece>& pieces) {
  std::int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.bytes;
  return total;
}

/// The byte of `pieces`, taken as one stream, at `position`.
std::int64_t offset_at(const std::vector<Piece>& pieces, std::int64_t position) {
  for (const Piece& piece : pieces) {
    if (position < piece.bytes) return piece.offset + position;
    position -= piece.bytes;
  }
  return pieces.empty() ? 0 : pieces.back().offset + pieces.back().bytes;
}

class Lowering {
 public:
  explicit Lowering(const LowerRequest& lower)
      : schedule_(lower.schedule),
        request_(lower.request),
        rank_(lower.request.rank),
        ranks_(lower.schedule.problem.ranks),
        table_({.units_per_block = lower.schedule.shape.units_per_block,
                .segment = lower.segment,
                .block = lower.request.count,
                .element_bytes = static_cast<std::int64_t>(size_of(lower.request.dtype))}),
        layout_(scratch_layout(lower.schedule, lower.request, table_)),
        is_staged_(tutti::is_staged(lower.schedule, lower.request)) {
    header_.hash = lower.hash;
    header_.rank = rank_;
    header_.ranks = ranks_;
    header_.dtype = request_.dtype;
    header_.op = request_.op;
    header_.is_in_place = request_.is_in_place;
    header_.synchronises = schedule_.synchronises;
    header_.slices = slices_of(schedule_, request_, table_);
    header_.scratch_bytes = layout_.bytes;
    header_.input_bytes = extent(input_blocks(schedule_.problem, rank_));
    header_.output_bytes = extent(output_blocks(schedule_.problem, rank_));
    const std::int64_t touched = ranks_ * (header_.output_bytes + (request_.is_in_place ? 0 : header_.input_bytes));
    streams_ = !is_staged_ && request_.resources.cache_bytes > 0 && touched > request_.resources.cache_bytes;
  }

  Plan run() {
    const int count = schedule_.step_count(rank_);
    for (index_ = 0; index_ < count; ++index_) {
      const Step step = schedule_.step(rank_, index_);
      switch (step.verb) {
        case Verb::signal:
          lower_signal(step);
          break;
        case Verb::wait:
          lower_wait(step);
          break;
        case Verb::move:
          lower_move(step);
          break;
      }
    }
    return Plan(header_, ops_, operands_, exposures_);
  }

 private:
  [[nodiscard]] std::int64_t extent(int blocks) const {
    return blocks == 0 ? 0 : (blocks - 1) * table_.user_stride() + table_.segment_bytes();
  }
  [[nodiscard]] int blocks_of(Space space, int rank) const {
    return space == Space::input ? input_blocks(schedule_.problem, rank) : output_blocks(schedule_.problem, rank);
  }
  [[nodiscard]] static bool is_user(Space space) { return space == Space::input || space == Space::output; }

  [[nodiscard]] std::vector<Piece> user_pieces(Space space, int rank, const UnitSet& set) const {
    return table_.pieces(set, blocks_of(space, rank), table_.user_stride());
  }
  [[nodiscard]] std::vector<Piece> mirror_pieces(Space space, int rank, const UnitSet& set) const {
    std::vector<Piece> pieces = table_.pieces(set, blocks_of(space, rank), table_.mirror_stride());
    for (Piece& piece : pieces) piece.offset += space == Space::input ? layout_.input_mirror : layout_.output_mirror;
    return pieces;
  }

  // ---- SIGNAL and WAIT

  void lower_signal(const Step& step) {
    if (step.only_closes_reads && is_staged_) return;
    if (is_staged_) {
      if (is_user(step.read.space)) copy_exposed_reads(step);
      if (is_user(step.write.space)) expect_exposed_writes(step);
    }
    PlanOp op = sync_op(step);
    const auto exposes_user = [this](const Exposure& e) { return !e.is_empty() && is_user(e.space) && !is_staged_; };
    if (exposes_user(step.read) || exposes_user(step.write)) op.marks |= mark_exposes;
    if (request_.keep_exposures) {
      keep(step, step.read, false);
      keep(step, step.write, true);
    }
    ops_.push_back(op);
    header_.uses_generation = true;
  }

  void lower_wait(const Step& step) {
    if (step.only_closes_reads && is_staged_) return;
    ops_.push_back(sync_op(step));
    std::vector<Piece> user, mirror;
    for (int i = 0; i < step.ranks.n; ++i) {
      const int peer = step.ranks.at(i, ranks_);
      std::erase_if(incoming_, [&](const Incoming& in) {
        if (in.target != peer || in.phase >= step.phase) return false;
        for (const Piece& piece : in.user) UnitTable::append(user, piece);
        for (const Piece& piece : in.mirror) UnitTable::append(mirror, piece);
        return true;
      });
    }
    copy_local({Space::output, only(rank_), user}, {Space::scratch, only(rank_), mirror});
  }

  PlanOp sync_op(const Step& step) {
    PlanOp op{.verb = step.verb, .phase = static_cast<std::uint16_t>(step.phase)};
    op.first_operand = static_cast<std::uint32_t>(operands_.size());
    op.step = static_cast<std::uint32_t>(index_);
    operands_.push_back({.offset = 0, .ranks = step.ranks, .space = Space::line});
    return op;
  }

  [[nodiscard]] UnitSet exposed_to(const Exposure& exposure, int target) const {
    UnitSet set = exposure.units;
    set.start += target * exposure.per_target;
    return set;
  }

  /// Calls `visit(target, units)` for each target; once only where all targets get the same units.
  template <class Visit>
  void for_each_exposed(const Step& step, const Exposure& exposure, Visit visit) const {
    const int n = exposure.per_target == 0 ? std::min(step.ranks.n, 1) : step.ranks.n;
    for (int i = 0; i < n; ++i) {
      const int target = step.ranks.at(i, ranks_);
      visit(target, exposed_to(exposure, target));
    }
  }

  void copy_exposed_reads(const Step& step) {
    std::vector<Piece> user, mirror;
    for_each_exposed(step, step.read, [&](int, const UnitSet& set) {
      for (const Piece& piece : user_pieces(step.read.space, rank_, set)) UnitTable::append(user, piece);
      for (const Piece& piece : mirror_pieces(step.read.space, rank_, set)) UnitTable::append(mirror, piece);
    });
    copy_local({Space::scratch, only(rank_), mirror}, {step.read.space, only(rank_), user});
  }

  void expect_exposed_writes(const Step& step) {
    for (int i = 0; i < step.ranks.n && !step.write.is_empty(); ++i) {
      const int target = step.ranks.at(i, ranks_);
      const UnitSet set = exposed_to(step.write, target);
      incoming_.push_back({.target = target,
                           .phase = step.phase,
                           .user = user_pieces(step.write.space, rank_, set),
                           .mirror = mirror_pieces(step.write.space, rank_, set)});
    }
  }

  void keep(const Step& step, const Exposure& exposure, bool is_write) {
    if (exposure.is_empty()) return;
    const auto op = static_cast<std::uint32_t>(ops_.size());
    for (int i = 0; i < step.ranks.n; ++i) {
      const int target = step.ranks.at(i, ranks_);
      const Operand exposed{.space = exposure.space, .ranks = only(rank_), .units = exposed_to(exposure, target)};
      if (!is_user(exposure.space)) move_bytes_ = exposure.units.length * table_.largest_unit_bytes();
      const Located located = locate_memory(exposed, is_user(exposure.space) && is_staged_);
      for (const Piece& piece : located.pieces) {
        exposures_.push_back({.op = op,
                              .target = target,
                              .offset = piece.offset,
                              .bytes = piece.bytes,
                              .space = located.space,
                              .is_write = is_write});
      }
    }
  }

  // ---- MOVE

  void lower_move(const Step& step) {
    move_bytes_ = length_of(step);
    std::vector<Located> destinations, sources;
    for (const Operand& operand : step.destinations) locate(operand, destinations);
    for (const Operand& operand : step.sources) locate(operand, sources);
    drop_copies_onto_itself(destinations, sources);
    if (!destinations.empty()) emit(destinations, sources, step.is_final ? mark_final : 0);
  }

  /// Every MOVE has an operand in the user's memory; its length is the others'.
  [[nodiscard]] std::int64_t length_of(const Step& step) const {
    const auto length = [this](const Operands<4>& list) -> std::optional<std::int64_t> {
      for (const Operand& operand : list) {
        if (is_user(operand.space)) return total_bytes(user_pieces(operand.space, operand.ranks.first, operand.units));
      }
      return std::nullopt;
    };
    const auto destination = length(step.destinations);
    const auto bytes = destination ? destination : length(step.sources);
    TUTTI_ASSERT(bytes.has_value(), "{} rank {} step {}: a MOVE without user memory has no length", schedule_.name,
                 rank_, index_);
    return *bytes;
  }

  [[nodiscard]] Located locate_memory(const Operand& operand, bool in_mirror) const {
    if (is_user(operand.space)) {
      const int owner = operand.ranks.first;
      if (in_mirror) return {Space::scratch, operand.ranks, mirror_pieces(operand.space, owner, operand.units)};
      return {operand.space, operand.ranks, user_pieces(operand.space, owner, operand.units)};
    }
    std::vector<Piece> pieces;
    UnitTable::append(pieces, {.offset = operand.units.start * layout_.unit_stride, .bytes = move_bytes_});
    return {layout_.is_in_line ? Space::line : Space::scratch, operand.ranks, pieces};
  }

  /// Appends the operand; where it is staged, peers' parts of a set move to their mirrors and mine stays, in set order.
  void locate(const Operand& operand, std::vector<Located>& list) const {
    if (operand.space == Space::channel) {
      list.push_back({Space::channel, operand.ranks, {{.offset = 0, .bytes = move_bytes_}}});
      return;
    }
    if (!is_user(operand.space) || !is_staged_) {
      list.push_back(locate_memory(operand, false));
      return;
    }
    const auto append = [&](int begin, int end, bool is_mine) {
      if (begin == end) return;
      Operand part = operand;
      part.ranks = {.first = operand.ranks.at(begin, ranks_), .stride = operand.ranks.stride, .n = end - begin};
      list.push_back(locate_memory(part, !is_mine));
    };
    int mine = 0;
    while (mine < operand.ranks.n && operand.ranks.at(mine, ranks_) != rank_) ++mine;
    append(0, mine, false);
    if (mine == operand.ranks.n) return;
    append(mine, mine + 1, true);
    append(mine + 1, operand.ranks.n, false);
  }

  [[nodiscard]] bool is_same_memory(const Located& a, const Located& b) const {
    if (a.ranks.n != 1 || b.ranks.n != 1 || a.ranks.first != b.ranks.first) return false;
    if (a.space == Space::channel || b.space == Space::channel) return false;
    const bool is_aliased = request_.is_in_place && is_user(a.space) && is_user(b.space);
    if (a.space != b.space && !is_aliased) return false;
    return std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
                      [](const Piece& x, const Piece& y) { return x.offset == y.offset && x.bytes == y.bytes; });
  }

  void drop_copies_onto_itself(std::vector<Located>& destinations, const std::vector<Located>& sources) const {
    if (sources.size() != 1 || sources[0].ranks.n != 1) return;
    std::erase_if(destinations, [&](const Located& destination) { return is_same_memory(destination, sources[0]); });
  }

  void copy_local(const Located& destination, const Located& source) {
    move_bytes_ = total_bytes(source.pieces);
    if (move_bytes_ > 0) emit({destination}, {source}, 0);
  }

  /// One op per piece that is contiguous in every operand and lies in one slice.
  void emit(const std::vector<Located>& destinations, const std::vector<Located>& sources, int marks) {
    std::vector<std::int64_t> cuts{0, move_bytes_};
    bool has_channel = false;
    for (const auto* list : {&destinations, &sources}) {
      for (const Located& located : *list) {
        has_channel |= located.space == Space::channel;
        std::int64_t position = 0;
        for (const Piece& piece : located.pieces) cuts.push_back(position += piece.bytes);
      }
    }
    const std::int64_t slot = request_.resources.slot_bytes;
    for (std::int64_t at = slot; has_channel && at < move_bytes_; at += slot) cuts.push_back(at);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (move_bytes_ == 0 && has_channel) cuts.push_back(0);  // one empty token
    header_.uses_channels |= has_channel;

    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::int64_t slice_begin = cuts[i] / slot * slot;
      const std::int64_t slice_end = std::min(move_bytes_, slice_begin + slot);
      PlanOp op{.verb = Verb::move, .marks = static_cast<std::uint8_t>(marks)};
      op.bytes = cuts[i + 1] - cuts[i];
      op.first_operand = static_cast<std::uint32_t>(operands_.size());
      op.step = static_cast<std::uint32_t>(index_);
      op.destinations = append_operands(destinations, cuts[i], slice_begin);
      op.sources = append_operands(sources, cuts[i], slice_begin);
      if (has_channel) {
        op.has_channel = 1;
        op.slice_bytes = slice_end - slice_begin;
        if (cuts[i] == slice_begin) op.marks |= mark_opens;
        if (cuts[i + 1] == slice_end) op.marks |= mark_closes;
      }
      const PlanOperand* const operand = operands_.data() + op.first_operand;
      const bool is_mine = op.destinations == 1 && op.sources == 1 && operand[0].is_mine && operand[1].is_mine;
      op.is_small_copy = is_mine && op.bytes <= kLineBytes && (marks & mark_final) == 0 ? 1 : 0;
      if (streams_ && writes_output(destinations)) op.marks |= mark_streams;
      ops_.push_back(op);
    }
  }

  [[nodiscard]] static bool writes_output(const std::vector<Located>& destinations) {
    return std::any_of(destinations.begin(), destinations.end(),
                       [](const Located& d) { return d.space == Space::output; });
  }

  std::uint8_t append_operands(const std::vector<Located>& list, std::int64_t position, std::int64_t slice_begin) {
    for (const Located& located : list) {
      const bool is_channel = located.space == Space::channel;
      const bool is_mine = !is_channel && located.ranks.n == 1 && located.ranks.first == rank_;
      const std::int64_t offset = is_channel ? position - slice_begin : offset_at(located.pieces, position);
      operands_.push_back({.offset = offset, .ranks = located.ranks, .space = located.space, .is_mine = is_mine});
      header_.uses_generation |= is_mine && !is_user(located.space);
    }
    return static_cast<std::uint8_t>(list.size());
  }

  const Schedule& schedule_;
  const BindRequest& request_;
  int rank_;
  int ranks_;
  UnitTable table_;
  ScratchLayout layout_;
  bool is_staged_;
  bool streams_ = false;
  int index_ = 0;                ///< of the step being lowered
  std::int64_t move_bytes_ = 0;  ///< of the MOVE, copy or exposure being lowered
  std::vector<Incoming> incoming_;
  PlanHeader header_;
  std::vector<PlanOp> ops_;
  std::vector<PlanOperand> operands_;
  std::vector<PlanExposure> exposures_;
};

}  // namespace

Plan lower(const LowerRequest& request) { return Lowering(request).run(); }

}  // namespace tutti

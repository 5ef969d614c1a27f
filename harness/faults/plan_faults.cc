// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/plan_faults.h"

#include <algorithm>
#include <functional>
#include <random>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/open_plan.h"
#include "impl/communicator/plan_cache.h"

namespace tutti::harness::faults {
namespace {

using OpenOp = OpenPlan::OpenOp;

/// Bytes [first, first + bytes) of a buffer.
struct Part {
  std::int64_t first = 0;
  std::int64_t bytes = 0;
  [[nodiscard]] std::int64_t end() const { return first + bytes; }
};

/// What others read: a slot, or staged in scratch or a flag's line.
bool is_on_the_way(const PlanOperand& operand) {
  return operand.space == Space::channel || operand.space == Space::scratch || operand.space == Space::line;
}

PlanOperand mine(Space space, std::int64_t offset, int rank) {
  return {.offset = offset, .ranks = only(rank), .space = space, .is_mine = true};
}

/// The faults of one plan. Each returns whether it found a place.
class Breaker {
 public:
  Breaker(const PlanFault& fault, int rank, OpenPlan& plan, BoundEntry& bound)
      : operation_(fault.operation),
        is_in_place_(fault.is_in_place),
        rank_(rank),
        plan_(plan),
        bound_(bound),
        random_(fault.seed) {
    element_ = static_cast<std::int64_t>(size_of(operation_.dtype));
    for (int block = 0; block < output_blocks(operation_.problem, rank); ++block) {
      const Place place = operation_.output_place(rank, block);
      blocks_.push_back({.first = place.first * element_, .bytes = place.count * element_});
    }
  }

  bool apply(Fault fault) {
    switch (fault) {
      case Fault::flipped_bit:
        return flip_on_the_way();
      case Fault::dropped_message:
        return drop_message();
      case Fault::doubled_contribution:
        return double_contribution();
      case Fault::swapped_blocks:
        return swap_blocks();
      case Fault::missing_rank:
        return miss_rank();
      case Fault::write_past_end:
        return write_beyond(operation_.output_elements(rank_) * element_);
      case Fault::write_before_start:
        return write_beyond(-element_);
      case Fault::overwritten_input:
        return overwrite_input();
      case Fault::one_rank_differs:
        return differ();
      case Fault::narrow_type:
        return narrow();
      default:
        return false;
    }
  }

 private:
  [[nodiscard]] std::size_t draw(std::size_t below) { return random_() % below; }
  void replace_kernel(BrokenKernel broken) {
    bound_.kernel = broken.kernel;
    bound_.kernel_context = std::move(broken.context);
  }
  /// A MOVE without sources: the kernel then flips a bit of its destination.
  [[nodiscard]] OpenOp flip_of(PlanOperand destination) const {
    return {.op = {.verb = Verb::move, .destinations = 1, .bytes = element_}, .operands = {destination}};
  }

  bool flip_on_the_way() {
    const auto found = plan_.ops_where([](OpenOp& one) { return one.moves(); });
    if (found.empty()) return false;
    const std::size_t at = found[draw(found.size())];
    OpenOp& op = plan_.ops[at];
    OpenOp flip = flip_of(op.operands[draw(op.op.destinations)]);
    flip.op.has_channel = op.op.has_channel;
    flip.op.rest_bytes = op.op.rest_bytes;
    flip.operands[0].offset +=
        static_cast<std::int64_t>(draw(static_cast<std::size_t>(op.op.bytes / element_))) * element_;
    OpenOp closing = op;  // copies nothing more, and closes what the MOVE has opened
    closing.op.bytes = 0;
    closing.op.marks &= static_cast<std::uint8_t>(~mark_opens);
    op.op.marks &= static_cast<std::uint8_t>(~mark_closes);
    plan_.insert(at + 1, std::move(closing));
    plan_.insert(at + 1, std::move(flip));
    replace_kernel(flipping_kernel(bound_.kernel, static_cast<unsigned>(draw(static_cast<std::size_t>(8 * element_)))));
    return true;
  }

  bool differ() {
    std::erase_if(blocks_, [](const Part& block) { return block.bytes == 0; });
    if (blocks_.empty()) return false;
    const Part& block = blocks_[draw(blocks_.size())];
    const auto element = static_cast<std::int64_t>(draw(static_cast<std::size_t>(block.bytes / element_)));
    plan_.ops.push_back(flip_of(mine(Space::output, block.first + element * element_, rank_)));
    replace_kernel(flipping_kernel(bound_.kernel, 0));
    return true;
  }

  bool drop_message() {
    const auto found = plan_.ops_where([](OpenOp& one) {
      return one.moves() &&
             std::ranges::any_of(one.operands.begin(), one.operands.begin() + one.op.destinations, is_on_the_way);
    });
    if (found.empty()) return false;
    plan_.ops[found[draw(found.size())]].op.bytes = 0;
    return true;
  }

  bool double_contribution() {
    const auto found = plan_.ops_where([](OpenOp& one) { return one.moves() && one.values() >= 2; });
    if (found.empty()) return false;
    OpenOp& op = plan_.ops[found[draw(found.size())]];
    const bool scales = (op.op.marks & mark_scales) != 0;
    std::vector<PlanOperand> sources(op.operands.begin() + op.op.destinations, op.operands.end());
    // A slot is released once; a factor is given to one source only.
    std::erase_if(sources, [scales](const PlanOperand& one) {
      return one.space == Space::channel || (scales && one.space == Space::input && one.is_mine);
    });
    if (sources.empty()) return false;
    PlanOperand twice = sources[draw(sources.size())];
    if (twice.ranks.n > 1) {
      twice.ranks = only(
          twice.ranks.at(static_cast<int>(draw(static_cast<std::size_t>(twice.ranks.n))), operation_.problem.ranks));
    }
    op.operands.push_back(twice);
    ++op.op.sources;
    return true;
  }

  /// Blocks of different lengths change places as far as the shorter one goes.
  bool swap_blocks() {
    std::erase_if(blocks_, [](const Part& block) { return block.bytes == 0; });
    Part one, other;
    if (blocks_.size() >= 2) {
      std::ranges::shuffle(blocks_, random_);
      one = blocks_[0];
      other = blocks_[1];
      one.bytes = other.bytes = std::min(one.bytes, other.bytes);
    } else if (blocks_.size() == 1 && blocks_[0].bytes >= 2 * element_) {
      const std::int64_t half = blocks_[0].bytes / element_ / 2 * element_;
      one = {.first = blocks_[0].first, .bytes = half};
      other = {.first = blocks_[0].first + half, .bytes = half};
    } else {
      return false;
    }
    for (const Part& part : {one, other}) {
      plan_.cut_output_at(part.first);
      plan_.cut_output_at(part.end());
    }
    bool is_found = false;
    for (OpenOp& op : plan_.ops) {
      if (!op.moves()) continue;
      for (PlanOperand& operand : op.operands) {
        if (!is_my_output(operand)) continue;
        const auto lies_in = [&](const Part& part) {
          return part.first <= operand.offset && operand.offset < part.end();
        };
        const std::int64_t apart = lies_in(one)     ? other.first - one.first
                                   : lies_in(other) ? one.first - other.first
                                                    : 0;
        operand.offset += apart;
        is_found |= apart != 0;
      }
    }
    return is_found;
  }

  bool miss_rank() {
    if (!has_data(operation_.problem.collective)) return wait_for_nobody();
    return combines(operation_.problem) ? miss_source() : miss_block();
  }

  bool wait_for_nobody() {
    bool is_found = false;
    for (OpenOp& op : plan_.ops) {
      if (op.op.verb != Verb::wait) continue;
      op.operands[0].ranks.n = 0;
      is_found = true;
    }
    return is_found;
  }

  /// Leaves out what one rank adds, in every MOVE that adds it here.
  bool miss_source() {
    const auto is_own = [](const PlanOperand& one) { return one.space == Space::input && one.is_mine; };
    const auto is_set = [](const PlanOperand& one) { return one.ranks.n > 1; };
    for (const auto& fits :
         {std::function<bool(const PlanOperand&)>(is_own), std::function<bool(const PlanOperand&)>(is_set)}) {
      bool is_found = false;
      for (OpenOp& op : plan_.ops) {
        if (!op.moves() || op.values() < 2) continue;
        const auto source = std::find_if(op.operands.begin() + op.op.destinations, op.operands.end(), fits);
        if (source == op.operands.end()) continue;
        if (source->ranks.n > 1) {
          --source->ranks.n;
        } else {
          op.operands.erase(source);
          --op.op.sources;
          op.op.marks &= static_cast<std::uint8_t>(~mark_scales);
        }
        is_found = true;
      }
      if (is_found) return true;
    }
    return false;
  }

  /// Leaves a block of the output as it was.
  bool miss_block() {
    std::erase_if(blocks_, [](const Part& block) { return block.bytes == 0; });
    if (blocks_.empty()) return false;
    const Part block = blocks_[draw(blocks_.size())];
    plan_.cut_output_at(block.first);
    plan_.cut_output_at(block.end());
    bool is_found = false;
    for (OpenOp& op : plan_.ops) {
      if (!op.moves()) continue;
      const auto is_left_out = [&](const PlanOperand& one) {
        return is_my_output(one) && block.first <= one.offset && one.offset < block.end();
      };
      const auto end = op.operands.begin() + op.op.destinations;
      const auto left_out = std::count_if(op.operands.begin(), end, is_left_out);
      if (left_out == 0) continue;
      is_found = true;
      if (left_out == op.op.destinations) {
        op.op.bytes = 0;
        continue;
      }
      op.operands.erase(std::remove_if(op.operands.begin(), end, is_left_out), end);
      op.op.destinations = static_cast<std::uint8_t>(op.op.destinations - left_out);
    }
    return is_found;
  }

  /// One more MOVE, of one element that the operation has left in the output.
  bool write_to(PlanOperand destination) {
    std::erase_if(blocks_, [](const Part& block) { return block.bytes == 0; });
    if (blocks_.empty()) return false;
    write(destination, mine(Space::output, blocks_[draw(blocks_.size())].first, rank_));
    return true;
  }
  void write(const PlanOperand& destination, const PlanOperand& source) {
    plan_.ops.push_back({.op = {.verb = Verb::move, .destinations = 1, .sources = 1, .bytes = element_},
                         .operands = {destination, source}});
  }
  bool write_beyond(std::int64_t offset) { return write_to(mine(Space::output, offset, rank_)); }
  bool overwrite_input() {
    // In place, what the output covers is not the input's.
    const Count covered = is_in_place_ ? operation_.output_elements(rank_) : 0;
    const Count elements = operation_.input_elements(rank_) - covered;
    if (elements <= 0) return false;
    auto element = static_cast<std::int64_t>(draw(static_cast<std::size_t>(elements)));
    if (is_in_place_ && element >= -operation_.shift_in_place(rank_)) element += covered;
    const PlanOperand written = mine(Space::input, element * element_, rank_);
    if (output_blocks(operation_.problem, rank_) > 0 || elements < 2) return write_to(written);
    // There is no output to take the element from.
    write(written, mine(Space::input, (element + 1) % elements * element_, rank_));
    return true;
  }

  bool narrow() {
    replace_kernel(narrowing_kernel(bound_.kernel, operation_.dtype));
    return true;
  }

  const Operation& operation_;
  bool is_in_place_;
  int rank_;
  OpenPlan& plan_;
  BoundEntry& bound_;
  std::mt19937_64 random_;
  std::int64_t element_ = 1;
  std::vector<Part> blocks_;  ///< of the output
};

}  // namespace

bool is_plan_fault(Fault fault) {
  return fault != Fault::previous_data && fault != Fault::wrong_root && fault != Fault::off_by_one_count &&
         fault != Fault::late_write;
}

bool break_plan(const PlanFault& fault, int rank, BoundEntry& bound) {
  const bool is_meant = rank == fault.rank || fault.fault == Fault::narrow_type;
  // Blocks are where the oracle says as long as a call is one segment.
  if (!is_meant || bound.call.segments() != 1) return false;
  Plan& plan = bound.call.full_segments == 1 ? bound.call.full : bound.call.tail;
  OpenPlan open(plan);
  if (!Breaker(fault, rank, open, bound).apply(fault.fault)) return false;
  plan = open.closed();
  return true;
}

}  // namespace tutti::harness::faults

// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/segment.h"

#include <algorithm>
#include <limits>

namespace tutti {
namespace {

constexpr std::int64_t kMostCopiedInAll = 2048;  ///< bytes of the blocks of a short shared input, each on its own lines

/// Where not all ranks have as many, the root has the most, or the first rank (pingpong) or the last one (exscan).
int most_blocks(const Problem& problem, int (*blocks)(const Problem&, int)) {
  if (has_pairs(problem.collective) || has_window(problem.collective)) {
    const int first = problem.pairing.is_one_pair() ? problem.pairing.first : 0;
    const int second = partner_of(problem, first);
    return std::max(blocks(problem, first), second < 0 ? 0 : blocks(problem, second));
  }
  if (is_rooted(problem.collective)) return blocks(problem, problem.root);
  return std::max(blocks(problem, 0), blocks(problem, problem.ranks - 1));
}

UnitTable table_for(const Schedule& schedule, const BindRequest& request, Count segment) {
  return UnitTable({.units_per_block = schedule.shape.units_per_block,
                    .segment = segment,
                    .block = request.count,
                    .element_bytes = static_cast<std::int64_t>(size_of(request.dtype))});
}

/// Bytes of all blocks that this rank knows of, and of the longest.
struct Lengths {
  std::int64_t total = 0;
  std::int64_t longest = 0;
};
Lengths lengths_of(const BlockTable& table) {
  Lengths lengths;
  for (const std::int64_t bytes : table.shared) {
    lengths.total += bytes;
    lengths.longest = std::max(lengths.longest, bytes);
  }
  for (const std::vector<Block>* list : {&table.input, &table.output}) {
    lengths.total = std::max(lengths.total, total_of(*list));
    for (const Block& block : *list) lengths.longest = std::max(lengths.longest, block.bytes);
  }
  return lengths;
}

/// Of the longest message of a v form, or of more: its blocks are not looked at.
std::int64_t longest_message_of(const Schedule& schedule, const BlockTable& table) {
  const Lengths lengths = lengths_of(table);
  return std::min(lengths.total, schedule.shape.largest_message * lengths.longest);
}

/// What a segment takes of the resources.
struct Needs {
  int slices = 0;  ///< of the longest message
  int slots = 0;
  std::int64_t scratch_bytes = 0;
};

Needs needs_of(const Schedule& schedule, const BindRequest& request, Count segment) {
  const UnitTable table = table_for(schedule, request, segment);
  const int slices = slices_of(schedule, request, table);
  return {.slices = slices,
          .slots = slices > 0 ? schedule.least_slots(slices) : 0,
          .scratch_bytes = scratch_layout(schedule, request, table).bytes};
}

bool fits(const Schedule& schedule, const BindRequest& request, Count segment) {
  const Needs needs = needs_of(schedule, request, segment);
  return needs.slots <= request.resources.slots && needs.scratch_bytes <= request.resources.scratch_bytes;
}

/// Why a segment does not fit; ok where it does.
Status explain(const Schedule& schedule, const BindRequest& request, Count segment) {
  const Needs needs = needs_of(schedule, request, segment);
  const Resources& has = request.resources;
  if (needs.slots > has.slots) {
    return error(
        Code::resource,
        "{} {} on {} ranks: a segment of {} elements per block has messages of {} slices, which need {} slots of {} "
        "bytes; the channel has {}",
        to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, segment, needs.slices,
        needs.slots, has.slot_bytes, has.slots);
  }
  if (needs.scratch_bytes > has.scratch_bytes) {
    return error(Code::resource,
                 "{} {} on {} ranks: a segment of {} elements per block needs {} bytes of scratch; there are {}",
                 to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, segment,
                 needs.scratch_bytes, has.scratch_bytes);
  }
  return {};
}

}  // namespace

bool is_copied(const Schedule& schedule, const BindRequest& request) {
  const Problem& problem = schedule.problem;
  if (request.most_copied == 0 || request.buffers == Buffers::private_ || request.blocks != nullptr) return false;
  if (schedule.shape.exposes_output || has_window(problem.collective)) return false;
  const std::int64_t bytes = request.count * static_cast<std::int64_t>(size_of(request.dtype));
  return bytes <= request.most_copied &&
         most_blocks(problem, input_blocks) * round_up_to_line(bytes) <= kMostCopiedInAll;
}

bool is_staged(const Schedule& schedule, const BindRequest& request) {
  return request.buffers == Buffers::private_ || is_copied(schedule, request) ||
         (request.is_in_place && schedule.stages_in_place) || request.op == Op::premul_sum;
}

ScratchLayout scratch_layout(const Schedule& schedule, const BindRequest& request, const UnitTable& table) {
  const Shape& shape = schedule.shape;
  ScratchLayout layout;
  const std::int64_t unit_bytes = shape.scratch_units > 0 ? table.largest_unit_bytes() : 0;
  const bool line_has_references = (shape.exposes_input || shape.exposes_output) && !is_staged(schedule, request);
  layout.is_in_line = !line_has_references && shape.scratch_units * unit_bytes <= kLineBytes;
  layout.unit_stride = layout.is_in_line ? unit_bytes : round_up_to_line(unit_bytes);
  layout.bytes = layout.is_in_line ? 0 : shape.scratch_units * layout.unit_stride;
  if (!is_staged(schedule, request)) return layout;
  if (shape.exposes_input) {
    layout.input_mirror = layout.bytes;
    layout.bytes += most_blocks(schedule.problem, input_blocks) * table.mirror_stride();
  }
  if (shape.exposes_output) {
    layout.output_mirror = layout.bytes;
    layout.bytes += most_blocks(schedule.problem, output_blocks) * table.mirror_stride();
  }
  return layout;
}

int slices_of(const Schedule& schedule, const BindRequest& request, const UnitTable& table) {
  if (schedule.shape.largest_message == 0) return 0;
  const std::int64_t bytes = request.blocks != nullptr
                                 ? longest_message_of(schedule, *request.blocks)
                                 : std::min(schedule.shape.largest_message * table.largest_unit_bytes(),
                                            std::max(most_blocks(schedule.problem, input_blocks),
                                                     most_blocks(schedule.problem, output_blocks)) *
                                                table.segment_bytes());
  const std::int64_t slot = request.resources.slot_bytes;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;  // room for `least_slots` to add to it
  return static_cast<int>(std::clamp<std::int64_t>((bytes + slot - 1) / slot, 1, kMost));
}

Status check_slots(const Schedule& schedule, const BindRequest& request) {
  // A plan has an op for each slice.
  constexpr std::int64_t kMostSlices = std::int64_t{1} << 26U;
  const std::int64_t total = lengths_of(*request.blocks).total;
  if (const std::int64_t most = kMostSlices * request.resources.slot_bytes; total > most) {
    return error(Code::resource, "{}_v {} on {} ranks: {} bytes in one call; slots of {} bytes carry at most {}",
                 to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, total,
                 request.resources.slot_bytes, most);
  }
  const Needs needs = needs_of(schedule, request, 0);
  if (needs.slots <= request.resources.slots) return {};
  return error(Code::resource,
               "{}_v {} on {} ranks: messages of {} slices need {} slots of {} bytes; the channel has {}",
               to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, needs.slices, needs.slots,
               request.resources.slot_bytes, request.resources.slots);
}

Result<Count> choose_segment(const Schedule& schedule, const BindRequest& request) {
  if (request.segment > 0) {
    const Count segment = std::min(request.segment, std::max<Count>(request.count, 1));
    TUTTI_RETURN_IF_ERROR(explain(schedule, request, segment));
    return segment;
  }
  if (fits(schedule, request, request.count)) return std::max<Count>(request.count, 1);

  // A shorter segment never needs more, so the most lines that fit are found by halving.
  const Count line = 64 / static_cast<Count>(size_of(request.dtype));
  Count lines = 0;
  for (Count too_many = (request.count + line - 1) / line; lines + 1 < too_many;) {
    const Count middle = lines + (too_many - lines) / 2;
    (fits(schedule, request, middle * line) ? lines : too_many) = middle;
  }
  if (lines == 0) return explain(schedule, request, std::min(line, request.count));
  const Count units = schedule.shape.units_per_block;
  return (lines > units ? lines / units * units : lines) * line;
}

}  // namespace tutti

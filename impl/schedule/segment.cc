// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/segment.h"

#include <algorithm>
#include <limits>

namespace tutti {
namespace {

int most_blocks(const Problem& problem, int (*blocks)(const Problem&, int)) {
  return blocks(problem, is_rooted(problem.collective) ? problem.root : 0);
}

UnitTable table_for(const Schedule& schedule, const BindRequest& request, Count segment) {
  return UnitTable({.units_per_block = schedule.shape.units_per_block,
                    .segment = segment,
                    .block = request.count,
                    .element_bytes = static_cast<std::int64_t>(size_of(request.dtype))});
}

/// Whether a segment fits; the Status says what does not.
Status fits(const Schedule& schedule, const BindRequest& request, Count segment) {
  const UnitTable table = table_for(schedule, request, segment);
  const Resources& has = request.resources;
  if (const int slices = slices_of(schedule, request, table); slices > 0) {
    if (const int needed = schedule.least_slots(slices); needed > has.slots) {
      return error(
          Code::resource,
          "{} {} on {} ranks: a segment of {} elements per block has messages of {} slices, which need {} slots of {} "
          "bytes; the channel has {}",
          to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, segment, slices, needed,
          has.slot_bytes, has.slots);
    }
  }
  if (const ScratchLayout layout = scratch_layout(schedule, request, table); layout.bytes > has.scratch_bytes) {
    return error(Code::resource,
                 "{} {} on {} ranks: a segment of {} elements per block needs {} bytes of scratch; there are {}",
                 to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, segment, layout.bytes,
                 has.scratch_bytes);
  }
  return {};
}

/// The largest multiple of a cache line that every unit may have.
std::int64_t most_unit_bytes(const Schedule& schedule, const BindRequest& request) {
  const Shape& shape = schedule.shape;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (shape.largest_message > 0) {
    int slices = request.resources.slots;
    while (slices > 0 && schedule.least_slots(slices) > request.resources.slots) --slices;
    most = std::min(most, slices * request.resources.slot_bytes / shape.largest_message);
  }
  std::int64_t units = shape.scratch_units;
  if (is_staged(schedule, request)) {
    const auto mirrored = [&](int blocks) { return static_cast<std::int64_t>(blocks) * shape.units_per_block; };
    if (shape.exposes_input) units += mirrored(most_blocks(schedule.problem, input_blocks));
    if (shape.exposes_output) units += mirrored(most_blocks(schedule.problem, output_blocks));
  }
  if (units > 0) most = std::min(most, request.resources.scratch_bytes / units);
  return most / 64 * 64;
}

}  // namespace

bool is_staged(const Schedule& schedule, const BindRequest& request) {
  return request.buffers == Buffers::private_ || (request.is_in_place && schedule.stages_in_place);
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
  const std::int64_t bytes = std::min(schedule.shape.largest_message * table.largest_unit_bytes(),
                                      most_blocks(schedule.problem, output_blocks) * table.segment_bytes());
  const std::int64_t slot = request.resources.slot_bytes;
  return static_cast<int>(std::max<std::int64_t>(1, (bytes + slot - 1) / slot));
}

Result<Count> choose_segment(const Schedule& schedule, const BindRequest& request) {
  if (request.segment > 0) {
    const Count segment = std::min(request.segment, std::max<Count>(request.count, 1));
    TUTTI_RETURN_IF_ERROR(fits(schedule, request, segment));
    return segment;
  }
  if (Status all = fits(schedule, request, request.count); all.is_ok()) return std::max<Count>(request.count, 1);
  const std::int64_t unit_bytes = most_unit_bytes(schedule, request);
  const Count segment = unit_bytes / static_cast<std::int64_t>(size_of(request.dtype)) * schedule.shape.units_per_block;
  const Count least = 64 / static_cast<Count>(size_of(request.dtype)) * schedule.shape.units_per_block;
  TUTTI_RETURN_IF_ERROR(fits(schedule, request, std::max(segment, least)));
  return std::max(segment, least);
}

}  // namespace tutti

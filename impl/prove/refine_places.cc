// SPDX-License-Identifier: Apache-2.0
// Where the units of the user's buffers, of their mirrors and of scratch lie, and how messages are cut.
#include <algorithm>

#include "impl/prove/refinement.h"
#include "impl/schedule/segment.h"

namespace tutti {

Refinement::Refinement(const Schedule& schedule, const BoundPlan& bound)
    : schedule_(schedule),
      problem_(schedule.problem),
      request_(bound.request),
      plan_(bound.plan),
      header_(bound.plan.header()),
      rank_(bound.request.rank),
      element_bytes_(static_cast<std::int64_t>(size_of(bound.request.dtype))),
      segment_bytes_(bound.segment * element_bytes_),
      user_stride_(bound.request.count * element_bytes_),
      must_stage_(request_.buffers == Buffers::private_ || request_.op == Op::premul_sum ||
                  (request_.is_in_place && schedule.stages_in_place)),
      is_staged_(must_stage_ || is_copied(schedule, request_)) {
  place_scratch();
  if (has_channels()) slices_ = slices_of_longest();
}

/// Units first, in the flag line if they fit and no references are there, then the mirrors.
void Refinement::place_scratch() {
  const Shape& shape = schedule_.shape;
  const UnitPlaces block{.per_block = shape.units_per_block, .element_bytes = element_bytes_};
  const std::int64_t largest = std::min(block.unit_bytes_of(segment_bytes_), segment_bytes_);
  room_ = shape.scratch_units > 0 ? largest : 0;
  const bool has_references = (shape.exposes_input || shape.exposes_output) && !is_staged_;
  is_in_line_ = !has_references && shape.scratch_units * room_ <= kLineBytes;
  room_stride_ = is_in_line_ ? room_ : whole_lines(room_);
  scratch_bytes_ = is_in_line_ ? 0 : shape.scratch_units * room_stride_;
  if (!is_staged_) return;
  for (const Space space : {Space::input, Space::output}) {
    if (!(space == Space::input ? shape.exposes_input : shape.exposes_output)) continue;
    (space == Space::input ? input_mirror_ : output_mirror_) = scratch_bytes_;
    scratch_bytes_ += most_blocks(space) * whole_lines(segment_bytes_);
  }
}

/// Of any rank: their numbers differ only at a root, at the ends and in a pair.
std::int64_t Refinement::most_blocks(Space space) const {
  int most = 0;
  const int first = std::max(0, problem_.pairing.first);
  for (const int rank :
       {rank_, 0, problem_.ranks - 1, problem_.root, first, std::max(0, partner_of(problem_, first))}) {
    most = std::max(most, blocks_of(space, rank));
  }
  return most;
}

/// All ranks derive the same number: a message has at most `largest_message` units, and no more than a buffer.
int Refinement::slices_of_longest() const {
  std::int64_t all = std::max(most_blocks(Space::input), most_blocks(Space::output)) * segment_bytes_;
  const UnitPlaces block{.per_block = schedule_.shape.units_per_block, .element_bytes = element_bytes_};
  std::int64_t unit = std::min(block.unit_bytes_of(segment_bytes_), segment_bytes_);
  if (request_.blocks != nullptr) {
    const BlockTable& table = *request_.blocks;
    all = std::max(total_of(table.input), total_of(table.output));
    std::int64_t shared = 0;
    for (const std::int64_t bytes : table.shared) {
      shared += bytes;
      unit = std::max(unit, bytes);
    }
    all = std::max(all, shared);
    for (const Block& one : table.input) unit = std::max(unit, one.bytes);
    for (const Block& one : table.output) unit = std::max(unit, one.bytes);
  }
  const std::int64_t longest = std::min(all, schedule_.shape.largest_message * unit);
  const std::int64_t slot = request_.resources.slot_bytes;
  return static_cast<int>(std::max<std::int64_t>(1, (longest + slot - 1) / slot));
}

/// In a turn of n slices the longest message takes as many turns as a message of that many slices.
int Refinement::slices_per_turn() const {
  int most = 1;
  for (int n = 2; n <= request_.resources.slots; ++n) {
    if (n * schedule_.least_slots((slices_ + n - 1) / n) <= request_.resources.slots) most = n;
  }
  return most;
}

UnitPlaces Refinement::user_places(Space space, int rank) const {
  const int blocks = blocks_of(space, rank);
  UnitPlaces places{.units = std::int64_t{blocks} * schedule_.shape.units_per_block,
                    .per_block = schedule_.shape.units_per_block,
                    .element_bytes = element_bytes_,
                    .stride = user_stride_,
                    .block_bytes = segment_bytes_};
  if (request_.blocks == nullptr) {
    places.unit_bytes = places.unit_bytes_of(segment_bytes_);
    return places;
  }
  const BlockTable& table = *request_.blocks;
  places.is_listed = true;
  if (rank == rank_) {
    places.blocks = space == Space::input ? table.input : table.output;
  } else if (!table.shared.empty()) {
    places.lengths = table.shared;
    if (blocks == 1) places.lengths = places.lengths.subspan(static_cast<std::size_t>(rank), 1);
  }
  if (places.blocks.empty() && places.lengths.empty()) places.units = 0;
  return places;
}

UnitPlaces Refinement::mirror_places(Space space, int rank) const {
  UnitPlaces places = user_places(space, rank);
  places.begin = space == Space::input ? input_mirror_ : output_mirror_;
  places.stride = whole_lines(segment_bytes_);
  return places;
}

/// The schedule's scratch, of whose units `bytes` are used.
UnitPlaces Refinement::scratch_places(std::int64_t bytes) const {
  return {.units = std::max(schedule_.shape.scratch_units, 1),
          .stride = room_stride_,
          .block_bytes = bytes,
          .unit_bytes = bytes};
}

std::int64_t Refinement::input_shift(int rank) const {
  return request_.blocks != nullptr ? in_place_shift(problem_, rank, *request_.blocks)
                                    : in_place_block(problem_, rank) * user_stride_;
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/bind.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "impl/schedule/lower.h"
#include "impl/schedule/segment.h"

namespace tutti {
namespace {

/// FNV-1a over everything that must be the same on all ranks.
class KeyHash {
 public:
  KeyHash& add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    return add(static_cast<std::int64_t>(text.size()));
  }
  KeyHash& add(std::int64_t value) {
    for (int i = 0; i < 8; ++i) mix(static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i)));
    return *this;
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

/// Of a v form: what all ranks know of it. Where blocks lie, and whether a rank is in place, is its own affair, for a
/// message is as long whatever the answer.
std::uint64_t v_key_hash(const Schedule& schedule, const BindRequest& request) {
  KeyHash hash;
  hash.add("v")
      .add(to_string(schedule.problem.collective))
      .add(schedule.name)
      .add(schedule.problem.ranks)
      .add(schedule.problem.root)
      .add(schedule.problem.ranks_per_host)
      .add(schedule.problem.ranks_per_cache)
      .add(to_string(request.dtype))
      .add(to_string(request.op))
      .add(to_string(request.buffers));
  for (const std::int64_t bytes : request.blocks->shared) hash.add(bytes);
  return hash.value();
}

std::uint64_t key_hash(const Schedule& schedule, const BindRequest& request, Count segment) {
  if (request.blocks != nullptr) return v_key_hash(schedule, request);
  return KeyHash()
      .add(to_string(schedule.problem.collective))
      .add(schedule.name)
      .add(schedule.problem.ranks)
      .add(schedule.problem.root)
      .add(schedule.problem.pairing.window)
      .add(schedule.problem.pairing.first)
      .add(schedule.problem.pairing.second)
      .add(schedule.problem.ranks_per_host)
      .add(schedule.problem.ranks_per_cache)
      .add(request.count)
      .add(segment)
      .add(to_string(request.dtype))
      .add(to_string(request.op))
      .add(request.is_in_place && !has_placement_at_root_only(schedule.problem.collective) ? 1 : 0)
      .add(to_string(request.buffers))
      .add(is_copied(schedule, request) ? 1 : 0)
      .value();
}

Status validate_shape(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  if (shape.units_per_block >= 1 && shape.scratch_units >= 0 && shape.largest_message >= 0) return {};
  return error(Code::invalid_argument,
               "{} has a shape of {} units per block, {} in scratch and {} in a message: at least 1, 0 and 0",
               schedule.name, shape.units_per_block, shape.scratch_units, shape.largest_message);
}

/// Every offset and sum of bytes that binding computes fits 63 bits.
Status validate_count(const Schedule& schedule, const BindRequest& request) {
  if (request.count < 0) return error(Code::invalid_argument, "count {} is negative: 0 or more", request.count);
  const auto element = static_cast<std::int64_t>(size_of(request.dtype));
  // At most P blocks, or a window of them, or as many units, each no larger than a block; both mirrors, own units,
  // whole lines.
  constexpr std::int64_t kRoom = 16;
  const int widest = std::max({schedule.problem.ranks, schedule.problem.pairing.window, schedule.shape.scratch_units,
                               schedule.shape.largest_message});
  const Count most = std::numeric_limits<std::int64_t>::max() / kRoom / (widest * element);
  if (request.count <= most) return {};
  return error(Code::invalid_argument, "count {} is out of range: 0 to {} elements of {} bytes per block on {} ranks",
               request.count, most, element, schedule.problem.ranks);
}

Status validate_blocks(const Schedule& schedule, const BindRequest& request) {
  if (!schedule.takes_counts) {
    return error(Code::invalid_argument, "{} {} takes no counts: its blocks are of one length",
                 to_string(schedule.problem.collective), schedule.name);
  }
  return check_blocks(schedule.problem, request.rank, *request.blocks, request.is_in_place);
}

Status validate_pairing(const Problem& problem) {
  const Pairing& pairing = problem.pairing;
  if (pairing.window < 1 || pairing.window > (has_window(problem.collective) ? kMaxWindow : 1)) {
    return error(Code::invalid_argument, "window {} of {} is out of range: 1 to {}", pairing.window,
                 to_string(problem.collective), has_window(problem.collective) ? kMaxWindow : 1);
  }
  const bool is_pair = has_pairs(problem.collective) && pairing.first >= 0 && pairing.first < pairing.second &&
                       pairing.second < problem.ranks;
  if (is_pair || (pairing.first == -1 && pairing.second == -1)) return {};
  return error(Code::invalid_argument, "pair {}-{} of {} is out of range: two of its ranks 0 to {}, the lower first",
               pairing.first, pairing.second, to_string(problem.collective), problem.ranks - 1);
}

Status validate(const Schedule& schedule, const BindRequest& request) {
  const int ranks = schedule.problem.ranks;
  if (request.rank < 0 || request.rank >= ranks) {
    return error(Code::invalid_argument, "rank {} is out of range: 0 to {}", request.rank, ranks - 1);
  }
  if (schedule.problem.root < 0 || schedule.problem.root >= ranks) {
    return error(Code::invalid_argument, "root {} is out of range: 0 to {}", schedule.problem.root, ranks - 1);
  }
  const int per_host = schedule.problem.ranks_per_host;
  if (per_host < 0 || (per_host > 0 && ranks % per_host != 0)) {
    return error(Code::invalid_argument, "{} ranks per host is out of range: a divisor of {}, or 0 for one host",
                 per_host, ranks);
  }
  if (schedule.problem.ranks_per_cache < 0) {
    return error(Code::invalid_argument, "{} ranks per cache is out of range: 1 or more, or 0 where it is not told",
                 schedule.problem.ranks_per_cache);
  }
  TUTTI_RETURN_IF_ERROR(validate_pairing(schedule.problem));
  TUTTI_RETURN_IF_ERROR(validate_shape(schedule));
  TUTTI_RETURN_IF_ERROR(request.blocks == nullptr ? validate_count(schedule, request)
                                                  : validate_blocks(schedule, request));
  if (!op_exists(request.op, request.dtype)) {
    return error(Code::invalid_argument, "op {} does not exist for {}: integers only", to_string(request.op),
                 to_string(request.dtype));
  }
  if (!takes_op(schedule.problem.collective, request.op)) {
    return error(Code::invalid_argument, "op {} does not exist for {}: nothing says by what some ranks' sum is divided",
                 to_string(request.op), to_string(schedule.problem.collective));
  }
  if (request.segment < 0) return error(Code::invalid_argument, "segment {} is negative: 0 or more", request.segment);
  const std::int64_t slot = request.resources.slot_bytes;
  if (slot < 64 || slot % 64 != 0) {
    return error(Code::invalid_argument, "slots of {} bytes: a positive multiple of 64", slot);
  }
  return {};
}

/// Elements of 16 bytes.
Count pack_of(const BindRequest& request) {
  return std::max<Count>(1, 16 / static_cast<Count>(size_of(request.dtype)));
}

/// Whole packs, so that every lane's part begins at one.
Count part_of_lane(const BindRequest& request) {
  if (request.lanes <= 1 || request.segment > 0) return std::max<Count>(request.count, 1);
  const Count pack = pack_of(request);
  const Count part = (request.count + request.lanes - 1) / request.lanes;
  return std::max<Count>(pack, (part + pack - 1) / pack * pack);
}

/// The most that the schedule's tuning leaves, in whole packs; `longest` if it leaves that open.
Count tuned_segment(const Schedule& schedule, const BindRequest& request, Count longest) {
  const std::int64_t bytes = schedule.tuning.segment_bytes;
  if (bytes == 0 || request.segment > 0) return longest;
  const Count pack = pack_of(request);
  const Count most = bytes / static_cast<Count>(size_of(request.dtype)) / pack * pack;
  return std::min(longest, std::max(pack, most));
}

Result<Plan> plan_for(const Schedule& schedule, const BindRequest& request, Count segment) {
  return lower(
      {.schedule = schedule, .request = request, .segment = segment, .hash = key_hash(schedule, request, segment)});
}

}  // namespace

std::string_view to_string(Buffers buffers) { return buffers == Buffers::shared ? "shared" : "private"; }

Result<BoundCall> bind(const Schedule& schedule, const BindRequest& request) {
  TUTTI_RETURN_IF_ERROR(validate(schedule, request));
  BoundCall call;
  if (request.blocks != nullptr) {
    TUTTI_RETURN_IF_ERROR(check_slots(schedule, request));
    call.has_tail = true;
    TUTTI_ASSIGN_OR_RETURN(call.tail, plan_for(schedule, request, 0));
    return call;
  }
  TUTTI_ASSIGN_OR_RETURN(const Count longest, choose_segment(schedule, request));
  const Count segment = std::min(tuned_segment(schedule, request, longest), part_of_lane(request));
  call.segment_bytes = segment * static_cast<std::int64_t>(size_of(request.dtype));
  call.full_segments = request.count / segment;
  call.has_tail = request.count % segment > 0 || request.count == 0;
  if (call.full_segments > 0) {
    TUTTI_ASSIGN_OR_RETURN(call.full, plan_for(schedule, request, segment));
  }
  if (call.has_tail) {
    TUTTI_ASSIGN_OR_RETURN(call.tail, plan_for(schedule, request, request.count % segment));
  }
  return call;
}

}  // namespace tutti

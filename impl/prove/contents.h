// SPDX-License-Identifier: Apache-2.0
// The visitor that knows what every byte holds. It executes MOVEs on runs of symbolic values (values.h) and checks each
// access as it happens: in bounds, of written memory, not into an input, exposed where remote.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/layout.h"
#include "impl/prove/races.h"
#include "impl/prove/runs.h"

namespace tutti {

template <class Lane>
class Contents {
 public:
  using Value = typename Lane::Value;
  using Slice = Runs<Value>;

  Contents(const PlanSet& set, const Layout& layout, Races& races, Findings& findings)
      : set_(set),
        layout_(layout),
        races_(races),
        findings_(findings),
        memories_(set.plans.size() * kMemories),
        heads_(memories_.size()) {
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      Value value = lane_.contribution(rank);
      lane_.shift(value, -layout_.input_shift(rank));
      for (int index = 0; index < input_blocks(layout_.problem(), rank); ++index) {
        const Block block = layout_.input_block(rank, index);
        if (block.bytes == 0) continue;
        const std::int64_t begin = block.offset + layout_.input_shift(rank);
        memory(rank, layout_.input_memory()).write(begin, begin + block.bytes, value);
      }
    }
  }

  [[nodiscard]] const Lane& lane() const { return lane_; }
  [[nodiscard]] Runs<Value>& memory(int rank, Memory which) {
    return memories_[static_cast<std::size_t>(rank) * kMemories + which];
  }

  void signal(int rank, std::uint32_t op, std::size_t /*id*/) {
    const Plan& plan = plan_of(rank);
    if (!plan.header().uses_generation)
      findings_.add(rank, plan.ops()[op].step, "SIGNAL in a plan that takes no generation");
    races_.signalled(rank, plan.ops()[op]);
  }
  void heard(int rank, int peer, std::uint32_t op, std::size_t /*id*/) {
    races_.heard(rank, peer, plan_of(rank).ops()[op].phase, op);
  }
  void move(int rank, std::uint32_t op, std::span<Slice* const> full, std::span<Slice* const> empty);

 private:
  /// One operand on one rank.
  struct Place {
    Runs<Value>* runs;
    std::int64_t begin;
    int owner;  ///< -1 for a channel's slot
    Memory memory;
    bool is_scaled = false;  ///< a source that is multiplied by the factor of its owner, the rank that reads it
  };

  /// The first destination of the current MOVE in one memory, while `serial` is the current one.
  struct Head {
    std::uint64_t serial = 0;
    int destination = -1;
  };

  [[nodiscard]] const Plan& plan_of(int rank) const { return set_.plans[static_cast<std::size_t>(rank)]; }
  bool locate(int rank, std::uint32_t index, const PlanOperand& operand, bool is_write, Slice* const*& slices,
              std::vector<Place>& places);
  bool locate_slot(int rank, const PlanOp& op, const PlanOperand& operand, Slice* const*& slices,
                   std::vector<Place>& places);
  bool are_disjoint(int rank, const PlanOp& op);
  bool reduce(int rank, const PlanOp& op, std::int64_t done, std::int64_t& length, Value& value);

  const PlanSet& set_;
  const Layout& layout_;
  Races& races_;
  Findings& findings_;
  Lane lane_;
  std::vector<Runs<Value>> memories_;
  std::vector<Place> sources_;
  std::vector<Place> destinations_;
  std::vector<Head> heads_;  ///< by rank and memory
  std::vector<int> next_;    ///< destination in the same memory
  std::uint64_t serial_ = 0;
};

template <class Lane>
void Contents<Lane>::move(int rank, std::uint32_t index, std::span<Slice* const> full, std::span<Slice* const> empty) {
  const Plan& plan = plan_of(rank);
  const PlanOp& op = plan.ops()[index];
  Slice* const* from = full.data();
  Slice* const* to = empty.data();
  sources_.clear();
  destinations_.clear();
  bool is_right = true;
  for (const PlanOperand& operand : plan.sources(op))
    is_right = locate(rank, index, operand, false, from, sources_) && is_right;
  for (const PlanOperand& operand : plan.destinations(op))
    is_right = locate(rank, index, operand, true, to, destinations_) && is_right;
  if (!is_right || op.bytes == 0 || !are_disjoint(rank, op)) return;

  const std::int64_t frame = destinations_.front().begin;
  for (std::int64_t done = 0; done < op.bytes;) {
    std::int64_t length = op.bytes - done;
    Value value{};
    if (!reduce(rank, op, done, length, value)) return;
    for (const Place& place : destinations_) {
      if (place.begin == frame) {
        place.runs->write(place.begin + done, place.begin + done + length, value);
      } else {
        Value shifted = value;
        lane_.shift(shifted, frame - place.begin);
        place.runs->write(place.begin + done, place.begin + done + length, shifted);
      }
    }
    done += length;
  }
}

/// The value from byte `done` on, as seen from the first destination, and how far it goes.
template <class Lane>
bool Contents<Lane>::reduce(int rank, const PlanOp& op, std::int64_t done, std::int64_t& length, Value& value) {
  const std::int64_t frame = destinations_.front().begin;
  bool is_first = true;
  for (const Place& from : sources_) {
    const auto* const run = from.runs->find(from.begin + done);
    if (run == nullptr) {
      const std::int64_t begin = from.begin + done;
      const Interval missing{
          .memory = from.memory, .begin = begin, .end = from.runs->gap_end(begin, from.begin + op.bytes)};
      findings_.add(rank, op.step, "reads {}, which no rank has written",
                    from.owner < 0 ? fmt::format("bytes [{}, {}) of a slice", missing.begin, missing.end)
                                   : fmt::format("{} of rank {}", Layout::describe(missing), from.owner));
      return false;
    }
    if (sources_.size() > 1 && run->value.finals > 0) {
      findings_.add(rank, op.step, "reduces a value that is final already");
      return false;
    }
    length = std::min(length, run->end - from.begin - done);
    if (is_first) {
      value = run->value;
      if (from.is_scaled) lane_.scale(value);
      lane_.shift(value, from.begin - frame);
      is_first = false;
    } else if (from.begin == frame && !from.is_scaled) {
      lane_.combine(value, run->value);
    } else {
      Value shifted = run->value;
      if (from.is_scaled) lane_.scale(shifted);
      lane_.shift(shifted, from.begin - frame);
      lane_.combine(value, shifted);
    }
  }
  if (sources_.size() > 1) lane_.round(value);
  if ((op.marks & mark_final) != 0) lane_.finish(value);
  return true;
}

template <class Lane>
bool Contents<Lane>::locate(int rank, std::uint32_t index, const PlanOperand& operand, bool is_write,
                            Slice* const*& slices, std::vector<Place>& places) {
  const Plan& plan = plan_of(rank);
  const PlanOp& op = plan.ops()[index];
  if (operand.space == Space::channel) return locate_slot(rank, op, operand, slices, places);
  if (is_write && operand.space == Space::input) {
    findings_.add(rank, op.step, "writes into an input");
    return false;
  }
  if (is_write && operand.space != Space::output && !plan.header().uses_generation) {
    findings_.add(rank, op.step, "writes scratch in a plan that takes no generation");
  }
  bool is_right = true;
  for (int i = 0; i < operand.ranks.n; ++i) {
    const int owner = operand.ranks.at(i, layout_.ranks());
    const Interval interval = layout_.locate(owner, operand.space, operand.offset, op.bytes);
    if (!layout_.is_within(owner, operand.space, operand.offset, op.bytes)) {
      findings_.add(rank, op.step, "{} {} of rank {}, out of bounds", is_write ? "writes" : "reads",
                    Layout::describe(interval), owner);
      is_right = false;
      continue;
    }
    const Races::Access access{
        .accessor = rank, .op = index, .owner = owner, .interval = interval, .is_write = is_write};
    if (owner == rank) {
      races_.own(access);
    } else {
      is_right = races_.remote(access) && is_right;
    }
    const bool is_scaled = operand.space == Space::input && owner == rank && (op.marks & mark_scales) != 0;
    places.push_back({.runs = &memory(owner, interval.memory),
                      .begin = interval.begin,
                      .owner = owner,
                      .memory = interval.memory,
                      .is_scaled = is_scaled});
  }
  return is_right;
}

template <class Lane>
bool Contents<Lane>::locate_slot(int rank, const PlanOp& op, const PlanOperand& operand, Slice* const*& slices,
                                 std::vector<Place>& places) {
  Slice* const slice = *slices++;
  const bool is_destination = &places == &destinations_;
  if (is_destination && (op.marks & mark_opens) != 0) slice->clear();
  const std::int64_t slice_bytes = std::min(op.rest_bytes, set_.slot_bytes);
  if (operand.offset < 0 || operand.offset + op.bytes > slice_bytes) {
    findings_.add(rank, op.step, "bytes [{}, {}) of a slice of {} bytes", operand.offset, operand.offset + op.bytes,
                  slice_bytes);
    return false;
  }
  if (!plan_of(rank).header().uses_channels) findings_.add(rank, op.step, "a channel in a plan that uses no channels");
  places.push_back({.runs = slice, .begin = operand.offset, .owner = -1, .memory = memory_scratch});
  return true;
}

/// A destination may be a source, but not overlap one partly, nor overlap another destination. Destinations are chained
/// per memory, so that sets of P sources and P destinations cost 2P looks and not P^2.
template <class Lane>
bool Contents<Lane>::are_disjoint(int rank, const PlanOp& op) {
  const auto distance = [](const Place& a, const Place& b) { return std::abs(a.begin - b.begin); };
  const auto head = [this](const Place& place) -> Head& {
    return heads_[static_cast<std::size_t>(place.owner) * kMemories + place.memory];
  };
  ++serial_;
  next_.assign(destinations_.size(), -1);
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    const Place& to = destinations_[i];
    if (to.owner < 0) continue;
    Head& first = head(to);
    if (first.serial != serial_) first = {.serial = serial_, .destination = -1};
    for (int other = first.destination; other >= 0; other = next_[static_cast<std::size_t>(other)]) {
      if (distance(destinations_[static_cast<std::size_t>(other)], to) >= op.bytes) continue;
      findings_.add(rank, op.step, "two destinations overlap");
      return false;
    }
    next_[i] = first.destination;
    first.destination = static_cast<int>(i);
  }
  for (const Place& from : sources_) {
    if (from.owner < 0 || head(from).serial != serial_) continue;
    for (int to = head(from).destination; to >= 0; to = next_[static_cast<std::size_t>(to)]) {
      const std::int64_t apart = distance(destinations_[static_cast<std::size_t>(to)], from);
      if (apart == 0 || apart >= op.bytes) continue;
      findings_.add(rank, op.step, "a destination overlaps a source partly");
      return false;
    }
  }
  return true;
}

}  // namespace tutti

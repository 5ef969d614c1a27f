// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/labels.h"

#include <algorithm>
#include <array>

#include "impl/prove/runs.h"
#include "impl/prove/walk.h"

namespace tutti {
namespace {

/// Only the synchronisation.
struct Nothing {
  struct Slice {};
  void signal(int, std::uint32_t, std::size_t) {}
  void heard(int, int, std::uint32_t, std::size_t) {}
  void move(int, std::uint32_t, std::span<Slice* const>, std::span<Slice* const>) {}
};

bool ends_with(const PlanSet& set, int slots) {
  PlanSet narrow = set;
  narrow.slots = slots;
  Nothing nothing;
  Findings ignored;
  return Walk<Nothing>(narrow, nothing, ignored).run();
}

bool is_copying_send(const Plan& plan, const PlanOp& op) {
  if (op.verb != Verb::move || op.has_channel == 0 || op.bytes == 0) return false;
  const auto sources = plan.sources(op);
  const auto destinations = plan.destinations(op);
  return sources.size() == 1 && sources[0].space != Space::channel &&
         std::any_of(destinations.begin(), destinations.end(),
                     [](const PlanOperand& to) { return to.space == Space::channel; });
}

}  // namespace

Escape find_escape(const News& news) {
  for (int rank = 0; rank < news.ranks(); ++rank) {
    for (int other = 0; other < news.ranks(); ++other) {
      if (!news.has_heard(rank, other)) return {.rank = rank, .before = other};
    }
  }
  return {};
}

bool sends_are_stable(const PlanSet& set, const Layout& layout) {
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Plan& plan = set.plans[static_cast<std::size_t>(rank)];
    std::array<Runs<char>, kMemories> written;  // later than the op that is looked at
    const auto write = [&](Space space, std::int64_t offset, std::int64_t bytes) {
      const Interval at = layout.locate(rank, space, offset, bytes);
      if (bytes > 0) written[at.memory].write(at.begin, at.end, 1);
    };
    for (const PlanExposure& exposure : plan.exposures()) {
      if (exposure.is_write) write(exposure.space, exposure.offset, exposure.bytes);
    }
    for (std::size_t i = plan.ops().size(); i-- > 0;) {
      const PlanOp& op = plan.ops()[i];
      if (op.verb != Verb::move) continue;
      if (is_copying_send(plan, op)) {
        const PlanOperand& source = plan.sources(op)[0];
        const Interval at = layout.locate(rank, source.space, source.offset, op.bytes);
        if (written[at.memory].overlaps(at.begin, at.end)) return false;
      }
      for (const PlanOperand& to : plan.destinations(op)) {
        if (to.space != Space::channel && contains(to.ranks, rank, layout.ranks()))
          write(to.space, to.offset, op.bytes);
      }
    }
  }
  return true;
}

int derive_least_slots(const PlanSet& set) {
  const bool has_channels =
      std::any_of(set.plans.begin(), set.plans.end(), [](const Plan& plan) { return plan.header().uses_channels; });
  if (!has_channels) return 0;
  if (set.slots > 1 && !ends_with(set, set.slots - 1)) return set.slots;  // the usual case
  int low = 1;
  for (int high = set.slots; low < high;) {
    const int middle = low + (high - low) / 2;
    if (ends_with(set, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace tutti

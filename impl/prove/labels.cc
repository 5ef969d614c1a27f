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
  void move(int, std::uint32_t, Slice* const*, Slice* const*) {}
};

bool ends_with(const PlanSet& set, int slots) {
  PlanSet narrow = set;
  narrow.slots = slots;
  Nothing nothing;
  Findings ignored;
  return Walk<Nothing>(narrow, nothing, ignored).run();
}

/// Which ranks' starts each rank has heard of, directly or not.
class News {
 public:
  using Words = std::vector<std::uint64_t>;
  using Slice = Words;

  explicit News(const PlanSet& set) : set_(set), known_(set.plans.size(), Words((set.plans.size() + 63) / 64)) {
    for (std::size_t rank = 0; rank < known_.size(); ++rank) known_[rank][rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
  [[nodiscard]] bool has_heard(int rank, int other) const {
    return (of(rank)[static_cast<std::size_t>(other) / 64] >> (static_cast<unsigned>(other) % 64) & 1U) != 0;
  }

  void signal(int rank, std::uint32_t /*op*/, std::size_t id) {
    if (sent_.size() <= id) sent_.resize(id + 1);
    sent_[id] = of(rank);
  }
  void heard(int rank, int /*peer*/, std::uint32_t /*op*/, std::size_t id) { learn(rank, sent_[id]); }
  void move(int rank, std::uint32_t op, Slice* const* full, Slice* const* empty) {
    const Plan& plan = set_.plans[static_cast<std::size_t>(rank)];
    for (const PlanOperand& operand : plan.sources(plan.ops()[op])) {
      if (operand.space == Space::channel) learn(rank, **full++);
    }
    for (const PlanOperand& operand : plan.destinations(plan.ops()[op])) {
      if (operand.space == Space::channel) **empty++ = of(rank);
    }
  }

 private:
  [[nodiscard]] const Words& of(int rank) const { return known_[static_cast<std::size_t>(rank)]; }
  void learn(int rank, const Words& news) {
    Words& known = known_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < news.size(); ++i) known[i] |= news[i];
  }

  const PlanSet& set_;
  std::vector<Words> known_;
  std::vector<Words> sent_;  ///< with each SIGNAL
};

bool is_copying_send(const Plan& plan, const PlanOp& op) {
  if (op.verb != Verb::move || op.has_channel == 0 || op.bytes == 0) return false;
  const auto sources = plan.sources(op);
  const auto destinations = plan.destinations(op);
  return sources.size() == 1 && sources[0].space != Space::channel &&
         std::any_of(destinations.begin(), destinations.end(),
                     [](const PlanOperand& to) { return to.space == Space::channel; });
}

}  // namespace

Escape find_escape(const PlanSet& set) {
  News news(set);
  Findings ignored;
  Walk<News>(set, news, ignored).run();
  const int ranks = static_cast<int>(set.plans.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (int other = 0; other < ranks; ++other) {
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

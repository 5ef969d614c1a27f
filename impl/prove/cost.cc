// SPDX-License-Identifier: Apache-2.0
// Cost from the steps themselves: every rank's program run in units, with a clock that counts MOVEs and transfers. A
// message is one slice here, so MOVEs that take turns come one after the other, as their first slices do.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "impl/prove/findings.h"

namespace tutti {
namespace {

class CostWalk {
 public:
  explicit CostWalk(const Schedule& schedule)
      : schedule_(schedule),
        ranks_(schedule.problem.ranks),
        programs_(static_cast<std::size_t>(ranks_)),
        inboxes_(programs_.size() * programs_.size()) {
    for (int rank = 0; rank < ranks_; ++rank) {
      Program& me = program(rank);
      me.count = schedule.step_count(rank);
      me.cost.steps = me.count;
      if (me.count > 0) me.current = schedule.step(rank, 0);
    }
  }

  DerivedCost run() {
    DerivedCost derived;
    Findings findings;
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int rank = 0; rank < ranks_; ++rank) is_moving = advance(rank) || is_moving;
    }
    std::int64_t depth = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const Program& me = program(rank);
      if (me.index < me.count) findings.add(rank, me.index, "the step can never be done");
      depth = std::max(depth, me.clock);
    }
    for (Program& me : programs_) {
      me.cost.depth = depth;
      derived.costs.push_back(me.cost);
    }
    derived.findings = findings.take();
    return derived;
  }

 private:
  static constexpr std::ptrdiff_t kNone = -1;

  struct Sent {
    std::int64_t clock;
    std::int64_t length;
    std::ptrdiff_t next = kNone;  ///< in sent_, of the same channel
  };
  struct Inbox {
    std::ptrdiff_t first = kNone;  ///< in sent_
    std::ptrdiff_t last = kNone;
  };
  struct Signalled {
    int phase;
    std::int64_t clock;
  };
  struct Program {
    int count = 0;
    int index = 0;
    int heard = 0;
    Step current;
    std::int64_t clock = 0;
    std::vector<Signalled> signals;
    Cost cost;
  };

  [[nodiscard]] Program& program(int rank) { return programs_[static_cast<std::size_t>(rank)]; }

  [[nodiscard]] Inbox& inbox(int rank, int from) {
    return inboxes_[static_cast<std::size_t>(rank) * programs_.size() + static_cast<std::size_t>(from)];
  }
  void send(int rank, int from, Sent message) {
    Inbox& to = inbox(rank, from);
    const std::ptrdiff_t index = std::ssize(sent_);
    (to.first == kNone ? to.first : sent_[static_cast<std::size_t>(to.last)].next) = index;
    to.last = index;
    sent_.push_back(message);
  }
  /// Requires: there is one.
  Sent receive(int rank, int from) {
    Inbox& mine = inbox(rank, from);
    const Sent message = sent_[static_cast<std::size_t>(mine.first)];
    mine.first = message.next;
    return message;
  }

  bool advance(int rank) {
    Program& me = program(rank);
    bool did_something = false;
    while (me.index < me.count && execute(rank, me, me.current)) {
      did_something = true;
      if (++me.index < me.count) me.current = schedule_.step(rank, me.index);
    }
    return did_something;
  }

  bool execute(int rank, Program& me, const Step& step) {
    switch (step.verb) {
      case Verb::signal:
        me.signals.push_back({.phase = step.phase, .clock = me.clock});
        return true;
      case Verb::wait:
        return hear(me, step);
      case Verb::move:
        return move(rank, me, step);
    }
    return false;
  }

  bool hear(Program& me, const Step& step) {
    for (; me.heard < step.ranks.n; ++me.heard) {
      const std::vector<Signalled>& signals = program(step.ranks.at(me.heard, ranks_)).signals;
      const auto at =
          std::find_if(signals.begin(), signals.end(), [&](const Signalled& s) { return s.phase >= step.phase; });
      if (at == signals.end()) return false;
      me.clock = std::max(me.clock, at->clock + 1);
    }
    me.heard = 0;
    return true;
  }

  bool move(int rank, Program& me, const Step& step) {
    for (const Operand& from : step.sources) {
      if (from.space == Space::channel && inbox(rank, from.ranks.first).first == kNone) return false;
    }
    std::int64_t length = 0;
    int remote = 0;
    const auto look_at = [&](const Operand& operand) {
      if (operand.space == Space::channel) return;
      length = std::max<std::int64_t>(length, count_of(operand.units));
      remote += operand.ranks.n - (contains(operand.ranks, rank, ranks_) ? 1 : 0);
    };
    for (const Operand& to : step.destinations) look_at(to);
    for (const Operand& from : step.sources) {
      look_at(from);
      if (from.space != Space::channel) continue;
      const Sent message = receive(rank, from.ranks.first);
      me.clock = std::max(me.clock, message.clock + 1);
      length = std::max(length, message.length);
    }
    ++me.clock;
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel) continue;
      send(to.ranks.first, rank, {.clock = me.clock, .length = length});
      ++me.cost.messages;
      me.cost.units += length;
    }
    me.cost.units += remote * length;
    return true;
  }

  const Schedule& schedule_;
  int ranks_;
  std::vector<Program> programs_;
  std::vector<Inbox> inboxes_;  ///< [rank][from]
  std::vector<Sent> sent_;
};

}  // namespace

DerivedCost derive_cost(const Schedule& schedule) {
  if (std::vector<Finding> flaws = find_flaws(schedule); !flaws.empty()) {
    return {.costs = {}, .findings = std::move(flaws)};
  }
  return CostWalk(schedule).run();
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/steps_walk.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "impl/prove/findings.h"
#include "impl/prove/rank_arcs.h"
#include "impl/prove/unit_channels.h"
#include "impl/prove/unit_flags.h"
#include "impl/prove/unit_memory.h"
#include "impl/prove/unit_races.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

using steps::RankArc;
using steps::Sum;

class StepsWalk {
 public:
  StepsWalk(const Schedule& schedule, const WalkRequest& request, AllRanks& result)
      : schedule_(schedule),
        problem_(schedule.problem),
        request_(request),
        result_(result),
        ranks_(problem_.ranks),
        per_block_(schedule.shape.units_per_block),
        flags_(ranks_, request.counts_news, findings_),
        memory_(schedule, request.form),
        overlaps_(problem_, per_block_, request.form),
        races_(schedule, request.form, findings_),
        states_(static_cast<std::size_t>(ranks_)) {
    for (int rank = 0; rank < ranks_; ++rank) {
      has_equal_inputs_ = has_equal_inputs_ && input_blocks(problem_, rank) == input_blocks(problem_, 0);
    }
  }

  void run() {
    prepare();
    while (!ready_.empty()) {
      const int rank = ready_.front();
      ready_.pop_front();
      advance(rank);
    }
    result_.is_stuck = std::ranges::any_of(states_, [](const State& me) { return me.index < me.count; });
    if (result_.is_stuck) {
      report_stuck();
    } else {
      report_left_over();
      races_.finish();
      check_outputs();
      check_news();
    }
    std::int64_t depth = 0;
    for (int rank = 0; rank < ranks_; ++rank) depth = std::max(depth, flags_.clock(rank));
    for (State& me : states_) {
      me.cost.steps = me.count;
      me.cost.depth = depth;
      result_.costs.push_back(me.cost);
    }
    result_.findings = findings_.take();
  }

 private:
  struct State {
    int index = 0;
    int count = 0;
    bool is_refuted = false;  ///< its current step can never be done, and a finding says so
    bool is_in_turn = false;  ///< the step before takes turns with the current one
    Step current;
    Cost cost;
  };

  [[nodiscard]] State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  template <class... Args>
  bool refute(int rank, fmt::format_string<Args...> format, Args&&... args) {
    findings_.add(rank, state(rank).index, format, std::forward<Args>(args)...);
    state(rank).is_refuted = true;
    return false;
  }

  void prepare() {
    for (int rank = 0; rank < ranks_; ++rank) {
      State& me = state(rank);
      me.count = schedule_.step_count(rank);
      if (me.count > 0) fetch(rank, me);
      ready_.push_back(rank);
    }
  }

  /// The current step, if it has no flaw.
  void fetch(int rank, State& me) {
    me.current = schedule_.step(rank, me.index);
    const Place place{.is_in_turn_with_previous = me.is_in_turn, .is_last = me.index + 1 == me.count};
    const std::string flaw = flaw_of(schedule_, me.current, place);
    if (!flaw.empty()) refute(rank, "{}", flaw);
  }

  [[nodiscard]] int units_of(int rank, Space space) const { return memory_.units_of(rank, space); }

  void advance(int rank) {
    State& me = state(rank);
    while (me.index < me.count && !me.is_refuted && execute(rank, me)) {
      me.is_in_turn = me.current.in_turn_with_next;
      if (++me.index < me.count) fetch(rank, me);
    }
  }

  bool execute(int rank, State& me) {
    switch (me.current.verb) {
      case Verb::signal:
        signal(rank, me);
        return true;
      case Verb::wait:
        return wait(rank, me);
      case Verb::move:
        break;
    }
    return move(rank, me);
  }

  void signal(int rank, const State& me) {
    for (const int waiting : flags_.signal(rank, me.index, me.current)) ready_.push_back(waiting);
    races_.signalled(rank, me.index, me.current);
  }

  bool wait(int rank, State& me) {
    const auto heard = flags_.wait(rank, me.index, me.current);
    me.is_refuted = heard == steps::UnitFlags::Heard::never;
    if (heard != steps::UnitFlags::Heard::all) return false;
    races_.waited(rank, me.index, me.current);
    return true;
  }

  bool move(int rank, State& me) {
    const Step& step = me.current;
    if (!has_channels(rank, step)) return false;
    const std::int64_t length = length_of(step);
    count_cost(rank, me, step, length);
    kept_.clear();
    for (const Operand& to : step.destinations) {
      if (!steps::is_copy_onto_itself(problem_, per_block_, request_.form, step, to)) kept_.push_back(&to);
    }
    if (!kept_.empty()) {
      const char* const overlap =
          overlaps_.find(step, length, [this](int owner, Space space) { return units_of(owner, space); });
      if (*overlap != '\0') return refute(rank, "{}", overlap);
    }
    terms_.assign(static_cast<std::size_t>(length), Sum::nothing());
    has_finals_ = false;
    int sources = 0;
    for (const Operand& from : step.sources) {
      sources += from.ranks.n;
      if (!kept_.empty() && !read(rank, me, from)) return false;
    }
    if (sources > 1 && has_finals_) return refute(rank, "reduces a value that is final already");
    ++flags_.clock(rank);
    for (Sum& value : terms_) {
      value.tree = steps::tree_of_move(value.tree, sources > 1, step.is_final);
      value.finals += step.is_final ? 1 : 0;
    }
    for (const Operand* const to : kept_) {
      if (!write(rank, me, *to)) return false;
    }
    return true;
  }

  /// As derive_cost counts them.
  void count_cost(int rank, State& me, const Step& step, std::int64_t length) {
    for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
      for (const Operand& operand : *list) {
        if (operand.space == Space::channel) continue;
        me.cost.units += (operand.ranks.n - (contains(operand.ranks, rank, ranks_) ? 1 : 0)) * length;
      }
    }
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel) continue;
      ++me.cost.messages;
      me.cost.units += length;
    }
  }

  /// Whether every source is full and every destination has room. Otherwise the
  /// channel tells when it is worth a look.
  bool has_channels(int rank, const Step& step) {
    for (const Operand& from : step.sources) {
      if (from.space == Space::channel && channels_.waits_for_message(from.ranks.first, rank)) return false;
    }
    for (const Operand& to : step.destinations) {
      if (to.space == Space::channel && channels_.waits_for_room(rank, to.ranks.first, request_.form.slots)) {
        return false;
      }
    }
    return true;
  }

  void add(std::size_t k, const Sum& value) {
    terms_[k].reduce(value);
    has_finals_ = has_finals_ || value.finals > 0;
  }

  bool read(int rank, State& me, const Operand& from) {
    if (from.space == Space::channel) return receive(rank, from.ranks.first);
    if (count_of(from.units) != static_cast<std::int64_t>(terms_.size())) {
      return refute(rank, "a MOVE of {} units to or from {}", count_of(from.units), terms_.size());
    }
    if (steps::is_large(from.ranks) && (from.space == Space::scratch || has_equal_inputs_)) {
      return read_many(rank, me, from);
    }
    bool is_right = true;
    for (int i = 0; i < from.ranks.n && is_right; ++i) {
      const int owner = from.ranks.at(i, ranks_);
      const int count = units_of(owner, from.space);
      if (count == 0) {
        return refute(rank, "reads the {} of rank {}, which has none", steps::name_of(from.space), owner);
      }
      steps::for_units(from.units, count, [&](int k, int unit) {
        is_right = is_right && read_one(rank, me, {.owner = owner, .space = from.space, .unit = unit}, k);
      });
    }
    return is_right;
  }
  struct Where {
    int owner;
    Space space;
    int unit;
  };
  bool read_one(int rank, State& me, const Where& where, int k) {
    if (!touch(rank, me, where.owner, where.space, where.unit, false)) return false;
    const Sum value = memory_.read(where.owner, where.space, where.unit);
    if (value.finals == Sum::kUnwritten) {
      return refute(rank, "reads {} unit {} of rank {}, which nobody has written", steps::name_of(where.space),
                    where.unit, where.owner);
    }
    add(static_cast<std::size_t>(k), value);
    return true;
  }
  struct Arc {
    RankArc arc;
    int unit;
    int k;
  };
  void read_arc(int rank, State& me, const Operand& from, const Arc& what, bool& is_right) {
    if (!is_right || what.arc.begin == what.arc.end) return;
    const auto sum = memory_.sum_over(what.arc, from.space, what.unit);
    const UnitRaces::Access access{.accessor = rank,
                                   .step = me.index,
                                   .owner = what.arc.begin,
                                   .space = from.space,
                                   .unit = what.unit,
                                   .is_write = false};
    if (sum && races_.remote(what.arc, access)) return add(static_cast<std::size_t>(what.k), *sum);
    for (int owner = what.arc.begin; owner < what.arc.end && is_right; ++owner) {
      is_right = read_one(rank, me, {.owner = owner, .space = from.space, .unit = what.unit}, what.k);
    }
  }
  /// Requires: all ranks have as many units of the space.
  bool read_many(int rank, State& me, const Operand& from) {
    const int count = units_of(0, from.space);
    if (count == 0) return refute(rank, "reads the {} of rank {}, which has none", steps::name_of(from.space), 0);
    bool is_right = true;
    steps::for_units(from.units, count, [&](int k, int unit) {
      // In the order of the set.
      steps::for_arcs(from.ranks, ranks_, -1, [&](RankArc arc) {
        const bool has_own = arc.begin <= rank && rank < arc.end;
        read_arc(rank, me, from, {.arc = {arc.begin, has_own ? rank : arc.end}, .unit = unit, .k = k}, is_right);
        if (!has_own) return;
        is_right = is_right && read_one(rank, me, {.owner = rank, .space = from.space, .unit = unit}, k);
        read_arc(rank, me, from, {.arc = {rank + 1, arc.end}, .unit = unit, .k = k}, is_right);
      });
    });
    return is_right;
  }

  /// Whether `rank` may touch this unit now.
  bool touch(int rank, State& me, int owner, Space space, int unit, bool is_write) {
    const UnitRaces::Access access{
        .accessor = rank, .step = me.index, .owner = owner, .space = space, .unit = unit, .is_write = is_write};
    if (owner == rank) {
      races_.own(access);
      return true;
    }
    if (races_.remote(access, units_of(owner, space))) return true;
    me.is_refuted = true;
    return false;
  }

  bool receive(int rank, int peer) {
    const auto& message = channels_.front(peer, rank);
    if (message.values.size() != terms_.size()) {
      return refute(rank, "receives {} units from rank {}, which sends {} in its step {}", terms_.size(), peer,
                    message.values.size(), message.step);
    }
    for (std::size_t k = 0; k < terms_.size(); ++k) add(k, message.values[k]);
    flags_.clock(rank) = std::max(flags_.clock(rank), message.clock + 1);
    if (request_.counts_news) flags_.news(rank).join(message.news);
    if (channels_.pop(peer, rank)) ready_.push_back(peer);
    return true;
  }

  bool write(int rank, State& me, const Operand& to) {
    if (to.space == Space::channel) {
      send(rank, me, to.ranks.first);
      return true;
    }
    if (to.space == Space::input) return refute(rank, "writes into an input");
    if (count_of(to.units) != static_cast<std::int64_t>(terms_.size())) {
      return refute(rank, "a MOVE of {} units to or from {}", count_of(to.units), terms_.size());
    }
    bool is_right = true;
    for (int i = 0; i < to.ranks.n && is_right; ++i) {
      const int owner = to.ranks.at(i, ranks_);
      const int count = units_of(owner, to.space);
      if (count == 0) {
        return refute(rank, "writes the {} of rank {}, which has none", steps::name_of(to.space), owner);
      }
      steps::for_units(to.units, count, [&](int k, int unit) {
        is_right = is_right && touch(rank, me, owner, to.space, unit, true);
        if (is_right) memory_.write(owner, to.space, unit, terms_[static_cast<std::size_t>(k)]);
      });
    }
    return is_right;
  }

  void send(int rank, State& me, int peer) {
    bool is_read = false;
    auto& message = channels_.push(rank, peer, is_read);
    message.values.assign(terms_.begin(), terms_.end());
    message.clock = flags_.clock(rank);
    message.step = me.index;
    if (request_.counts_news) message.news = flags_.news(rank);
    if (is_read) ready_.push_back(peer);
  }

  /// Nobody can go on: says of the first few what they wait for.
  void report_stuck() {
    if (std::ranges::any_of(states_, [](const State& me) { return me.is_refuted; })) return;  // that is the cause
    for (int rank = 0; rank < ranks_; ++rank) {
      const State& me = state(rank);
      if (me.index == me.count) continue;
      const Step& step = me.current;
      if (step.verb == Verb::wait) {
        const int peer = flags_.missing(rank);
        const bool is_done = state(peer).index == state(peer).count;
        if (is_done) {
          findings_.add(rank, me.index, "WAIT for phase {} of rank {}, which never signals it to rank {}", step.phase,
                        peer, rank);
        } else {
          findings_.add(rank, me.index, "deadlock: waits for phase {} of rank {}, which is itself stuck", step.phase,
                        peer);
        }
        continue;
      }
      explain_channels(rank, me, step);
    }
  }
  void explain_channels(int rank, const State& me, const Step& step) {
    const auto has_ended = [&](int peer) { return state(peer).index == state(peer).count; };
    for (const Operand& from : step.sources) {
      if (from.space != Space::channel || channels_.full(from.ranks.first, rank) > 0) continue;
      findings_.add(rank, me.index, "deadlock: waits for a message from rank {}, which {}", from.ranks.first,
                    has_ended(from.ranks.first) ? "has ended without sending it" : "is itself stuck");
    }
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel || channels_.full(rank, to.ranks.first) < request_.form.slots) continue;
      findings_.add(rank, me.index,
                    "deadlock: with {} slot{} per channel, none becomes free "
                    "to rank {}{}",
                    request_.form.slots, request_.form.slots == 1 ? "" : "s", to.ranks.first,
                    has_ended(to.ranks.first) ? ", which has ended" : "");
    }
  }

  void report_left_over() {
    channels_.for_full([&](int from, int to, int step) {
      findings_.add(from, step, "sends a message to rank {} that is never received", to);
    });
    flags_.finish();
  }

  void check_outputs() {
    const bool reduces = is_reducing(problem_.collective);
    const bool divides = reduces && takes_op(problem_.collective, Op::avg) && ranks_ > 1;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int unit = 0; unit < units_of(rank, Space::output); ++unit) {
        const Sum value = memory_.read(rank, Space::output, unit);
        const Origin origin = origin_of(problem_, rank, unit / per_block_);
        if (value.finals == Sum::kUnwritten) {
          findings_.add(rank, -1, "output unit {} is never written", unit);
        } else if (value.sum != steps::sum_of_inputs(origin, origin.block * per_block_ + unit % per_block_)) {
          findings_.add(rank, -1, "output unit {} does not hold what it should", unit);
        } else if (divides && value.finals != 1) {
          findings_.add(rank, -1, "output unit {} is made final {} times instead of once", unit, value.finals);
        } else if (reduces) {
          label(rank, unit, value, origin);
        }
      }
    }
  }
  /// Of all collectives that reduce, all_reduce alone has the same output on
  /// several ranks.
  void label(int rank, int unit, const Sum& value, const Origin& origin) {
    result_.labels.keeps_order = *result_.labels.keeps_order && value.is_in_order(origin);
    if (problem_.collective != Collective::all_reduce) return;
    const bool is_same = rank == 0 || value.tree == memory_.read(0, Space::output, unit).tree;
    result_.labels.same_bits = *result_.labels.same_bits && is_same;
  }

  void check_news() {
    if (!request_.counts_news) return;
    result_.has_heard_of_all = true;
    for (int rank = 0; rank < ranks_ && result_.has_heard_of_all; ++rank) {
      result_.has_heard_of_all = flags_.news(rank).holds_all(ranks_);
    }
  }

  const Schedule& schedule_;
  const Problem& problem_;
  const WalkRequest& request_;
  AllRanks& result_;
  int ranks_;
  int per_block_;
  Findings findings_;
  bool has_equal_inputs_ = true;  ///< all ranks' are as large
  steps::UnitFlags flags_;
  steps::UnitMemory memory_;
  steps::Overlaps overlaps_;
  UnitRaces races_;
  std::vector<State> states_;
  steps::UnitChannels channels_;
  std::deque<int> ready_;
  std::vector<Sum> terms_;  ///< of the MOVE at hand
  bool has_finals_ = false;
  std::vector<const Operand*> kept_;
};

}  // namespace

std::int64_t bytes_of_values(const Schedule& schedule) { return steps::bytes_of_memory(schedule); }

AllRanks walk_steps(const Schedule& schedule, const WalkRequest& request) {
  AllRanks result;
  StepsWalk(schedule, request, result).run();
  return result;
}

}  // namespace tutti

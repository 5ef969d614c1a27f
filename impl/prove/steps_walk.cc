// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/steps_walk.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "impl/prove/arcs.h"
#include "impl/prove/findings.h"
#include "impl/prove/unit_races.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

struct Sum {
  std::uint64_t sum = 0;
  int finals = kUnwritten;

  static constexpr int kUnwritten = -1;
};

class StepsWalk {
 public:
  StepsWalk(const Schedule& schedule, const WalkRequest& request, AllRanks& result)
      : schedule_(schedule),
        problem_(schedule.problem),
        request_(request),
        result_(result),
        ranks_(problem_.ranks),
        per_block_(schedule.shape.units_per_block),
        overlaps_(problem_, per_block_, request.form),
        races_(schedule, request.form, findings_),
        states_(static_cast<std::size_t>(ranks_)) {}

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
    for (const State& me : states_) depth = std::max(depth, me.clock);
    for (State& me : states_) {
      me.cost.steps = me.count;
      me.cost.depth = depth;
      result_.costs.push_back(me.cost);
    }
    result_.findings = findings_.take();
  }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kNone = -1;

  struct Message {
    std::vector<Sum> values;
    Arcs news;
    std::int64_t clock = 0;
    int step = 0;
    int next = kNone;
  };
  struct Channel {
    int first = kNone;  ///< in messages_
    int last = kNone;
    int full = 0;
    bool is_read = false;     ///< the receiver waits for it
    bool is_awaited = false;  ///< the sender waits for room
  };
  struct Signal {
    int phase;
    int index;
    std::int64_t clock;
    RankSet ranks;
    Arcs news;
  };
  struct Waited {
    int phase;
    RankSet ranks;
  };
  struct State {
    int index = 0;
    int count = 0;
    int heard = 0;            ///< ranks of the current WAIT that were heard
    int phase = 0;            ///< last phase in program order
    int last_signal = 0;      ///< its phase
    bool is_refuted = false;  ///< its current step can never be done, and a finding says so
    bool is_in_turn = false;  ///< the step before takes turns with the current one
    Step current;
    std::int64_t clock = 0;
    std::vector<Signal> signals;
    std::vector<int> waiting;  ///< ranks that wait for a SIGNAL of this one
    std::vector<Waited> waits_done;
    std::size_t user = 0;  ///< in values_
    std::size_t scratch = 0;
    std::size_t user_units = 0;
    Arcs news;
    Cost cost;
  };

  [[nodiscard]] State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::uint64_t key(int from, int to) const {
    return static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  }
  template <class... Args>
  bool refute(int rank, fmt::format_string<Args...> format, Args&&... args) {
    findings_.add(rank, state(rank).index, format, std::forward<Args>(args)...);
    state(rank).is_refuted = true;
    return false;
  }

  void prepare() {
    std::size_t size = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      State& me = state(rank);
      me.count = schedule_.step_count(rank);
      me.user = size;
      me.user_units = static_cast<std::size_t>(units_of_user(rank));
      size += me.user_units;
      me.scratch = size;
      size += static_cast<std::size_t>(schedule_.shape.scratch_units);
      if (request_.counts_news) me.news = Arcs(rank);
      if (me.count > 0) fetch(rank, me);
      ready_.push_back(rank);
    }
    values_.resize(size);
    for (int rank = 0; rank < ranks_ && request_.form.is_in_place; ++rank) {
      for (int unit = 0; unit < units_of(rank, Space::input); ++unit) {
        *value_at(rank, Space::input, unit) = {.sum = steps::input_value(rank, unit), .finals = 0};
      }
    }
  }

  /// The current step, if it has no flaw.
  void fetch(int rank, State& me) {
    me.current = schedule_.step(rank, me.index);
    const Place place{.is_in_turn_with_previous = me.is_in_turn, .is_last = me.index + 1 == me.count};
    const std::string flaw = flaw_of(schedule_, me.current, place);
    if (!flaw.empty()) refute(rank, "{}", flaw);
  }

  [[nodiscard]] int units_of(int rank, Space space) const {
    return space == Space::input    ? input_blocks(problem_, rank) * per_block_
           : space == Space::output ? output_blocks(problem_, rank) * per_block_
                                    : schedule_.shape.scratch_units;
  }
  /// Of the output; in place of both.
  [[nodiscard]] int units_of_user(int rank) const {
    const int outputs = units_of(rank, Space::output);
    if (!request_.form.is_in_place) return outputs;
    const auto end = [&](Space space, int units) {
      return units == 0 ? 0 : steps::begin_in_place(problem_, per_block_, rank, space) + units;
    };
    return std::max(end(Space::output, outputs), end(Space::input, units_of(rank, Space::input)));
  }
  /// Null: an input that is nowhere but in its number.
  [[nodiscard]] Sum* value_at(int rank, Space space, int unit) {
    const State& owner = state(rank);
    const auto at = static_cast<std::size_t>(unit);
    if (space == Space::scratch) return &values_[owner.scratch + at];
    if (!request_.form.is_in_place) return space == Space::input ? nullptr : &values_[owner.user + at];
    const auto begin = static_cast<std::size_t>(steps::begin_in_place(problem_, per_block_, rank, space));
    return &values_[owner.user + begin + at];
  }

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

  void signal(int rank, State& me) {
    const Step& step = me.current;
    if (step.phase <= me.last_signal) {
      findings_.add(rank, me.index, "SIGNAL of phase {} after phase {}: phases must rise", step.phase, me.last_signal);
    }
    me.last_signal = std::max(me.last_signal, step.phase);
    me.phase = std::max(me.phase, step.phase);
    me.signals.push_back(
        {.phase = step.phase, .index = me.index, .clock = me.clock, .ranks = step.ranks, .news = me.news});
    races_.signalled(rank, me.index, step);
    signalled_pairs_ += step.ranks.n;
    for (const int waiting : me.waiting) ready_.push_back(waiting);
    me.waiting.clear();
  }

  bool wait(int rank, State& me) {
    const Step& step = me.current;
    if (me.heard == 0 && step.phase < me.phase) {
      findings_.add(rank, me.index, "WAIT for phase {} after phase {}: phases must rise", step.phase, me.phase);
    }
    me.phase = std::max(me.phase, step.phase);
    for (; me.heard < step.ranks.n; ++me.heard) {
      const int peer = step.ranks.at(me.heard, ranks_);
      State& other = state(peer);
      // Phases rise from SIGNAL to SIGNAL, or a finding says so.
      const auto at = std::ranges::lower_bound(other.signals, step.phase, {}, &Signal::phase);
      if (at == other.signals.end() || at->phase != step.phase) {
        other.waiting.push_back(rank);
        return false;
      }
      if (!contains(at->ranks, rank, ranks_)) {
        return refute(rank, "WAIT for phase {} of rank {}, which never signals it to rank {}", step.phase, peer, rank);
      }
      check_rises(rank, me, peer);
      me.clock = std::max(me.clock, at->clock + 1);
      if (request_.counts_news) me.news.join(at->news);
      ++waited_pairs_;
    }
    me.heard = 0;
    me.waits_done.push_back({.phase = step.phase, .ranks = step.ranks});
    races_.waited(rank, me.index, step);
    return true;
  }

  /// That it has not waited for this or a later phase of `peer`. Phases rise from WAIT to WAIT, or a finding says so.
  void check_rises(int rank, State& me, int peer) {
    for (std::size_t i = me.waits_done.size(); i-- > 0 && me.waits_done[i].phase >= me.current.phase;) {
      if (!contains(me.waits_done[i].ranks, peer, ranks_)) continue;
      findings_.add(rank, me.index, "WAIT for phase {} of rank {} after phase {}: phases must rise", me.current.phase,
                    peer, me.waits_done[i].phase);
      return;
    }
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
    terms_.assign(static_cast<std::size_t>(length), Sum{.sum = 0, .finals = 0});
    has_finals_ = false;
    int sources = 0;
    for (const Operand& from : step.sources) {
      sources += from.ranks.n;
      if (!kept_.empty() && !read(rank, me, from)) return false;
    }
    if (sources > 1 && has_finals_) return refute(rank, "reduces a value that is final already");
    ++me.clock;
    if (step.is_final) {
      for (Sum& value : terms_) ++value.finals;
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

  /// Whether every source is full and every destination has room. Otherwise the channel tells when it is worth a look.
  bool has_channels(int rank, const Step& step) {
    for (const Operand& from : step.sources) {
      if (from.space != Space::channel) continue;
      Channel& channel = channels_[key(from.ranks.first, rank)];
      if (channel.full > 0) continue;
      channel.is_read = true;
      return false;
    }
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel) continue;
      Channel& channel = channels_[key(rank, to.ranks.first)];
      if (channel.full < request_.form.slots) continue;
      channel.is_awaited = true;
      return false;
    }
    return true;
  }

  void add(std::size_t k, const Sum& value) {
    terms_[k].sum += value.sum;
    terms_[k].finals += value.finals;
    has_finals_ = has_finals_ || value.finals > 0;
  }

  bool read(int rank, State& me, const Operand& from) {
    if (from.space == Space::channel) return receive(rank, me, from.ranks.first);
    if (count_of(from.units) != static_cast<std::int64_t>(terms_.size())) {
      return refute(rank, "a MOVE of {} units to or from {}", count_of(from.units), terms_.size());
    }
    bool is_right = true;
    for (int i = 0; i < from.ranks.n && is_right; ++i) {
      const int owner = from.ranks.at(i, ranks_);
      const int count = units_of(owner, from.space);
      if (count == 0) {
        return refute(rank, "reads the {} of rank {}, which has none", steps::name_of(from.space), owner);
      }
      steps::for_units(from.units, count, [&](int k, int unit) {
        is_right = is_right && touch(rank, me, owner, from.space, unit, false);
        if (!is_right) return;
        const Sum* const value = value_at(owner, from.space, unit);
        if (value == nullptr) {
          add(static_cast<std::size_t>(k), {.sum = steps::input_value(owner, unit), .finals = 0});
        } else if (value->finals == Sum::kUnwritten) {
          is_right = refute(rank, "reads {} unit {} of rank {}, which nobody has written", steps::name_of(from.space),
                            unit, owner);
        } else {
          add(static_cast<std::size_t>(k), *value);
        }
      });
    }
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

  bool receive(int rank, State& me, int peer) {
    const auto found = channels_.find(key(peer, rank));
    Channel& channel = found->second;
    Message& message = messages_[static_cast<std::size_t>(channel.first)];
    if (message.values.size() != terms_.size()) {
      return refute(rank, "receives {} units from rank {}, which sends {} in its step {}", terms_.size(), peer,
                    message.values.size(), message.step);
    }
    for (std::size_t k = 0; k < terms_.size(); ++k) add(k, message.values[k]);
    me.clock = std::max(me.clock, message.clock + 1);
    if (request_.counts_news) me.news.join(message.news);
    free_.push_back(channel.first);
    channel.first = message.next;
    --channel.full;
    if (channel.is_awaited) ready_.push_back(peer);
    channel.is_awaited = false;
    if (channel.full == 0) channels_.erase(found);
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
        if (is_right) *value_at(owner, to.space, unit) = terms_[static_cast<std::size_t>(k)];
      });
    }
    return is_right;
  }

  void send(int rank, State& me, int peer) {
    int index = static_cast<int>(messages_.size());
    if (free_.empty()) {
      messages_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Message& message = messages_[static_cast<std::size_t>(index)];
    message.values.assign(terms_.begin(), terms_.end());
    message.clock = me.clock;
    message.step = me.index;
    message.next = kNone;
    if (request_.counts_news) message.news = me.news;
    Channel& channel = channels_[key(rank, peer)];
    (channel.full == 0 ? channel.first : messages_[static_cast<std::size_t>(channel.last)].next) = index;
    channel.last = index;
    ++channel.full;
    if (channel.is_read) ready_.push_back(peer);
    channel.is_read = false;
  }

  /// Nobody can go on: says of the first few what they wait for.
  void report_stuck() {
    if (std::ranges::any_of(states_, [](const State& me) { return me.is_refuted; })) return;  // that is the cause
    for (int rank = 0; rank < ranks_; ++rank) {
      const State& me = state(rank);
      if (me.index == me.count) continue;
      const Step& step = me.current;
      if (step.verb == Verb::wait) {
        const int peer = step.ranks.at(me.heard, ranks_);
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
    const auto full = [&](int from, int to) {
      const auto found = channels_.find(key(from, to));
      return found == channels_.end() ? 0 : found->second.full;
    };
    const auto has_ended = [&](int peer) { return state(peer).index == state(peer).count; };
    for (const Operand& from : step.sources) {
      if (from.space != Space::channel || full(from.ranks.first, rank) > 0) continue;
      findings_.add(rank, me.index, "deadlock: waits for a message from rank {}, which {}", from.ranks.first,
                    has_ended(from.ranks.first) ? "has ended without sending it" : "is itself stuck");
    }
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel || full(rank, to.ranks.first) < request_.form.slots) continue;
      findings_.add(rank, me.index, "deadlock: with {} slot{} per channel, none becomes free to rank {}{}",
                    request_.form.slots, request_.form.slots == 1 ? "" : "s", to.ranks.first,
                    has_ended(to.ranks.first) ? ", which has ended" : "");
    }
  }

  void report_left_over() {
    for (const auto& [ends, channel] : channels_) {
      if (channel.full == 0) continue;
      findings_.add(static_cast<int>(ends >> 32U), messages_[static_cast<std::size_t>(channel.first)].step,
                    "sends a message to rank {} that is never received", ends & UINT32_MAX);
    }
    if (signalled_pairs_ == waited_pairs_) return;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const Signal& signal : state(rank).signals) {
        for (int i = 0; i < signal.ranks.n; ++i) {
          const int target = signal.ranks.at(i, ranks_);
          const auto is_heard = [&](const Waited& wait) {
            return wait.phase == signal.phase && contains(wait.ranks, rank, ranks_);
          };
          if (std::ranges::any_of(state(target).waits_done, is_heard)) continue;
          findings_.add(rank, signal.index, "SIGNAL of phase {} to rank {}, which never waits for it", signal.phase,
                        target);
          return;
        }
      }
    }
  }

  void check_outputs() {
    const bool divides = is_reducing(problem_.collective) && takes_op(problem_.collective, Op::avg) && ranks_ > 1;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int unit = 0; unit < units_of(rank, Space::output); ++unit) {
        const Sum& value = *value_at(rank, Space::output, unit);
        if (value.finals == Sum::kUnwritten) {
          findings_.add(rank, -1, "output unit {} is never written", unit);
        } else if (value.sum != should_be(rank, unit)) {
          findings_.add(rank, -1, "output unit {} does not hold what it should", unit);
        } else if (divides && value.finals != 1) {
          findings_.add(rank, -1, "output unit {} is made final {} times instead of once", unit, value.finals);
        }
      }
    }
  }

  std::uint64_t should_be(int rank, int unit) {
    const Origin origin = origin_of(problem_, rank, unit / per_block_);
    const int from = origin.block * per_block_ + unit % per_block_;
    if (origin.first == origin.last) return steps::input_value(origin.first, from);
    Prefix& sum = sums_[from];  // ranks come in order, and so do the prefixes that they hold
    if (origin.first != sum.first || origin.last < sum.last) sum = {.first = origin.first, .last = origin.first - 1};
    while (sum.last < origin.last) sum.sum += steps::input_value(++sum.last, from);
    return sum.sum;
  }

  void check_news() {
    if (!request_.counts_news) return;
    result_.has_heard_of_all = true;
    for (int rank = 0; rank < ranks_ && result_.has_heard_of_all; ++rank) {
      result_.has_heard_of_all = state(rank).news.holds_all(ranks_);
    }
  }

  struct Prefix {
    int first = 0;
    int last = -1;
    std::uint64_t sum = 0;
  };

  const Schedule& schedule_;
  const Problem& problem_;
  const WalkRequest& request_;
  AllRanks& result_;
  int ranks_;
  int per_block_;
  Findings findings_;
  steps::Overlaps overlaps_;
  UnitRaces races_;
  std::vector<State> states_;
  std::vector<Sum> values_;
  std::unordered_map<std::uint64_t, Channel> channels_;  ///< where something is or somebody waits
  std::deque<Message> messages_;
  std::vector<int> free_;  ///< in messages_
  std::deque<int> ready_;
  std::vector<Sum> terms_;  ///< of the MOVE at hand
  bool has_finals_ = false;
  std::vector<const Operand*> kept_;
  std::int64_t signalled_pairs_ = 0;
  std::int64_t waited_pairs_ = 0;
  std::unordered_map<int, Prefix> sums_;
};

}  // namespace

std::int64_t bytes_of_values(const Schedule& schedule) {
  std::int64_t units = 0;
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    units += std::max(output_blocks(schedule.problem, rank), input_blocks(schedule.problem, rank)) *
             std::int64_t{schedule.shape.units_per_block};
    units += schedule.shape.scratch_units;
  }
  constexpr std::int64_t kOfAccesses = 32;  // that are kept for the check of races
  const bool exposes = schedule.shape.exposes_input || schedule.shape.exposes_output;
  return units * (static_cast<std::int64_t>(sizeof(Sum)) + (exposes ? kOfAccesses : 0));
}

AllRanks walk_steps(const Schedule& schedule, const WalkRequest& request) {
  AllRanks result;
  StepsWalk(schedule, request, result).run();
  return result;
}

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/walk.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "harness/simulate/channels.h"
#include "harness/simulate/routes.h"
#include "harness/simulate/walk_state.h"
#include "impl/collective/collective.h"

namespace tutti::harness::simulate {
namespace {

class Walker {
 public:
  Walker(const Schedule& schedule, double block_bytes, const Machine& machine, const WalkOptions& options)
      : schedule_(schedule),
        model_(machine.model),
        machine_(machine),
        unit_bytes_(block_bytes / std::max(1, schedule.shape.units_per_block)),
        ranks_(schedule.problem.ranks),
        period_(options.period > 0 ? options.period : ranks_),
        is_by_time_(options.order == Order::time),
        keeps_path_(options.keeps_path),
        keeps_loads_(options.keeps_loads),
        routes_(machine, ranks_, options.period),
        interfaces_(static_cast<std::size_t>(routes_.interfaces())),
        links_(static_cast<std::size_t>(routes_.links())),
        states_(static_cast<std::size_t>(period_)) {
    if (keeps_path_) {
      now_.resize(states_.size());
      traced_.resize(states_.size());
    }
    TUTTI_ASSERT(ranks_ % period_ == 0, "{} ranks in blocks of {}", ranks_, period_);
  }

  Result<Prediction> run() {
    for (int rank = period_ - 1; rank >= 0; --rank) {
      state(rank).steps = schedule_.step_count(rank);
      wake(rank, 0);
    }
    while (has_ready() && failure_.is_ok()) {
      const auto [time, rank] = take_ready();
      state(rank).clock = std::max(state(rank).clock, time);
      go_on(rank);
    }
    TUTTI_RETURN_IF_ERROR(failure_);
    for (int rank = 0; rank < period_; ++rank) {
      const RankState& one = state(rank);
      if (one.next < one.steps) {
        return error(Code::refuted, "rank {} never gets past step {} of {} {}", rank, one.next,
                     to_string(schedule_.problem.collective), schedule_.name);
      }
      prediction_.finish.push_back(one.clock);
      prediction_.ns = std::max(prediction_.ns, one.clock);
    }
    if (keeps_path_) find_path();
    if (keeps_loads_) add_loads();
    return std::move(prediction_);
  }

 private:
  using Ready = std::pair<double, int>;  ///< from when, rank

  RankState& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }

  void wake(int rank, double time) {
    if (is_by_time_)
      by_time_.emplace(time, rank);
    else
      in_turn_.push_back(rank);
  }
  [[nodiscard]] bool has_ready() const { return is_by_time_ ? !by_time_.empty() : !in_turn_.empty(); }
  Ready take_ready() {
    if (!is_by_time_) {
      const int rank = in_turn_.back();
      in_turn_.pop_back();
      return {0, rank};
    }
    const Ready ready = by_time_.top();
    by_time_.pop();
    return ready;
  }

  void go_on(int rank) {
    RankState& me = state(rank);
    while (me.next < me.steps) {
      const Step step = schedule_.step(rank, me.next);
      const bool is_done = step.verb == Verb::signal ? signal(rank, step)
                           : step.verb == Verb::wait ? wait(rank, step)
                                                     : move(rank, step);
      if (!is_done) return;
      if (keeps_path_) {
        Traced& now = now_[static_cast<std::size_t>(rank)];
        now.end = me.clock;
        traced_[static_cast<std::size_t>(rank)].push_back(std::exchange(now, Traced{}));
      }
      me.ended = me.clock;
      ++me.next;
      ++prediction_.steps;
      if (!is_by_time_) continue;
      if (me.next < me.steps) wake(rank, me.clock);
      return;
    }
  }

  /// The rank that is walked in place of `rank`.
  [[nodiscard]] int stand_in(int rank) const { return period_ == ranks_ ? rank : rank % period_; }

  /// The channel as the one that is walked in place of `to` sees it: both ranks go back by whole periods.
  [[nodiscard]] std::uint64_t key_of(int from, int to) const {
    const int receiver = stand_in(to);
    int sender = from - (to - receiver);
    if (sender < 0) sender += ranks_;
    return static_cast<std::uint64_t>(sender) << 32U | static_cast<unsigned>(receiver);
  }

  const Costs& costs_of(std::int64_t units) {
    Costs& costs = costs_[static_cast<std::size_t>(units) % costs_.size()];
    if (costs.units == units) return costs;
    const double bytes = static_cast<double>(units) * unit_bytes_;
    const auto of = [bytes](const LinkCosts& link) {
      return Costs::OfLink{link.send.at(bytes), link.receive.at(bytes), link.wire.at(bytes)};
    };
    costs = {.units = units,
             .near = of(model_.near),
             .far = of(model_.far),
             .reduce = model_.reduce.at(bytes),
             .copy = model_.copy.at(bytes),
             .read = model_.read.at(bytes),
             .read_in_cache = model_.cache.read.at(bytes),
             .handshake = bytes > model_.eager_bytes ? model_.handshake : 0};
    return costs;
  }

  // Flags

  /// A flag to another node is a message without bytes; one within the node is a store.
  bool signal(int rank, const Step& step) {
    RankState& me = state(rank);
    me.flags.push_back({step.ranks, step.phase, me.clock, me.next});
    if (has_far(rank, step.ranks)) me.clock += step.ranks.n * costs_of(0).far.send * routes_.processor_factor(rank);
    for (const int other : me.waiting) wake(other, me.clock);
    me.waiting.clear();
    return true;
  }

  [[nodiscard]] bool has_far(int rank, const RankSet& set) const {
    const int last = set.at(set.n - 1, ranks_);
    return set.n > machine_.ranks_per_node || !machine_.is_near(rank, set.first) || !machine_.is_near(rank, last);
  }

  /// Which one of the set `rank` is; -1: none.
  [[nodiscard]] int index_in(const RankSet& set, int rank) const {
    if (set.stride == 1) {
      const int distance = rank >= set.first ? rank - set.first : rank - set.first + ranks_;
      return distance < set.n ? distance : -1;
    }
    for (int i = 0; i < set.n; ++i) {
      if (set.at(i, ranks_) == rank) return i;
    }
    return -1;
  }

  bool wait(int rank, const Step& step) {
    RankState& me = state(rank);
    for (; me.seen < step.ranks.n; ++me.seen) {
      const int peer = step.ranks.at(me.seen, ranks_);
      if (peer == rank) continue;  // a set may hold the rank itself, which has signalled before
      const int setter = stand_in(peer);
      int seen_from_there = rank - (peer - setter);
      if (seen_from_there < 0) seen_from_there += ranks_;
      RankState& other = state(setter);
      int place = -1;
      const auto flag = std::ranges::find_if(other.flags, [&](const Flag& one) {
        return one.phase == step.phase && (place = index_in(one.to, seen_from_there)) >= 0;
      });
      if (flag == other.flags.end()) {
        other.waiting.push_back(rank);
        return false;
      }
      const bool is_near = machine_.is_near(rank, peer);
      const Costs::OfLink& far = costs_of(0).far;
      const double sent = is_near ? flag->set : flag->set + (place + 1) * far.send * routes_.processor_factor(setter);
      const bool is_in_cache = machine_.share_cache(rank, peer);
      const double latency = is_in_cache ? model_.cache.flag : is_near ? model_.flag : model_.far.latency;
      if (keeps_path_ && sent + latency > me.clock)
        wait_for(rank, peer, {.step = flag->step, .sent = sent, .latency = latency}, sent + latency);
      me.clock = std::max(me.clock, sent + latency);
      const double look = is_in_cache ? model_.cache.look : model_.look;
      if (!is_near) me.clock += far.receive * routes_.processor_factor(rank);
      if (is_near && step.ranks.n > 1) me.clock += look * routes_.processor_factor(rank);
    }
    me.seen = 0;
    return true;
  }

  // Moves

  bool move(int rank, const Step& step) {
    RankState& me = state(rank);
    double start = me.clock;
    int last = kNoRank;
    for (const Operand& source : step.sources) {
      if (source.space != Space::channel) continue;
      Channel& channel = channels_[key_of(source.ranks.first, rank)];
      if (channel.first == kNoMessage) {
        channel.waiting = rank;
        return false;
      }
      const double arrives = messages_[static_cast<std::size_t>(channel.first)].arrives;
      start = std::max(start, arrives);
      if (keeps_path_ && arrives > me.ended && arrives >= start) last = source.ranks.first;
    }
    if (is_by_time_ && start > me.clock) {
      wake(rank, start);
      return false;
    }
    me.clock = start;
    const std::int64_t units = length_of(step);
    const Costs& costs = costs_of(units);
    if (keeps_path_) {
      now_[static_cast<std::size_t>(rank)].units = units;
      if (last != kNoRank) {
        const int first = channels_[key_of(last, rank)].first;
        wait_for(rank, last, origins_[static_cast<std::size_t>(first)], start);
      }
    }
    int operands = 0, stores = 0;
    Others remote;
    for (const Operand& source : step.sources) {
      operands += source.ranks.n;
      if (source.space == Space::channel)
        receive(rank, source.ranks.first, costs);
      else
        remote.add(others_in(rank, source));
    }
    for (const Operand& destination : step.destinations) {
      if (destination.space == Space::channel) continue;
      stores += destination.ranks.n;
      others_in(rank, destination);
    }
    const double memory = (costs.reduce * std::max(0, operands - 1) + costs.copy * stores + costs.read * remote.beyond +
                           costs.read_in_cache * remote.in_cache) *
                          routes_.processor_factor(rank);
    me.clock += memory;
    if (keeps_path_) now_[static_cast<std::size_t>(rank)].memory = memory;
    for (const Operand& destination : step.destinations) {
      if (destination.space == Space::channel) send(rank, destination.ranks.first, costs);
    }
    return true;
  }

  /// Ranks whose memory an operand is.
  struct Others {
    int in_cache = 0;  ///< that share the cache of who reads it
    int beyond = 0;
    void add(const Others& more) {
      in_cache += more.in_cache;
      beyond += more.beyond;
    }
  };

  /// The operand's ranks that are not `rank` itself.
  Others others_in(int rank, const Operand& operand) {
    if (operand.ranks.n == 1 && operand.ranks.first == rank) return {};
    if (has_far(rank, operand.ranks) && failure_.is_ok()) {
      failure_ =
          error(Code::unavailable, "rank {} uses memory of ranks on other nodes in step {}", rank, state(rank).next);
    }
    const int others = operand.ranks.n - (index_in(operand.ranks, rank) >= 0 ? 1 : 0);
    int sharing = 0;
    for (int i = 0; machine_.ranks_per_cache > 0 && i < operand.ranks.n; ++i) {
      const int other = operand.ranks.at(i, ranks_);
      if (other != rank && machine_.share_cache(rank, other)) ++sharing;
    }
    return {.in_cache = sharing, .beyond = others - sharing};
  }

  void receive(int rank, int from, const Costs& costs) {
    RankState& me = state(rank);
    const std::uint64_t key = key_of(from, rank);
    Channel& channel = channels_[key];
    const int taken = channel.first;
    const Message message = messages_[static_cast<std::size_t>(taken)];
    channel.first = message.next;
    if (channel.first == kNoMessage) channels_.erase(key);
    free_.push_back(taken);
    if (machine_.is_near(rank, from)) {
      me.clock = std::max(me.clock, message.arrives) + costs.near.receive * routes_.processor_factor(rank);
      return;
    }
    const double wire = costs.far.wire * routes_.in_factor(rank);
    Interface& interface = interface_of(rank);
    const double begin = std::max(message.arrives - wire, interface.receives_from);
    interface.receives_from = begin + model_.far.gap + wire;
    interface.receives += model_.far.gap + wire;
    if (keeps_path_) note_interface(rank, begin + wire - me.clock);
    me.clock = std::max(me.clock, begin + wire) + costs.far.receive * routes_.processor_factor(rank);
  }

  void send(int rank, int to, const Costs& costs) {
    RankState& me = state(rank);
    double arrives = 0;
    Origin origin{.step = me.next};
    if (machine_.is_near(rank, to)) {
      me.clock += costs.near.send * routes_.processor_factor(rank);
      arrives = me.clock + model_.near.latency + costs.near.wire;
      origin.latency = model_.near.latency;
      origin.wire = costs.near.wire;
    } else {
      Interface& interface = interface_of(rank);
      const double wire = costs.far.wire * routes_.out_factor(rank) * routes_.pair_factor(rank, to);
      const double begin = std::max(me.clock, interface.sends_from);
      if (keeps_path_) note_interface(rank, begin - me.clock);
      me.clock = begin + costs.far.send * routes_.processor_factor(rank);
      interface.sends_from = begin + model_.far.gap + wire;
      interface.sends += model_.far.gap + wire;
      origin.latency = costs.handshake;
      arrives = across(rank, to, me.clock + costs.handshake, costs.far.wire, wire, origin);
    }
    ++prediction_.messages;
    origin.sent = me.clock;
    const int sent = new_message(arrives, origin);
    Channel& channel = channels_[key_of(rank, to)];
    if (channel.first == kNoMessage)
      channel.first = sent;
    else
      messages_[static_cast<std::size_t>(channel.last)].next = sent;
    channel.last = sent;
    if (channel.waiting == kNoRank) return;
    const int receiver = std::exchange(channel.waiting, kNoRank);
    wake(receiver, std::max(arrives, state(receiver).clock));
  }

  /// When the last byte arrives of a message whose first one leaves at `head`. It goes on through a link as soon as its
  /// head is there and the messages before it are through.
  double across(int from, int to, double head, double wire, double slowest, Origin& origin) {
    const int hops = routes_.find(from, to, route_);
    for (const int index : route_) {
      Link& link = links_[static_cast<std::size_t>(index)];
      const double busy = wire * routes_.share(index);
      origin.links += std::max(0.0, link.free_from - head);
      head = std::max(head, link.free_from);
      link.free_from = head + busy;
      link.busy += busy;
      slowest = std::max(slowest, busy);
    }
    const double latency = model_.far.latency + hops * machine_.network.hop;
    origin.latency += latency;
    origin.wire = slowest;
    return head + latency + slowest;
  }

  Interface& interface_of(int rank) { return interfaces_[static_cast<std::size_t>(routes_.interface_of(rank))]; }

  int new_message(double arrives, const Origin& origin) {
    int index = static_cast<int>(messages_.size());
    if (free_.empty()) {
      messages_.emplace_back();
      if (keeps_path_) origins_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    messages_[static_cast<std::size_t>(index)] = {.arrives = arrives};
    if (keeps_path_) origins_[static_cast<std::size_t>(index)] = origin;
    return index;
  }

  // What is kept

  void wait_for(int rank, int from, const Origin& origin, double arrived) {
    Traced& now = now_[static_cast<std::size_t>(rank)];
    now.from = from;
    now.origin = origin;
    now.arrived = arrived;
  }

  void note_interface(int rank, double waited) {
    now_[static_cast<std::size_t>(rank)].interface += std::max(0.0, waited);
  }

  /// From the last rank's last step back, each time to what was waited for.
  void find_path() {
    const auto latest = std::ranges::max_element(prediction_.finish);
    int walked = static_cast<int>(latest - prediction_.finish.begin());
    int further = 0;  ///< how far the path's rank lies from the one that was walked for it
    int index = state(walked).steps - 1;
    double end = *latest;
    while (index >= 0) {
      const auto& steps = traced_[static_cast<std::size_t>(walked)];
      const Traced& step = steps[static_cast<std::size_t>(index)];
      const bool has_waited = step.from != kNoRank;
      const double before = index > 0 ? steps[static_cast<std::size_t>(index) - 1].end : 0;
      PathStep on_path{.rank = (walked + further) % ranks_,
                       .step = index,
                       .from = has_waited ? (step.from + further) % ranks_ : kNoRank,
                       .begin = has_waited ? step.origin.sent : before,
                       .end = end,
                       .units = step.units};
      const double inside = end - (has_waited ? step.arrived : before);
      Parts& parts = on_path.parts;
      parts.memory = std::min(inside, step.memory);
      parts.interface = std::min(inside - parts.memory, step.interface);
      parts.processor = inside - parts.memory - parts.interface;
      if (has_waited) {
        parts.latency = step.origin.latency;
        parts.wire = step.origin.wire;
        parts.links = step.origin.links;
      }
      prediction_.path.push_back(on_path);
      end = on_path.begin;
      if (has_waited) {
        const int sender = stand_in(step.from);
        further = (further + step.from - sender + ranks_) % ranks_;
        walked = sender;
        index = step.origin.step;
      } else {
        --index;
      }
    }
    std::ranges::reverse(prediction_.path);
  }

  void add_loads() {
    for (std::size_t i = 0; i < interfaces_.size(); ++i) {
      const std::string name = routes_.interface_name(static_cast<int>(i));
      if (interfaces_[i].sends > 0) prediction_.loads.push_back({name + ", out", interfaces_[i].sends});
      if (interfaces_[i].receives > 0) prediction_.loads.push_back({name + ", in", interfaces_[i].receives});
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].busy > 0) prediction_.loads.push_back({routes_.name(static_cast<int>(i)), links_[i].busy});
    }
    std::ranges::stable_sort(prediction_.loads, std::ranges::greater{}, &Load::busy);
  }

  const Schedule& schedule_;
  const Model& model_;
  const Machine& machine_;
  double unit_bytes_;
  int ranks_;
  int period_;  ///< ranks that are walked
  bool is_by_time_;
  bool keeps_path_, keeps_loads_;
  Routes routes_;
  std::vector<Interface> interfaces_;
  std::vector<Link> links_;
  std::vector<int> route_;
  std::vector<RankState> states_;
  std::array<Costs, 64> costs_;
  Channels<Channel> channels_;
  std::vector<Message> messages_;
  std::vector<Origin> origins_;  ///< of messages_, for the path
  std::vector<int> free_;        ///< of messages_
  std::vector<Traced> now_;      ///< [rank]: the step that is walked
  std::vector<std::vector<Traced>> traced_;
  std::vector<int> in_turn_;  ///< the last one goes on first: what it needs was used just now
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> by_time_;
  Status failure_;
  Prediction prediction_;
};

}  // namespace

Result<Prediction> walk(const Schedule& schedule, double block_bytes, const Machine& machine,
                        const WalkOptions& options) {
  return Walker(schedule, block_bytes, machine, options).run();
}

}  // namespace tutti::harness::simulate

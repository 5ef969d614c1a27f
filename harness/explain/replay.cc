// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

namespace tutti::harness::explain {
namespace {

/// Something on its way from one rank to another.
struct Message {
  std::vector<double> numbers;
  std::vector<int> units;
  int time = 0;
};
struct Said {
  Step signal;
  int time = 0;
};
struct RankState {
  Numbers input, output, scratch;
  std::vector<std::vector<int>> in_scratch;  ///< [unit of scratch]: the units that it holds, by name
  int next = 0;
  int time = 0;  ///< rounds that this rank has behind it
  std::vector<Said> said;
};

double combined(Op op, double a, double b) {
  const auto bits = [&](auto f) {
    return static_cast<double>(f(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  };
  switch (op) {
    case Op::prod:
      return a * b;
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    case Op::band:
      return bits([](std::int64_t x, std::int64_t y) { return x & y; });
    case Op::bor:
      return bits([](std::int64_t x, std::int64_t y) { return x | y; });
    case Op::bxor:
      return bits([](std::int64_t x, std::int64_t y) { return x ^ y; });
    default:
      return a + b;
  }
}

class Follower {
 public:
  Follower(const Schedule& schedule, const Example& example)
      : schedule_(schedule), example_(example), ranks_(schedule.problem.ranks) {
    states_.resize(static_cast<std::size_t>(ranks_));
    told_.steps.resize(states_.size());
    for (int rank = 0; rank < ranks_; ++rank) {
      RankState& state = states_[static_cast<std::size_t>(rank)];
      if (has_data(schedule.problem.collective)) state.input = example.input[static_cast<std::size_t>(rank)];
      state.output.resize(static_cast<std::size_t>(example.numbers_in(BufferSide::output, rank)));
      state.scratch.resize(static_cast<std::size_t>(schedule.shape.scratch_units) * per_unit());
      state.in_scratch.resize(static_cast<std::size_t>(schedule.shape.scratch_units));
    }
  }

  Result<Replay> run() {
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        while (advance(rank)) is_moving = true;
      }
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (state(rank).next < schedule_.step_count(rank)) {
        return error(Code::refuted, "rank {} never gets past step {} of {} {}", rank, state(rank).next,
                     to_string(schedule_.problem.collective), schedule_.name);
      }
      told_.output.push_back(state(rank).output);
    }
    return std::move(told_);
  }

 private:
  RankState& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::size_t per_unit() const { return static_cast<std::size_t>(example_.shown / example_.units); }

  bool advance(int rank) {
    RankState& me = state(rank);
    if (me.next >= schedule_.step_count(rank)) return false;
    Told told{.rank = rank, .step = schedule_.step(rank, me.next)};
    if (told.step.verb == Verb::wait && !hear(told)) return false;
    if (told.step.verb == Verb::signal) me.said.push_back({told.step, me.time});
    if (told.step.verb == Verb::move) {
      if (!has_arrived(told)) return false;
      move(told);
    }
    told_.steps[static_cast<std::size_t>(rank)].push_back(std::move(told));
    ++me.next;
    return true;
  }

  bool hear(Told& told) {
    int time = state(told.rank).time;
    for (int i = 0; i < told.step.ranks.n; ++i) {
      const int peer = told.step.ranks.at(i, ranks_);
      const auto& said = state(peer).said;
      const auto found = std::ranges::find_if(said, [&](const Said& one) {
        return one.signal.phase == told.step.phase && contains(one.signal.ranks, told.rank);
      });
      if (found == said.end()) return false;
      told.heard.push_back({peer, found->signal});
      time = std::max(time, found->time);
    }
    state(told.rank).time = time;
    return true;
  }

  [[nodiscard]] bool contains(const RankSet& set, int rank) const {
    for (int i = 0; i < set.n; ++i) {
      if (set.at(i, ranks_) == rank) return true;
    }
    return false;
  }

  std::deque<Message>& channel(int from, int to) { return channels_[{from, to}]; }

  bool has_arrived(const Told& told) {
    return std::all_of(told.step.sources.begin(), told.step.sources.end(), [&](const Operand& source) {
      return source.space != Space::channel || !channel(source.ranks.first, told.rank).empty();
    });
  }

  Numbers& numbers_of(Space space, int rank) {
    RankState& owner = state(rank);
    return space == Space::input ? owner.input : space == Space::output ? owner.output : owner.scratch;
  }

  [[nodiscard]] std::vector<int> members(const UnitSet& set, std::size_t total) const {
    std::vector<int> list;
    for (int j = 0; j < set.repeat; ++j) {
      for (int i = 0; i < set.length; ++i) list.push_back((set.start + j * set.stride + i) % static_cast<int>(total));
    }
    return list;
  }

  [[nodiscard]] std::size_t units_in(Space space, int rank) const {
    if (space == Space::scratch) return static_cast<std::size_t>(schedule_.shape.scratch_units);
    return static_cast<std::size_t>(
        example_.units_in(space == Space::input ? BufferSide::input : BufferSide::output, rank));
  }

  [[nodiscard]] Stretch place(Space space, int rank, int unit) const {
    const auto size = static_cast<int>(per_unit());
    if (space == Space::scratch) return {.first = unit * size, .count = size};
    return example_.place(space == Space::input ? BufferSide::input : BufferSide::output, rank, unit);
  }

  /// Calls `f(number)` for each number of the units that a rank has in a space.
  template <class F>
  void for_each(Space space, int rank, const UnitSet& set, F f) {
    Numbers& numbers = numbers_of(space, rank);
    for (const int member : members(set, units_in(space, rank))) {
      const Stretch at = place(space, rank, member);
      for (int i = 0; i < at.count; ++i) f(numbers[static_cast<std::size_t>(at.first + i)]);
    }
  }

  void read(Told& told, const Operand& source, std::vector<int>& travelled) {
    RankState& me = state(told.rank);
    if (source.space == Space::channel) {
      auto& queue = channel(source.ranks.first, told.rank);
      Message message = std::move(queue.front());
      queue.pop_front();
      me.time = std::max(me.time, message.time);
      told.round = 1;
      travelled = message.units;
      told.sources.push_back(std::move(message.numbers));
      return;
    }
    for (int i = 0; i < source.ranks.n; ++i) {
      const int owner = source.ranks.at(i, ranks_);
      if (owner != told.rank) told.round = 1;
      std::vector<double>& values = told.sources.emplace_back();
      const bool is_scaled = source.space == Space::input && !example_.factors.empty();
      const int factor = is_scaled ? example_.factors[static_cast<std::size_t>(owner)] : 1;
      for_each(source.space, owner, source.units,
               [&](const std::optional<double>& number) { values.push_back(number.value_or(0) * factor); });
    }
  }

  [[nodiscard]] std::size_t most_units(Space space) const {
    std::size_t most = 0;
    for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, units_in(space, rank));
    return most;
  }

  /// The larger of input and output names the units. Where only the smaller one is touched, it is the rank's block of
  /// the larger. Where neither is, what came in a channel knows, or what lies in scratch.
  std::vector<int> units_of(const Told& told, const std::vector<int>& travelled) {
    const bool is_output = most_units(Space::output) >= most_units(Space::input);
    const Space larger = is_output ? Space::output : Space::input;
    const Space smaller = is_output ? Space::input : Space::output;
    const bool differ = most_units(larger) != most_units(smaller);
    for (const Space wanted : {larger, smaller}) {
      for (const auto* list : {&told.step.destinations, &told.step.sources}) {
        for (const Operand& operand : *list) {
          if (operand.space != wanted) continue;
          const int owner = operand.ranks.first;
          std::vector<int> units = members(operand.units, units_in(wanted, owner));
          if (wanted == smaller && differ) {
            for (int& unit : units) unit += owner * example_.units;
          }
          return units;
        }
      }
    }
    if (!travelled.empty()) return travelled;
    std::vector<int> units;
    for (const Operand& source : told.step.sources) {
      if (source.space != Space::scratch) continue;
      for (const int member : members(source.units, state(source.ranks.first).in_scratch.size())) {
        const auto& held = state(source.ranks.first).in_scratch[static_cast<std::size_t>(member)];
        units.insert(units.end(), held.begin(), held.end());
      }
    }
    return units;
  }

  void move(Told& told) {
    RankState& me = state(told.rank);
    std::vector<int> travelled;
    for (const Operand& source : told.step.sources) read(told, source, travelled);
    told.result = told.sources.front();
    for (std::size_t s = 1; s < told.sources.size(); ++s) {
      for (std::size_t i = 0; i < told.result.size(); ++i) {
        told.result[i] = combined(example_.op, told.result[i], told.sources[s][i]);
      }
    }
    if (told.step.is_final && example_.op == Op::avg) {
      for (double& number : told.result) {
        number /= ranks_;
        if (is_integer(example_.dtype)) number = std::trunc(number);
      }
    }
    told.units = units_of(told, travelled);
    for (const Operand& destination : told.step.destinations) {
      const bool is_elsewhere = destination.ranks.n > 1 || destination.ranks.first != told.rank;
      if (destination.space != Space::channel && is_elsewhere) told.round = 1;
    }
    if (told.round != 0) told.round = ++me.time;
    told_.rounds = std::max(told_.rounds, told.round);
    for (const Operand& destination : told.step.destinations) write(told, destination);
  }

  void write(const Told& told, const Operand& destination) {
    if (destination.space == Space::channel) {
      channel(told.rank, destination.ranks.first).push_back({told.result, told.units, state(told.rank).time});
      return;
    }
    for (int i = 0; i < destination.ranks.n; ++i) {
      if (destination.space == Space::scratch) remember(told, destination, destination.ranks.at(i, ranks_));
      std::size_t next = 0;
      for_each(destination.space, destination.ranks.at(i, ranks_), destination.units,
               [&](std::optional<double>& number) { number = told.result[next++]; });
    }
  }

  /// Which units lie in scratch now: one each, or all of them in one.
  void remember(const Told& told, const Operand& destination, int owner) {
    auto& held = state(owner).in_scratch;
    const std::vector<int> places = members(destination.units, held.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const bool is_one_each = places.size() == told.units.size();
      held[static_cast<std::size_t>(places[i])] = is_one_each ? std::vector{told.units[i]} : told.units;
    }
  }

  const Schedule& schedule_;
  const Example& example_;
  int ranks_;
  std::vector<RankState> states_;
  std::map<std::pair<int, int>, std::deque<Message>> channels_;  // from, to
  Replay told_;
};

}  // namespace

Result<Replay> replay(const Schedule& schedule, const Example& example) { return Follower(schedule, example).run(); }

}  // namespace tutti::harness::explain

// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/copies.h"

#include <algorithm>
#include <cstdint>

#include "impl/prove/steps.h"

namespace tutti {
namespace {

class Copies {
 public:
  Copies(const Schedule& schedule, int slots, bool is_in_place_too)
      : schedule_(schedule),
        problem_(schedule.problem),
        slots_(slots),
        is_in_place_too_(is_in_place_too),
        ranks_(problem_.ranks),
        per_block_(schedule.shape.units_per_block),
        states_(static_cast<std::size_t>(ranks_)) {}

  std::optional<std::vector<Cost>> run() {
    if (is_reducing(problem_.collective) || !prepare()) return {};
    for (int index = 0; index < most_steps_; ++index) {
      receives_.clear();
      for (int rank = 0; rank < ranks_; ++rank) {
        if (index < state(rank).count && !begin(rank, index)) return {};
      }
      for (const Receive& receive : receives_) {
        if (!finish(receive)) return {};
      }
    }
    return costs();
  }

 private:
  struct Message {
    int from;
    int unit;
    std::int64_t clock;
  };
  struct State {
    int count = 0;
    int inputs = 0;           ///< units
    int outputs = 0;          ///< units
    int input_begin = 0;      ///< where the input begins in place
    int output_begin = 0;     ///< and the output
    std::size_t written = 0;  ///< in written_
    bool is_in_turn = false;
    std::int64_t clock = 0;
    std::int64_t messages = 0;
    std::vector<Message> arrived;  ///< and not yet received, the oldest first
  };
  struct Receive {
    int rank;
    int peer;
    int unit;
  };

  [[nodiscard]] State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }

  bool prepare() {
    constexpr std::size_t kMostUnits = std::size_t{1} << 31U;  // of a bit each
    std::size_t units = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      State& me = state(rank);
      me.count = schedule_.step_count(rank);
      most_steps_ = std::max(most_steps_, me.count);
      me.inputs = input_blocks(problem_, rank) * per_block_;
      me.outputs = output_blocks(problem_, rank) * per_block_;
      me.input_begin = steps::begin_in_place(problem_, per_block_, rank, Space::input);
      me.output_begin = steps::begin_in_place(problem_, per_block_, rank, Space::output);
      me.written = units;
      units += static_cast<std::size_t>(me.outputs);
      if (units > kMostUnits) return false;
    }
    written_.resize(units);
    return true;
  }

  [[nodiscard]] static bool is_one_unit(const Operand& operand, Space space, int rank, int count) {
    return operand.space == space && operand.ranks.n == 1 && operand.ranks.first == rank && operand.units.length == 1 &&
           operand.units.repeat == 1 && operand.units.start >= 0 && operand.units.start < count;
  }
  [[nodiscard]] bool is_channel(const Operand& operand, int rank) const {
    return operand.space == Space::channel && operand.ranks.n == 1 && operand.ranks.first >= 0 &&
           operand.ranks.first < ranks_ && operand.ranks.first != rank;
  }

  /// A copy or a send; a receive is kept for later. False where the step is none of them, or wrong.
  bool begin(int rank, int index) {
    State& me = state(rank);
    const Step step = schedule_.step(rank, index);
    if (step.verb != Verb::move || step.destinations.size != 1 || step.sources.size != 1 || step.is_final ||
        step.as_long_as.units.length != 0) {
      return false;
    }
    const Operand& to = *step.destinations.begin();
    const Operand& from = *step.sources.begin();
    const bool is_send = is_channel(to, rank), is_receive = is_channel(from, rank);
    const bool takes_turns = step.in_turn_with_next || me.is_in_turn;
    if (takes_turns && (!(is_send || is_receive) || (step.in_turn_with_next && index + 1 == me.count))) return false;
    me.is_in_turn = step.in_turn_with_next;
    if (is_receive) {
      if (!is_one_unit(to, Space::output, rank, me.outputs)) return false;
      receives_.push_back({.rank = rank, .peer = from.ranks.first, .unit = to.units.start});
      return true;
    }
    if (!is_one_unit(from, Space::input, rank, me.inputs)) return false;
    const int unit = from.units.start;
    if (is_send) return is_unspoilt(me, unit) && send(rank, to.ranks.first, unit);
    if (!is_one_unit(to, Space::output, rank, me.outputs)) return false;
    const bool is_itself = me.input_begin + unit == me.output_begin + to.units.start;
    if (!is_itself && !is_unspoilt(me, unit)) return false;
    ++me.clock;
    return put(rank, to.units.start, rank, unit);
  }

  /// In place: whether nothing was written over the unit of the input.
  [[nodiscard]] bool is_unspoilt(const State& me, int unit) const {
    const int there = me.input_begin + unit - me.output_begin;
    return !is_in_place_too_ || there < 0 || there >= me.outputs ||
           !written_[me.written + static_cast<std::size_t>(there)];
  }

  bool send(int rank, int peer, int unit) {
    constexpr std::size_t kMostArrived = 64;  // of more the search would be long
    std::vector<Message>& arrived = state(peer).arrived;
    const auto is_mine = [rank](const Message& message) { return message.from == rank; };
    if (arrived.size() == kMostArrived || std::ranges::count_if(arrived, is_mine) >= slots_) return false;
    State& me = state(rank);
    ++me.messages;
    arrived.push_back({.from = rank, .unit = unit, .clock = ++me.clock});
    return true;
  }

  bool finish(const Receive& receive) {
    State& me = state(receive.rank);
    const auto found = std::ranges::find(me.arrived, receive.peer, &Message::from);
    if (found == me.arrived.end()) return false;
    const Message message = *found;
    me.arrived.erase(found);
    me.clock = std::max(me.clock, message.clock + 1) + 1;
    return put(receive.rank, receive.unit, message.from, message.unit);
  }

  /// Whether output `to` of `rank` should hold input `from` of `giver`, as it now does.
  bool put(int rank, int to, int giver, int from) {
    written_[state(rank).written + static_cast<std::size_t>(to)] = true;
    const Origin origin = origin_of(problem_, rank, to / per_block_);
    return origin.first == giver && origin.last == giver && origin.block * per_block_ + to % per_block_ == from;
  }

  /// If nothing is left over, and every output is written.
  std::optional<std::vector<Cost>> costs() {
    if (!std::ranges::all_of(written_, [](bool is_written) { return is_written; })) return {};
    std::vector<Cost> costs;
    std::int64_t depth = 0;
    for (const State& me : states_) {
      if (!me.arrived.empty() || me.is_in_turn) return {};
      depth = std::max(depth, me.clock);
      costs.push_back({.steps = me.count, .messages = me.messages, .units = me.messages, .depth = 0});
    }
    for (Cost& cost : costs) cost.depth = depth;
    return costs;
  }

  const Schedule& schedule_;
  const Problem& problem_;
  int slots_;
  bool is_in_place_too_;
  int ranks_;
  int per_block_;
  int most_steps_ = 0;
  std::vector<State> states_;
  std::vector<bool> written_;  ///< by rank and unit of its output
  std::vector<Receive> receives_;
};

}  // namespace

std::optional<std::vector<Cost>> match_copies(const Schedule& schedule, int slots, bool is_in_place_too) {
  return Copies(schedule, slots, is_in_place_too).run();
}

}  // namespace tutti

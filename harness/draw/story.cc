// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/story.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

namespace tutti::harness::draw {
namespace {

/// A part on its kind, or where it is written: what is known of it once the rounds are put in order.
struct Write {
  int round = 0;
  int rank = 0;
  int unit = 0;
  Part part;
};
struct Message {
  std::size_t transfer = 0;  ///< in the story's list
  int sent = 0;
};
struct Said {
  RankSet ranks;
  int phase = 0;
  int round = 0;
  Parts parts;  ///< of a barrier: who is known to have entered
};
struct Waited {
  int round = 0;
  int rank = 0;
  RankBits ranks = 0;
};

struct RankState {
  std::array<Parts, 3> memory;  ///< by Space: input, output, scratch
  std::vector<Said> said;
  int next = 0;
  int clock = 0;     ///< rounds that this rank has behind it
  int port_out = 0;  ///< rounds until it may send again
  int port_in = 0;   ///< the round in which it received last
};

class Follower {
 public:
  explicit Follower(const Schedule& schedule)
      : schedule_(schedule), ranks_(schedule.problem.ranks), is_barrier_(!has_data(schedule.problem.collective)) {
    states_.resize(static_cast<std::size_t>(ranks_));
    story_.problem = schedule.problem;
    story_.units = std::max(1, schedule.shape.units_per_block);
    for (int rank = 0; rank < ranks_; ++rank) {
      auto& [input, output, scratch] = state(rank).memory;
      for (int unit = 0; unit < input_blocks(schedule.problem, rank) * story_.units; ++unit)
        input.push_back({unit, bit_of(rank)});
      output.resize(static_cast<std::size_t>(output_blocks(schedule.problem, rank)) *
                    static_cast<std::size_t>(story_.units));
      scratch.resize(static_cast<std::size_t>(schedule.shape.scratch_units));
      if (is_barrier_) input = output = {{.unit = 0, .ranks = bit_of(rank)}};
      story_.given.push_back(input);
      first_.push_back(output);
    }
  }

  Result<Story> run() {
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        while (advance(rank)) is_moving = true;
      }
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (state(rank).next == schedule_.step_count(rank)) continue;
      return error(Code::refuted, "rank {} never gets past step {} of {} {}", rank, state(rank).next,
                   to_string(schedule_.problem.collective), schedule_.name);
    }
    finish();
    return std::move(story_);
  }

 private:
  RankState& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  Parts& memory(Space space, int rank) { return state(rank).memory[static_cast<std::size_t>(space)]; }

  bool advance(int rank) {
    RankState& me = state(rank);
    if (me.next == schedule_.step_count(rank)) return false;
    const Step step = schedule_.step(rank, me.next);
    const bool is_done = step.verb == Verb::signal ? signal(rank, step)
                         : step.verb == Verb::wait ? wait(rank, step)
                                                   : move(rank, step);
    me.next += is_done ? 1 : 0;
    return is_done;
  }

  bool signal(int rank, const Step& step) {
    RankState& me = state(rank);
    me.said.push_back({step.ranks, step.phase, me.clock, is_barrier_ ? memory(Space::output, rank) : Parts()});
    return true;
  }

  [[nodiscard]] bool contains(const RankSet& set, int rank) const {
    for (int i = 0; i < set.n; ++i) {
      if (set.at(i, ranks_) == rank) return true;
    }
    return false;
  }

  bool wait(int rank, const Step& step) {
    RankState& me = state(rank);
    std::vector<std::pair<int, const Said*>> heard;
    for (int i = 0; i < step.ranks.n; ++i) {
      const int peer = step.ranks.at(i, ranks_);
      const auto& said = state(peer).said;
      const auto found = std::ranges::find_if(
          said, [&](const Said& one) { return one.phase == step.phase && contains(one.ranks, rank); });
      if (found == said.end()) return false;
      heard.emplace_back(peer, &*found);
    }
    // A rank knows at the end of a round what it has heard by then.
    std::ranges::stable_sort(heard, {}, [](const auto& one) { return one.second->round; });
    RankBits ranks = bit_of(rank);
    for (const auto& [peer, said] : heard) {
      ranks |= bit_of(peer);
      if (!is_barrier_ || peer == rank)
        me.clock = std::max(me.clock, said->round);
      else
        hear(rank, peer, *said);
    }
    waited_.push_back({me.clock, rank, ranks});
    return true;
  }

  /// A flag of a barrier takes a round, and tells who is known to have entered.
  void hear(int rank, int peer, const Said& said) {
    RankState& me = state(rank);
    story_.transfers.push_back({peer, rank, said.round, said.round + 1, TransferKind::flag, said.parts});
    me.clock = std::max(me.clock, said.round + 1);
    Part& known = memory(Space::output, rank).front();
    known.ranks |= said.parts.front().ranks;
    writes_.push_back({me.clock, rank, 0, known});
  }

  /// Calls `f(i, part)` for each unit of the operand's memory on `rank`, i counting from 0.
  template <class F>
  void for_each(const Operand& operand, int rank, F f) {
    Parts& parts = memory(operand.space, rank);
    std::size_t i = 0;
    for (int j = 0; j < operand.units.repeat; ++j) {
      for (int k = 0; k < operand.units.length; ++k) {
        const std::int64_t at = operand.units.start + std::int64_t{j} * operand.units.stride + k;
        const auto unit = static_cast<std::size_t>(at % static_cast<std::int64_t>(parts.size()));
        f(i++, parts[unit], static_cast<int>(unit));
      }
    }
  }

  static void add(Part& sum, const Part& part) {
    if (sum.is_empty())
      sum = part;
    else if (!part.is_empty())
      sum.ranks |= part.ranks;
  }

  bool move(int rank, const Step& step) {
    for (const Operand& source : step.sources) {
      if (source.space == Space::channel && channels_[{source.ranks.first, rank}].empty()) return false;
    }
    RankState& me = state(rank);
    Parts sum(static_cast<std::size_t>(length_of(step)));
    std::map<int, Parts> read;
    int round = me.clock;
    for (const Operand& source : step.sources) {
      if (source.space == Space::channel) {
        round = std::max(round, receive(rank, source.ranks.first, sum));
        continue;
      }
      for (int i = 0; i < source.ranks.n; ++i) {
        const int owner = source.ranks.at(i, ranks_);
        for_each(source, owner, [&](std::size_t at, const Part& part, int) {
          add(sum[at], part);
          if (owner != rank) read[owner].push_back(part);
        });
      }
    }
    for (const auto& [owner, parts] : read)
      story_.transfers.push_back({owner, rank, round, round + 1, TransferKind::read, parts});
    if (!read.empty()) ++round;
    me.clock = round;
    put(rank, step, sum, !read.empty());
    return true;
  }

  /// Takes the next message from `peer`; the rounds behind it then.
  int receive(int rank, int peer, Parts& sum) {
    RankState& me = state(rank);
    auto& queue = channels_[{peer, rank}];
    const Message message = queue.front();
    queue.pop_front();
    const int received = std::max({message.sent + 1, me.port_in + 1, me.clock});
    me.port_in = received;
    Transfer& transfer = story_.transfers[message.transfer];
    transfer.received = received;
    for (std::size_t i = 0; i < sum.size(); ++i) add(sum[i], transfer.parts[i]);
    return received;
  }

  void put(int rank, const Step& step, const Parts& sum, bool has_read) {
    RankState& me = state(rank);
    const int begin = me.clock;
    bool stores = false;
    bool keeps = false;
    for (const Operand& destination : step.destinations) {
      if (destination.space == Space::channel) {
        const int sent = std::max(begin, me.port_out);
        me.port_out = sent + 1;
        me.clock = std::max(me.clock, sent);
        story_.transfers.push_back({rank, destination.ranks.first, sent, sent + 1, TransferKind::message, sum});
        channels_[{rank, destination.ranks.first}].push_back({story_.transfers.size() - 1, sent});
        continue;
      }
      const bool is_elsewhere = destination.ranks.n > 1 || destination.ranks.first != rank;
      stores |= is_elsewhere;
      keeps |= !is_elsewhere;
      for (int i = 0; i < destination.ranks.n; ++i) {
        const int owner = destination.ranks.at(i, ranks_);
        for_each(destination, owner, [&](std::size_t at, Part& part, int unit) {
          part = sum[at];
          if (destination.space == Space::output)
            writes_.push_back({begin + (is_elsewhere ? 1 : 0), owner, unit, part});
        });
        if (owner != rank) story_.transfers.push_back({rank, owner, begin, begin + 1, TransferKind::store, sum});
      }
    }
    if (stores) me.clock = std::max(me.clock, begin + 1);
    if (has_read && !keeps) story_.in_hand.push_back({begin, rank, sum});
  }

  /// Groups in which every rank waits for every other one at the same time.
  void find_mutual_waits() {
    for (const Waited& one : waited_) {
      const auto is_mutual = [&](int rank) {
        return std::ranges::any_of(waited_, [&](const Waited& other) {
          return other.rank == rank && other.round == one.round && other.ranks == one.ranks;
        });
      };
      MutualWait meeting{.round = one.round, .first = ranks_, .last = -1};
      bool is_meeting = true;
      for (int rank = 0; rank < ranks_; ++rank) {
        if ((one.ranks & bit_of(rank)) == 0) continue;
        meeting.first = std::min(meeting.first, rank);
        is_meeting = is_meeting && is_mutual(rank) && (meeting.last < 0 || rank == meeting.last + 1);
        meeting.last = rank;
      }
      const bool is_new = std::ranges::find(story_.mutual_waits, meeting) == story_.mutual_waits.end();
      if (is_meeting && is_new && meeting.last > meeting.first) story_.mutual_waits.push_back(meeting);
    }
  }

  void finish() {
    for (const RankState& one : states_) story_.rounds = std::max(story_.rounds, one.clock);
    for (const Transfer& one : story_.transfers) story_.rounds = std::max(story_.rounds, one.received);
    const auto by_round = [](const Write& a, const Write& b) { return a.round < b.round; };
    std::ranges::stable_sort(writes_, by_round);
    std::size_t next = 0;
    for (int round = 0; round <= story_.rounds; ++round) {
      for (; next < writes_.size() && writes_[next].round <= round; ++next) {
        const Write& write = writes_[next];
        first_[static_cast<std::size_t>(write.rank)][static_cast<std::size_t>(write.unit)] = write.part;
      }
      story_.held.push_back(first_);
    }
    std::ranges::stable_sort(story_.transfers, {}, &Transfer::sent);
    if (!is_barrier_) find_mutual_waits();
  }

  const Schedule& schedule_;
  int ranks_;
  bool is_barrier_;
  std::vector<RankState> states_;
  std::vector<Parts> first_;  ///< the outputs, before any round
  std::vector<Write> writes_;
  std::vector<Waited> waited_;
  std::map<std::pair<int, int>, std::deque<Message>> channels_;  // from, to
  Story story_;
};

}  // namespace

bool is_done(const Story& story, int rank, int unit, const Part& part) {
  const Origin origin = has_data(story.problem.collective)
                            ? origin_of(story.problem, rank, unit / story.units)
                            : Origin{.first = 0, .last = story.problem.ranks - 1, .block = 0};
  const RankBits wanted = (bit_of(origin.last) << 1U) - bit_of(origin.first);
  return part.unit == origin.block * story.units + unit % story.units && part.ranks == wanted;
}

Result<Story> story_of(const Schedule& schedule) { return Follower(schedule).run(); }

}  // namespace tutti::harness::draw

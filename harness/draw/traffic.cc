// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/traffic.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>

namespace tutti::harness::draw {
namespace {

constexpr std::int64_t kMostSteps = 1'500'000;  ///< of all ranks: more would take seconds

/// One transfer: the round in which it leaves, and what it carries.
struct Sent {
  int from;
  int to;
  int round;
  std::int64_t units;
};

/// All ranks, with the rounds of one port.
class Counter {
 public:
  explicit Counter(const Schedule& schedule) : schedule_(schedule), ranks_(schedule.problem.ranks) {
    const auto count = static_cast<std::size_t>(ranks_);
    clock_.resize(count);
    port_in_.resize(count);
    port_out_.resize(count);
    said_.resize(count);
  }

  Result<std::vector<Sent>> all() {
    std::vector<int> next(static_cast<std::size_t>(ranks_));
    std::vector<int> left(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) left[static_cast<std::size_t>(rank)] = rank;
    while (!left.empty()) {
      std::vector<int> stuck;
      bool is_moving = false;
      for (const int rank : left) {
        int& index = next[static_cast<std::size_t>(rank)];
        const int count = schedule_.step_count(rank);
        while (index < count && advance(rank, schedule_.step(rank, index), true)) {
          ++index;
          is_moving = true;
        }
        if (index < count)
          stuck.push_back(rank);
        else
          is_moving = true;
      }
      if (!is_moving) {
        return error(Code::refuted, "rank {} never gets past step {} of {} {}", stuck.front(),
                     next[static_cast<std::size_t>(stuck.front())], to_string(schedule_.problem.collective),
                     schedule_.name);
      }
      left = std::move(stuck);
    }
    return std::move(sent_);
  }

  /// Each rank alone, every message there when it is wanted.
  std::vector<Sent> alone(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      const int count = schedule_.step_count(rank);
      for (int index = 0; index < count; ++index) (void)advance(rank, schedule_.step(rank, index), false);
    }
    return std::move(sent_);
  }

 private:
  struct Said {
    RankSet ranks;
    int phase;
    int round;
  };

  [[nodiscard]] std::size_t place(int rank) const { return static_cast<std::size_t>(rank); }
  [[nodiscard]] std::int64_t channel(int from, int to) const { return std::int64_t{from} * ranks_ + to; }

  [[nodiscard]] bool contains(const RankSet& set, int rank) const {
    if (set.n == 0) return false;
    if (set.stride == 1) return (rank - set.first + ranks_) % ranks_ < set.n;
    for (int i = 0; i < set.n; ++i) {
      if (set.at(i, ranks_) == rank) return true;
    }
    return false;
  }

  bool advance(int rank, const Step& step, bool has_peers) {
    if (step.verb == Verb::signal) {
      if (has_peers) said_[place(rank)].push_back({step.ranks, step.phase, clock_[place(rank)]});
      return true;
    }
    if (step.verb == Verb::wait) return !has_peers || wait(rank, step);
    return move(rank, step, has_peers);
  }

  bool wait(int rank, const Step& step) {
    const bool is_flag = !has_data(schedule_.problem.collective);
    int round = clock_[place(rank)];
    for (int i = 0; i < step.ranks.n; ++i) {
      const int peer = step.ranks.at(i, ranks_);
      const auto found = std::ranges::find_if(
          said_[place(peer)], [&](const Said& one) { return one.phase == step.phase && contains(one.ranks, rank); });
      if (found == said_[place(peer)].end()) return false;
      round = std::max(round, found->round + (is_flag && peer != rank ? 1 : 0));
    }
    if (is_flag) {
      for (int i = 0; i < step.ranks.n; ++i) {
        const int peer = step.ranks.at(i, ranks_);
        if (peer != rank) sent_.push_back({peer, rank, round - 1, 1});
      }
    }
    clock_[place(rank)] = round;
    return true;
  }

  bool move(int rank, const Step& step, bool has_peers) {
    const auto me = place(rank);
    if (has_peers) {
      for (const Operand& source : step.sources) {
        if (source.space != Space::channel) continue;
        const auto found = channels_.find(channel(source.ranks.first, rank));
        if (found == channels_.end() || found->second.empty()) return false;
      }
    }
    const std::int64_t length = length_of(step);
    int round = clock_[me];
    bool reads = false;
    for (const Operand& source : step.sources) {
      if (source.space == Space::channel) round = std::max(round, receive(rank, source.ranks.first, has_peers));
    }
    for (const Operand& source : step.sources) {
      if (source.space != Space::channel) reads |= touch(rank, source, length, round, true);
    }
    clock_[me] = round += reads ? 1 : 0;
    bool stores = false;
    for (const Operand& destination : step.destinations) {
      if (destination.space != Space::channel) {
        stores |= touch(rank, destination, length, round, false);
        continue;
      }
      const int at = std::max(round, port_out_[me]);
      port_out_[me] = at + 1;
      clock_[me] = std::max(clock_[me], at);
      sent_.push_back({rank, destination.ranks.first, at, length});
      if (has_peers) channels_[channel(rank, destination.ranks.first)].push_back(at);
    }
    if (stores) clock_[me] = std::max(clock_[me], round + 1);
    return true;
  }

  int receive(int rank, int peer, bool has_peers) {
    const auto me = place(rank);
    int at = port_in_[me] + 1;
    if (has_peers) {
      auto& queue = channels_[channel(peer, rank)];
      at = std::max(at, queue.front() + 1);
      queue.pop_front();
    }
    return port_in_[me] = std::max(at, clock_[me]);
  }

  /// Memory of other ranks that is read or stored to; whether there is any.
  bool touch(int rank, const Operand& operand, std::int64_t length, int round, bool is_read) {
    bool found = false;
    for (int i = 0; i < operand.ranks.n; ++i) {
      const int owner = operand.ranks.at(i, ranks_);
      if (owner == rank) continue;
      found = true;
      sent_.push_back({is_read ? owner : rank, is_read ? rank : owner, round, length});
    }
    return found;
  }

  const Schedule& schedule_;
  int ranks_;
  std::vector<int> clock_, port_in_, port_out_;
  std::vector<std::vector<Said>> said_;
  std::unordered_map<std::int64_t, std::deque<int>> channels_;
  std::vector<Sent> sent_;
};

/// Steps of all ranks, and of a step over a set of ranks as many; no more than a little beyond kMostSteps.
std::int64_t work_of(const Schedule& schedule) {
  std::int64_t work = 0;
  for (int rank = 0; rank < schedule.problem.ranks && work <= kMostSteps; ++rank) work += schedule.step_count(rank);
  for (int rank = 0; rank < schedule.problem.ranks && work <= kMostSteps; ++rank) {
    for (int index = 0; index < schedule.step_count(rank) && work <= kMostSteps; ++index) {
      const Step step = schedule.step(rank, index);
      if (step.verb == Verb::wait) work += step.ranks.n;
      for (const auto* list : {&step.destinations, &step.sources}) {
        for (const Operand& operand : *list) work += operand.space == Space::channel ? 0 : operand.ranks.n - 1;
      }
    }
  }
  return work;
}

/// One rank of each row of tiles: the root in its own, in the others the one in the middle.
std::vector<int> sample_of(const Problem& problem, int tiles) {
  std::vector<int> sample;
  for (int tile = 0; tile < tiles; ++tile) {
    const auto begin = static_cast<int>(std::int64_t{tile} * problem.ranks / tiles);
    const auto end = static_cast<int>(std::int64_t{tile + 1} * problem.ranks / tiles);
    const bool has_root = is_rooted(problem.collective) && begin <= problem.root && problem.root < end;
    sample.push_back(has_root ? problem.root : (begin + end - 1) / 2);
  }
  return sample;
}

}  // namespace

Result<Traffic> traffic_of(const Schedule& schedule) {
  const int ranks = schedule.problem.ranks;
  Traffic traffic{.problem = schedule.problem, .tiles = std::min(ranks, kMostTiles), .followed = ranks};
  Counter counter(schedule);
  std::vector<Sent> sent;
  if (work_of(schedule) <= kMostSteps) {
    TUTTI_ASSIGN_OR_RETURN(sent, counter.all());
  } else {
    const std::vector<int> sample = sample_of(schedule.problem, traffic.tiles);
    traffic.followed = static_cast<int>(sample.size());
    sent = counter.alone(sample);
  }
  for (const Sent& one : sent) traffic.rounds = std::max(traffic.rounds, one.round + 1);
  traffic.bins = std::min(traffic.rounds, kMostBins);
  const auto classes = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(std::max(1, ranks / 2))));
  traffic.by_distance.assign(classes, std::vector<double>(static_cast<std::size_t>(traffic.bins)));
  traffic.map.assign(static_cast<std::size_t>(traffic.tiles),
                     std::vector<double>(static_cast<std::size_t>(traffic.tiles)));
  const auto bin_of = [&](int round) {
    return static_cast<std::size_t>(std::int64_t{round} * traffic.bins / traffic.rounds);
  };
  const auto tile_of = [&](int rank) { return static_cast<std::size_t>(std::int64_t{rank} * traffic.tiles / ranks); };
  std::vector<double> rounds_in(static_cast<std::size_t>(traffic.bins));
  for (int round = 0; round < traffic.rounds; ++round) ++rounds_in[bin_of(round)];
  for (const Sent& one : sent) {
    const int apart = std::abs(one.to - one.from);
    const auto distance = static_cast<unsigned>(std::min(apart, ranks - apart));
    if (distance == 0) continue;
    const auto units = static_cast<double>(one.units);
    const auto bin = bin_of(one.round);
    traffic.by_distance[static_cast<std::size_t>(std::bit_width(distance)) - 1][bin] += units / rounds_in[bin];
    traffic.map[tile_of(one.from)][tile_of(one.to)] += units;
    traffic.units += units;
    ++traffic.messages;
  }
  return traffic;
}

}  // namespace tutti::harness::draw

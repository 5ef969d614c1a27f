// SPDX-License-Identifier: Apache-2.0
// Executes the synchronisation of all ranks' plans, rank after rank, each as far as it gets, and shows every step to a
// visitor. It is the one engine under the proof of values, the derivation of slots, and that of `synchronises`.
//
// Matching is stricter than at run time: a WAIT is satisfied only by the one SIGNAL of that phase whose set contains
// me. A slice of a channel is one event. It begins when every source has a full slot and every destination a free one.
// It gives its source slots back when its last piece is done. So a fused MOVE holds on to its source while it waits.
//
// A visitor has a default-constructible `Slice`, what travels in one slot, and
//   void signal(int rank, std::uint32_t op, std::size_t id);            the id of this SIGNAL
//   void heard(int rank, int peer, std::uint32_t op, std::size_t id);   a WAIT for one peer is satisfied, by this
//   SIGNAL void move(int rank, std::uint32_t op, std::span<Slice* const> full, std::span<Slice* const> empty);
// with one slice for each channel among the sources (destinations), in their order. A slice in `empty` is cleared by
// the visitor where the op is the first of its slice. `Both` shows one walk to two visitors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "impl/prove/signals.h"

namespace tutti {

/// On one side of a MOVE. A step has at most four.
inline constexpr std::size_t kMostChannels = 8;

template <class First, class Second>
class Both {
 public:
  struct Slice {
    typename First::Slice first;
    typename Second::Slice second;
  };

  Both(First& first, Second& second) : first_(first), second_(second) {}

  void signal(int rank, std::uint32_t op, std::size_t id) {
    first_.signal(rank, op, id);
    second_.signal(rank, op, id);
  }
  void heard(int rank, int peer, std::uint32_t op, std::size_t id) {
    first_.heard(rank, peer, op, id);
    second_.heard(rank, peer, op, id);
  }
  void move(int rank, std::uint32_t op, std::span<Slice* const> full, std::span<Slice* const> empty) {
    Sides<typename First::Slice> first;
    Sides<typename Second::Slice> second;
    for (std::size_t i = 0; i < full.size(); ++i) {
      first.full[i] = &full[i]->first;
      second.full[i] = &full[i]->second;
    }
    for (std::size_t i = 0; i < empty.size(); ++i) {
      first.empty[i] = &empty[i]->first;
      second.empty[i] = &empty[i]->second;
    }
    first_.move(rank, op, {first.full.data(), full.size()}, {first.empty.data(), empty.size()});
    second_.move(rank, op, {second.full.data(), full.size()}, {second.empty.data(), empty.size()});
  }

 private:
  template <class Slice>
  struct Sides {
    std::array<Slice*, kMostChannels> full;
    std::array<Slice*, kMostChannels> empty;
  };

  First& first_;
  Second& second_;
};

template <class Visitor>
class Walk {
 public:
  Walk(const PlanSet& set, Visitor& visitor, Findings& findings)
      : set_(set),
        visitor_(visitor),
        findings_(findings),
        ranks_(static_cast<int>(set.plans.size())),
        signals_(set.plans, findings),
        states_(set.plans.size()) {
    const bool has_channels = std::any_of(set.plans.begin(), set.plans.end(), [](const Plan& p) {
      return std::any_of(p.ops().begin(), p.ops().end(), [](const PlanOp& op) { return op.has_channel != 0; });
    });
    if (has_channels) channels_.resize(set.plans.size() * set.plans.size());
  }

  /// Whether every rank came to its end; otherwise, and where something is left over, there are findings.
  bool run() {
    int unfinished = ranks_;
    for (bool is_moving = true; is_moving && unfinished > 0;) {
      is_moving = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        if (state(rank).is_done || !advance(rank)) continue;
        is_moving = true;
        if (state(rank).is_done) --unfinished;
      }
    }
    if (unfinished > 0) {
      report_stuck();
    } else {
      report_left_over();
    }
    return unfinished == 0;
  }

 private:
  using Slice = typename Visitor::Slice;

  struct Node {
    Slice slice;
    std::int64_t bytes = 0;  ///< PlanOp::rest_bytes
    std::uint32_t step = 0;  ///< of the sender
    Node* next = nullptr;
  };
  struct Channel {
    Node* head = nullptr;
    Node* tail = nullptr;
    int full = 0;      ///< slices that can be received
    int occupied = 0;  ///< slots that are full, being filled, or being emptied
  };
  struct State {
    std::uint32_t op = 0;
    int heard = 0;  ///< ranks of the current WAIT that were heard
    int phase = 0;  ///< last phase in program order
    bool is_done = false;
    bool is_refuted = false;  ///< its current step can never be done, and a finding says so
    bool is_in_slice = false;
    std::size_t full_count = 0;
    std::size_t empty_count = 0;
    std::array<Slice*, kMostChannels> full{};
    std::array<Slice*, kMostChannels> empty{};
    std::array<Node*, kMostChannels> full_nodes{};
    std::array<Node*, kMostChannels> empty_nodes{};
  };

  [[nodiscard]] State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Plan& plan(int rank) const { return set_.plans[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Channel& channel(int from, int to) {
    return channels_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to)];
  }

  /// Runs `rank` as far as it gets; whether it did anything.
  bool advance(int rank) {
    State& me = state(rank);
    const std::span<const PlanOp> ops = plan(rank).ops();
    bool did_something = false;
    for (; me.op < ops.size(); ++me.op) {
      if (me.is_refuted || !execute(rank, me, ops[me.op])) return did_something;
      did_something = true;
    }
    me.is_done = true;
    if (me.is_in_slice) findings_.add(rank, ops.back().step, "ends within a slice that is never closed");
    return true;
  }

  bool execute(int rank, State& me, const PlanOp& op) {
    switch (op.verb) {
      case Verb::signal:
        me.phase = std::max<int>(me.phase, op.phase);
        visitor_.signal(rank, me.op, signals_.id_of(rank, op.phase));
        return true;
      case Verb::wait:
        return hear(rank, me, op);
      case Verb::move:
        break;
    }
    if (op.has_channel == 0) {
      visitor_.move(rank, me.op, {}, {});
      return true;
    }
    if (me.is_in_slice == ((op.marks & mark_opens) != 0)) {
      findings_.add(rank, op.step, "{}",
                    me.is_in_slice ? "opens a slice within a slice" : "a piece of a slice that was never opened");
      me.is_refuted = true;
      return false;
    }
    if (!me.is_in_slice && !open(rank, me, op)) return false;
    visitor_.move(rank, me.op, {me.full.data(), me.full_count}, {me.empty.data(), me.empty_count});
    if ((op.marks & mark_closes) != 0) close(rank, me, op);
    return true;
  }

  bool hear(int rank, State& me, const PlanOp& op) {
    const RankSet set = plan(rank).ranks(op);
    if (me.heard == 0 && op.phase < me.phase) {
      findings_.add(rank, op.step, "WAIT for phase {} after phase {}: phases must rise", op.phase, me.phase);
    }
    me.phase = std::max<int>(me.phase, op.phase);
    for (; me.heard < set.n; ++me.heard) {
      const int peer = set.at(me.heard, ranks_);
      const std::size_t id = signals_.expected(rank, op, peer);
      if (id == Signals::kNone) {
        me.is_refuted = true;
        return false;
      }
      if (state(peer).op <= signals_.op_of(id)) return false;
      signals_.heard(rank, op, peer, id);
      visitor_.heard(rank, peer, me.op, id);
    }
    me.heard = 0;
    return true;
  }

  template <class F>
  void for_channels(std::span<const PlanOperand> operands, F f) {
    for (const PlanOperand& operand : operands) {
      if (operand.space == Space::channel) f(operand.ranks.first);
    }
  }

  /// Begins a slice if every source is full and every destination has room.
  bool open(int rank, State& me, const PlanOp& op) {
    bool is_ready = true;
    for_channels(plan(rank).sources(op), [&](int peer) { is_ready = is_ready && channel(peer, rank).full > 0; });
    for_channels(plan(rank).destinations(op),
                 [&](int peer) { is_ready = is_ready && channel(rank, peer).occupied < set_.slots; });
    if (!is_ready) return false;

    me.full_count = 0;
    for_channels(plan(rank).sources(op), [&](int peer) { receive(rank, me, op, peer); });
    me.empty_count = 0;
    for_channels(plan(rank).destinations(op), [&](int peer) {
      ++channel(rank, peer).occupied;
      Node* const node = take_node();
      me.empty_nodes[me.empty_count] = node;
      me.empty[me.empty_count++] = &node->slice;
    });
    me.is_in_slice = true;
    return true;
  }

  void receive(int rank, State& me, const PlanOp& op, int peer) {
    Channel& from = channel(peer, rank);
    Node* const node = from.head;
    from.head = node->next;
    --from.full;
    me.full_nodes[me.full_count] = node;
    me.full[me.full_count++] = &node->slice;
    if (node->bytes != op.rest_bytes) {
      findings_.add(rank, op.step,
                    "receives the last {} bytes of a message from rank {}, which sends the last {} in its step {}",
                    op.rest_bytes, peer, node->bytes, node->step);
    }
  }

  void close(int rank, State& me, const PlanOp& op) {
    std::size_t n = 0;
    for_channels(plan(rank).sources(op), [&](int peer) {
      --channel(peer, rank).occupied;
      free_nodes_.push_back(me.full_nodes[n++]);
    });
    n = 0;
    for_channels(plan(rank).destinations(op), [&](int peer) {
      Channel& to = channel(rank, peer);
      Node* const node = me.empty_nodes[n++];
      node->bytes = op.rest_bytes;
      node->step = op.step;
      node->next = nullptr;
      (to.full == 0 ? to.head : to.tail->next) = node;
      to.tail = node;
      ++to.full;
    });
    me.is_in_slice = false;
  }

  [[nodiscard]] Node* take_node() {
    if (free_nodes_.empty()) return &nodes_.emplace_back();
    Node* const node = free_nodes_.back();
    free_nodes_.pop_back();
    return node;
  }

  void report_stuck();
  void report_left_over();
  void explain_slice(int rank, const PlanOp& op);

  const PlanSet& set_;
  Visitor& visitor_;
  Findings& findings_;
  int ranks_;
  Signals signals_;
  std::vector<State> states_;
  std::vector<Channel> channels_;  ///< [from][to]
  std::deque<Node> nodes_;         ///< a deque, so that they stay where they are
  std::vector<Node*> free_nodes_;
};

/// Nobody can go on: says of the first few what they wait for.
template <class Visitor>
void Walk<Visitor>::report_stuck() {
  for (const State& me : states_) {
    if (me.is_refuted) return;  // that finding is the cause
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    const State& me = state(rank);
    if (me.is_done) continue;
    const PlanOp& op = plan(rank).ops()[me.op];
    if (op.verb == Verb::wait) {
      const int peer = plan(rank).ranks(op).at(me.heard, ranks_);
      findings_.add(rank, op.step, "deadlock: waits for phase {} of rank {}, which is itself stuck", op.phase, peer);
    } else {
      explain_slice(rank, op);
    }
  }
}

template <class Visitor>
void Walk<Visitor>::explain_slice(int rank, const PlanOp& op) {
  for_channels(plan(rank).sources(op), [&](int peer) {
    if (channel(peer, rank).full > 0) return;
    findings_.add(rank, op.step, "deadlock: waits for a message from rank {}, which {}", peer,
                  state(peer).is_done ? "has ended without sending it" : "is itself stuck");
  });
  for_channels(plan(rank).destinations(op), [&](int peer) {
    if (channel(rank, peer).occupied < set_.slots) return;
    findings_.add(rank, op.step, "deadlock: with {} slot{} per channel, none becomes free to rank {}{}", set_.slots,
                  set_.slots == 1 ? "" : "s", peer, state(peer).is_done ? ", which has ended" : "");
  });
}

template <class Visitor>
void Walk<Visitor>::report_left_over() {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i].full == 0) continue;
    findings_.add(static_cast<int>(i) / ranks_, channels_[i].head->step,
                  "sends a slice to rank {} that is never received", static_cast<int>(i) % ranks_);
  }
  signals_.report_left_over();
}

}  // namespace tutti

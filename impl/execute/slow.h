// SPDX-License-Identifier: Apache-2.0
// A rank, or the link between two ranks, that is slow on purpose: an instrument shows what is made of it. A MOVE of
// such a rank takes longer by a share of its own time. Without slowness nothing here is on the way.
#pragma once

#include <chrono>
#include <cstdint>

#include "impl/schedule/plan.h"

namespace tutti {

/// Of one rank. Percent of the time that a MOVE takes without it.
struct Slowness {
  int percent = 0;       ///< of every MOVE of the rank
  int peer = -1;         ///< -1: no link of the rank is slow
  int peer_percent = 0;  ///< of what a MOVE has to do with the peer's memory

  [[nodiscard]] bool is_any() const { return percent > 0 || peer >= 0; }
  bool operator==(const Slowness&) const = default;
};

/// How much longer a MOVE takes, as a share of its time. Memory of the peer counts as one of all memory that the MOVE
/// reads and writes.
[[nodiscard]] inline double added_share(const Slowness& slow, const PlanOp& op, const PlanOperand* operand, int ranks) {
  double share = slow.percent / 100.0;
  if (slow.peer < 0) return share;
  int all = 0, of_peer = 0;
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->is_mine) {
      ++all;
      continue;
    }
    int rank = operand->ranks.first;
    for (int member = 0; member < operand->ranks.n; ++member, rank = operand->ranks.after(rank, ranks)) {
      ++all;
      of_peer += rank == slow.peer ? 1 : 0;
    }
  }
  return all == 0 ? share : share + slow.peer_percent / 100.0 * of_peer / all;
}

/// A machine whose MOVEs take longer (see step.h).
template <class Machine>
class Slowed {
 public:
  Slowed(Machine& machine, const Slowness& slow, int ranks) : machine_(machine), slow_(slow), ranks_(ranks) {}

  [[nodiscard]] bool heard(int rank, std::uint16_t phase) { return machine_.heard(rank, phase); }
  [[nodiscard]] bool channels_ready(const PlanOp& op, const PlanOperand* operand) {
    return machine_.channels_ready(op, operand);
  }
  void announce(const PlanOp& op, const PlanOperand* operand) { machine_.announce(op, operand); }
  void move(const PlanOp& op, const PlanOperand* operand) {
    const double share = added_share(slow_, op, operand, ranks_);
    if (share == 0) return machine_.move(op, operand);
    const auto begin = now();
    machine_.move(op, operand);
    const auto end = now();
    const auto until = end + std::chrono::duration_cast<std::chrono::nanoseconds>((end - begin) * share);
    while (now() < until) {  // a slow rank is busy meanwhile
    }
  }
  void close_channels(const PlanOp& op, const PlanOperand* operand) { machine_.close_channels(op, operand); }

 private:
  static std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  Machine& machine_;
  const Slowness& slow_;
  int ranks_;
};

}  // namespace tutti

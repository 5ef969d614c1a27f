// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/signals.h"

#include <algorithm>

namespace tutti {

Signals::Signals(std::span<const Plan> plans, Findings& findings)
    : plans_(plans), findings_(findings), ranks_(static_cast<int>(plans.size())) {
  first_.push_back(0);
  for (int rank = 0; rank < ranks_; ++rank) collect(rank);
  if (!signals_.empty()) waited_.resize(plans.size() * plans.size());
}

void Signals::collect(int rank) {
  int last = 0;
  const std::span<const PlanOp> ops = plan(rank).ops();
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].verb != Verb::signal) continue;
    const int phase = ops[i].phase;
    if (phase <= last)
      findings_.add(rank, ops[i].step, "SIGNAL of phase {} after phase {}: phases must rise", phase, last);
    last = std::max(last, phase);
    signals_.push_back({.op = i, .phase = phase, .ranks = plan(rank).ranks(ops[i])});
    pairs_ += signals_.back().ranks.n;
  }
  first_.push_back(signals_.size());
}

std::size_t Signals::id_of(int rank, int phase) const {
  const auto r = static_cast<std::size_t>(rank);
  for (std::size_t id = first_[r]; id < first_[r + 1]; ++id) {
    if (signals_[id].phase == phase) return id;
  }
  return kNone;
}

std::size_t Signals::expected(int rank, const PlanOp& wait, int peer) {
  const std::size_t id = id_of(peer, wait.phase);
  if (id != kNone && contains(signals_[id].ranks, rank, ranks_)) return id;
  findings_.add(rank, wait.step, "WAIT for phase {} of rank {}, which never signals it to rank {}", wait.phase, peer,
                rank);
  return kNone;
}

void Signals::heard(int rank, const PlanOp& wait, int peer, std::size_t id) {
  std::uint16_t& last = waited_[static_cast<std::size_t>(rank) * plans_.size() + static_cast<std::size_t>(peer)];
  if (wait.phase <= last) {
    findings_.add(rank, wait.step, "WAIT for phase {} of rank {} after phase {}: phases must rise", wait.phase, peer,
                  last);
  }
  last = std::max(last, wait.phase);
  ++signals_[id].matched;
  ++matched_;
}

bool Signals::waits_for(int rank, int peer, int phase) const {
  const std::span<const PlanOp> ops = plan(rank).ops();
  return std::any_of(ops.begin(), ops.end(), [&](const PlanOp& op) {
    return op.verb == Verb::wait && op.phase == phase && contains(plan(rank).ranks(op), peer, ranks_);
  });
}

void Signals::report_left_over() {
  if (pairs_ == matched_) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t id = first_[r]; id < first_[r + 1]; ++id) {
      const Signal& sent = signals_[id];
      for (int i = 0; i < sent.ranks.n && sent.matched < sent.ranks.n; ++i) {
        const int target = sent.ranks.at(i, ranks_);
        if (waits_for(target, rank, sent.phase)) continue;
        findings_.add(rank, plan(rank).ops()[sent.op].step, "SIGNAL of phase {} to rank {}, which never waits for it",
                      sent.phase, target);
      }
    }
  }
}

}  // namespace tutti

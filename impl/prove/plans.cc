// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/plans.h"

#include <algorithm>
#include <vector>

#include "impl/prove/walk.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

class PlanCheck {
 public:
  PlanCheck(const PlanSet& set, Findings& findings)
      : set_(set), findings_(findings), ranks_(set.schedule->problem.ranks) {}

  void run() {
    if (!check_headers()) return;
    for (const Plan& plan : set_.plans) {
      const auto exposes = [](const PlanOp& op) { return op.verb == Verb::signal && (op.marks & mark_exposes) != 0; };
      has_references_.push_back(std::any_of(plan.ops().begin(), plan.ops().end(), exposes));
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      const Plan& plan = set_.plans[static_cast<std::size_t>(rank)];
      opened_ = nullptr;
      for (const PlanOp& op : plan.ops()) check(rank, plan, op);
      for (const PlanExposure& exposure : plan.exposures()) check(rank, plan, exposure);
    }
  }

 private:
  bool check_headers();
  void check(int rank, const Plan& plan, const PlanOp& op);
  void check(int rank, const Plan& plan, const PlanExposure& exposure);
  void check_move(int rank, const Plan& plan, const PlanOp& op);
  void check_place(int rank, const PlanOp& op, const PlanOperand& operand);
  void check_channels(int rank, const PlanOp& op, std::span<const PlanOperand> side);
  void check_slice(int rank, const Plan& plan, const PlanOp& op);

  const PlanSet& set_;
  Findings& findings_;
  int ranks_;
  std::vector<char> has_references_;  ///< by rank: in its flag line
  const PlanOp* opened_ = nullptr;    ///< the op of this plan that opened a slice last
};

/// One per rank, of one call.
bool PlanCheck::check_headers() {
  if (static_cast<int>(set_.plans.size()) != ranks_) {
    findings_.add(-1, -1, "{} plans for {} ranks", set_.plans.size(), ranks_);
    return false;
  }
  const PlanHeader& first = set_.plans.front().header();
  for (int rank = 0; rank < ranks_; ++rank) {
    const PlanHeader& header = set_.plans[static_cast<std::size_t>(rank)].header();
    if (header.rank != rank || header.ranks != ranks_) {
      findings_.add(rank, -1, "the plan is that of rank {} of {}", header.rank, header.ranks);
    } else if (header.hash != first.hash || header.is_in_place != first.is_in_place || header.op != first.op) {
      findings_.add(rank, -1, "the plan is of another call than rank 0's");
    } else if (header.is_exchange && !is_exchange(set_.plans[static_cast<std::size_t>(rank)].ops())) {
      findings_.add(rank, -1, "the plan is marked as an exchange, which it is not");
    }
  }
  return findings_.is_empty();
}

void PlanCheck::check(int rank, const Plan& plan, const PlanOp& op) {
  const std::size_t operands = op.verb == Verb::move ? std::size_t{op.destinations} + op.sources : 1;
  if (op.first_operand + operands > plan.operands().size()) {
    findings_.add(rank, op.step, "has operands beyond the plan's");
    return;
  }
  for (const PlanOperand& operand : plan.operands().subspan(op.first_operand, operands)) {
    if (is_in_range(operand.ranks, ranks_)) continue;
    findings_.add(rank, op.step, "{}", describe_range(operand.ranks, ranks_));
    return;
  }
  if (op.verb == Verb::move) check_move(rank, plan, op);
}

void PlanCheck::check_move(int rank, const Plan& plan, const PlanOp& op) {
  const std::span<const PlanOperand> destinations = plan.destinations(op);
  const std::span<const PlanOperand> sources = plan.sources(op);
  if (destinations.empty() || sources.empty()) {
    findings_.add(rank, op.step, "a MOVE needs a destination and a source");
    return;
  }
  if (op.bytes < 0) findings_.add(rank, op.step, "moves {} bytes", op.bytes);
  bool has_channel = false;
  check_channels(rank, op, destinations);
  check_channels(rank, op, sources);
  for (const PlanOperand& operand : plan.operands().subspan(op.first_operand, destinations.size() + sources.size())) {
    has_channel |= operand.space == Space::channel;
    check_place(rank, op, operand);
  }
  if (has_channel != (op.has_channel != 0)) {
    findings_.add(rank, op.step, "touches {} channel, and is {}marked so", has_channel ? "a" : "no",
                  has_channel ? "not " : "");
  }
  if (has_channel) check_slice(rank, plan, op);
  const Shortcut allowed = shortcut_of(op, plan.operands().subspan(op.first_operand), plan.header().op);
  if (op.shortcut != Shortcut::none && op.shortcut != allowed) {
    findings_.add(rank, op.step, "is marked for a shortcut that it cannot take");
  }
}

void PlanCheck::check_place(int rank, const PlanOp& op, const PlanOperand& operand) {
  const RankSet& set = operand.ranks;
  if (set.n == 0) {
    findings_.add(rank, op.step, "an operand on no rank");
    return;
  }
  if (operand.space == Space::channel && set.n > 1) {
    findings_.add(rank, op.step, "a channel to or from {} ranks", set.n);
  }
  const bool may_be_mine = operand.space != Space::channel && set.n == 1 && set.first == rank;
  if (operand.is_mine && !may_be_mine) {
    findings_.add(rank, op.step, "an operand of rank {} is marked as this rank's own", set.first);
  }
  for (int i = 0; operand.space == Space::line && i < set.n; ++i) {
    const int owner = set.at(i, ranks_);
    if (has_references_[static_cast<std::size_t>(owner)] == 0) continue;
    findings_.add(rank, op.step, "touches the flag line of rank {}, where the references to the buffers it exposes are",
                  owner);
  }
}

/// A channel carries one slice at a time: two operands would be one slot.
void PlanCheck::check_channels(int rank, const PlanOp& op, std::span<const PlanOperand> side) {
  std::size_t channels = 0;
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (side[i].space != Space::channel) continue;
    ++channels;
    for (std::size_t j = 0; j < i; ++j) {
      if (side[j].space != Space::channel || side[j].ranks.first != side[i].ranks.first) continue;
      findings_.add(rank, op.step, "a MOVE has the channel of rank {} twice on one side", side[i].ranks.first);
    }
  }
  if (channels > kMostChannels) {
    findings_.add(rank, op.step, "a MOVE has {} channels on one side; at most {}", channels, kMostChannels);
  }
}

/// A slice has the slots with which it was opened, and its pieces touch no other ones.
void PlanCheck::check_slice(int rank, const Plan& plan, const PlanOp& op) {
  if ((op.marks & mark_opens) != 0) opened_ = &op;
  if (opened_ == nullptr || opened_ == &op) return;
  const auto peers = [](std::span<const PlanOperand> operands) {
    std::vector<int> of_channels;
    for (const PlanOperand& operand : operands) {
      if (operand.space == Space::channel) of_channels.push_back(operand.ranks.first);
    }
    return of_channels;
  };
  const bool has_same_channels = peers(plan.sources(op)) == peers(plan.sources(*opened_)) &&
                                 peers(plan.destinations(op)) == peers(plan.destinations(*opened_));
  if (has_same_channels) return;
  findings_.add(rank, op.step, "a piece of a slice has other channels than the slice");
}

void PlanCheck::check(int rank, const Plan& plan, const PlanExposure& exposure) {
  if (exposure.op >= plan.ops().size()) {
    findings_.add(rank, -1, "an exposure belongs to op {} of {}", exposure.op, plan.ops().size());
  } else if (exposure.target < 0 || exposure.target >= ranks_) {
    findings_.add(rank, plan.ops()[exposure.op].step, "exposes memory to rank {} of {}", exposure.target, ranks_);
  }
}

}  // namespace

bool check_plans(const PlanSet& set, Findings& findings) {
  PlanCheck(set, findings).run();
  return findings.is_empty();
}

}  // namespace tutti

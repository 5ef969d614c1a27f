// SPDX-License-Identifier: Apache-2.0
// A pace decides that a rank goes on later than it could. A simulation (harness/measure/order.h) stops ranks where a
// machine with many cores would: at any wait, also one that is over. Without a pace nothing here is on the way.
#pragma once

#include <cstdint>

#include "impl/schedule/plan.h"

namespace tutti {

class Pace {
 public:
  virtual ~Pace() = default;
  /// Asked where the rank could go on: at each wait of a plan that is over, before an operation starts, and before
  /// sends and receives move. True: not this time; the rank asks again when it is polled again.
  [[nodiscard]] virtual bool holds_back() = 0;
  /// The rank has gone on: something may have happened that others wait for.
  virtual void went_on() = 0;
};

/// A machine whose waits end when its pace says so (see step.h).
template <class Machine>
class Paced {
 public:
  Paced(Machine& machine, Pace& pace) : machine_(machine), pace_(pace) {}

  [[nodiscard]] bool heard(int rank, std::uint16_t phase) { return machine_.heard(rank, phase) && !pace_.holds_back(); }
  [[nodiscard]] bool channels_ready(const PlanOp& op, const PlanOperand* operand) {
    return machine_.channels_ready(op, operand) && !pace_.holds_back();
  }
  void announce(const PlanOp& op, const PlanOperand* operand) { machine_.announce(op, operand); }
  void move(const PlanOp& op, const PlanOperand* operand) { machine_.move(op, operand); }
  void close_channels(const PlanOp& op, const PlanOperand* operand) { machine_.close_channels(op, operand); }

 private:
  Machine& machine_;
  Pace& pace_;
};

}  // namespace tutti

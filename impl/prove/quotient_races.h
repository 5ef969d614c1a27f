// SPDX-License-Identifier: Apache-2.0
// The rule of races.h where one rank stands for all: the accesses of all ranks to rank 0's memory are rank 0's accesses
// to theirs, taken back. One list of them, sorted by unit, gives every conflict.
#pragma once

#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/steps.h"

namespace tutti {

class QuotientRaces {
 public:
  /// An access to rank 0's memory: its own at `from`, another rank's somewhere in (from, to) of rank 0's program.
  struct Event {
    Space space;
    int unit;
    int accessor;
    int from;
    int to;
    int step;  ///< of the accessor
    bool is_write;
  };

  void add(const Event& event) { events_.push_back(event); }
  /// Adds a finding for one conflict of each unit.
  void check(Findings& findings);

 private:
  static bool conflict(const Event& a, const Event& b);
  static void report(const Event& a, const Event& b, Findings& findings);

  std::vector<Event> events_;
};

}  // namespace tutti

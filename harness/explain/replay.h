// SPDX-License-Identifier: Apache-2.0
// A schedule followed step by step on the numbers of an example, to tell what each step does. It tells which ranks have
// signalled when a WAIT ends, which numbers are combined, and what travels in a channel. It is a reader of the schedule
// of its own; the real run must leave the same numbers, which `explain` and its tests check.
#pragma once

#include <string>
#include <vector>

#include "harness/explain/example.h"

namespace tutti::harness::explain {

/// What was said by a SIGNAL that a WAIT heard.
struct Heard {
  int rank = 0;
  Step signal;
};

/// One step as it went.
struct Told {
  int rank = 0;
  Step step;
  int round = 0;             ///< MOVE that takes something from, or writes something to, another rank: from 1; else 0
  std::vector<Heard> heard;  ///< WAIT
  std::vector<int> units;    ///< MOVE: of the larger of input and output, that it deals with
  /// MOVE: each source's numbers, one entry per rank of a set; and what came out.
  std::vector<std::vector<double>> sources;
  std::vector<double> result;
};

struct Replay {
  std::vector<std::vector<Told>> steps;  ///< [rank]
  std::vector<Numbers> output;           ///< [rank]: at the end
  int rounds = 0;
};

/// Errors: refuted where a rank never gets on; a schedule that is proved does not do that.
[[nodiscard]] Result<Replay> replay(const Schedule& schedule, const Example& example);

}  // namespace tutti::harness::explain

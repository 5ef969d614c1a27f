// SPDX-License-Identifier: Apache-2.0
// What each chunk holds as a file's steps are done: which chunk of the inputs, added up over which gpus. So a mistake
// is found at the step that makes it, and not at an output that is wrong in the end.
#pragma once

#include <vector>

#include "harness/exchange/events.h"

namespace tutti::harness::exchange {

/// What was learned of a step.
struct Moved {
  std::vector<int> parts;    ///< [chunk that it moves]: which part of a block that is
  bool is_complete = false;  ///< it adds up the last input of what it moves
};

/// The steps in `order` (as check_races), from the inputs to the outputs. Errors: refuted naming the step that reads
/// what was never written, writes an input, adds up different chunks or one twice, or left a wrong output behind.
[[nodiscard]] Result<std::vector<Moved>> follow(const Events& events, const std::vector<int>& order);

}  // namespace tutti::harness::exchange

// SPDX-License-Identifier: Apache-2.0
// Operations whose buffers are not the user's: what happens around a call that was given others.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "harness/backends/system.h"

namespace tutti::harness::faults {

/// The buffers of one rank, the user's and those that the call gets in their place.
struct StandIn {
  std::span<const std::byte> user_input;
  std::span<std::byte> user_output;
  std::vector<std::byte> input;   ///< empty: the user's
  std::vector<std::byte> output;  ///< empty: the user's

  [[nodiscard]] RankBuffers buffers() {
    return {.input = input.empty() ? user_input.data() : input.data(),
            .output = output.empty() ? user_output.data() : output.data()};
  }
};

/// What to do for each rank, where it is not empty.
struct Interception {
  std::function<void(StandIn&)> before;      ///< of a call
  std::function<void(StandIn&)> after;       ///< once it is complete
  std::function<void(StandIn&)> much_later;  ///< at a look delay_ns later or more
  std::int64_t delay_ns = 0;
};

/// `calls`, prepared with the buffers of the stand-ins, one for each rank of the runner.
[[nodiscard]] std::unique_ptr<Prepared> intercept(std::unique_ptr<Prepared> calls, std::vector<StandIn> stand_ins,
                                                  Interception what);

}  // namespace tutti::harness::faults

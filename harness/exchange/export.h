// SPDX-License-Identifier: Apache-2.0
// A schedule in the formats of others. Both know messages between two ranks, and neither knows memory of another rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"
#include "impl/types/status.h"

namespace tutti::harness::exchange {

/// What a rank's own work takes: ns for a number of bytes.
struct LocalCosts {
  std::function<double(double)> reduce;  ///< adding one more operand
  std::function<double(double)> copy;    ///< storing to one buffer
};

/// GOAL, as LogGOPSim reads it: a recv for each message that arrives and a send for each that leaves, in program order.
/// With `costs` a calc of the MOVE's own work stands between them, in whole ns, unless it takes none. `bytes`: of the
/// larger of one rank's buffers. A unit is as long as the block allows, so that sizes add up. Errors: unavailable
/// naming rank and step of what GOAL cannot say.
[[nodiscard]] Result<std::string> goal_text(const Schedule& schedule, std::int64_t bytes,
                                            const std::optional<LocalCosts>& costs = {});

/// MSCCL XML, out of place. A rank's program becomes thread blocks of one peer to send to and one to receive from,
/// whose order is the program's. Errors: unavailable naming rank and step of what MSCCL XML cannot say.
[[nodiscard]] Result<std::string> msccl_text(const Schedule& schedule);

}  // namespace tutti::harness::exchange

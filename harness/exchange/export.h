// SPDX-License-Identifier: Apache-2.0
// A schedule in the formats of others. Both know messages between two ranks, and neither knows memory of another rank.
#pragma once

#include <cstdint>
#include <string>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"
#include "impl/types/status.h"

namespace tutti::harness::exchange {

/// GOAL, as LogGOPSim reads it: a recv for each message that arrives and a send for each that leaves, in program order.
/// `bytes`: of the larger of one rank's buffers. A unit is as long as the block allows, so that sizes add up. Errors:
/// unavailable naming rank and step of what GOAL cannot say.
[[nodiscard]] Result<std::string> goal_text(const Schedule& schedule, std::int64_t bytes);

/// MSCCL XML, out of place. A rank's program becomes thread blocks of one peer to send to and one to receive from,
/// whose order is the program's. Errors: unavailable naming rank and step of what MSCCL XML cannot say.
[[nodiscard]] Result<std::string> msccl_text(const Schedule& schedule);

}  // namespace tutti::harness::exchange

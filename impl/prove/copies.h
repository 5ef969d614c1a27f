// SPDX-License-Identifier: Apache-2.0
// Schedules that only copy: every block goes once from an input to an output, by itself or as a message, and nobody
// reads what arrived. A message is matched with what the receiver makes of it as it goes by, so that nothing is kept of
// values. All ranks do step i together, of each i the sends before the receives. That is one run of the ranks: where it
// ends, all runs end, and give the same.
#pragma once

#include <optional>
#include <vector>

#include "impl/schedule/schedule.h"

namespace tutti {

/// The cost of every rank, where the copies are right out of place, and in place too if `is_in_place_too`; none where
/// the schedule does more than copy, where a copy is wrong, or where this run does not end: others then say which.
[[nodiscard]] std::optional<std::vector<Cost>> match_copies(const Schedule& schedule, int slots, bool is_in_place_too);

}  // namespace tutti

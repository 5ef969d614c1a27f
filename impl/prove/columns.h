// SPDX-License-Identifier: Apache-2.0
// Schedules in which every rank works on a column of its own: unit r of everybody's buffers, and scratch that nobody
// else sees. Nothing that one rank touches is touched by another. So there is no race, and the columns can be executed
// one after the other. The library turns rank 0's steps to the other ranks (schedule/turning.h). So rank 0's column
// stands for all. SIGNALs and WAITs are between all ranks, at the same index of every program: no rank gets stuck.
// Each rank has SIGNALs of its own, which are looked at one by one.
#pragma once

#include <optional>
#include <vector>

#include "impl/schedule/schedule.h"

namespace tutti {

struct Columns {
  std::vector<Cost> costs;        ///< by rank
  bool has_heard_of_all = false;  ///< each rank, when it ends
  bool keeps_order = true;        ///< out of place
};

/// The costs, where the columns are right out of place, and in place too if `is_in_place_too`; none where the schedule
/// is not by columns, or where something is wrong: others then say what.
[[nodiscard]] std::optional<Columns> prove_columns(const Schedule& schedule, bool is_in_place_too);

}  // namespace tutti

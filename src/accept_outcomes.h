// SPDX-License-Identifier: Apache-2.0
// What the jobs of a group have told of a test, as an outcome of `tutti accept`.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/launch/launch.h"
#include "harness/record/record.h"
#include "harness/soak/soak.h"
#include "harness/train/train.h"
#include "impl/types/status.h"

namespace tutti::program {

/// A cell that the ranks skip is of the plan, not of a node.
[[nodiscard]] bool is_skipped(const harness::Row& row);
[[nodiscard]] harness::accept::Outcome outcome_of(const harness::Row& row, const harness::accept::Test& test);
/// `seconds`: that the soak took.
[[nodiscard]] harness::accept::Outcome outcome_of(const Result<harness::SoakResult>& soak, double seconds);
[[nodiscard]] harness::accept::Outcome outcome_of(const Result<harness::TrainRow>& trained);
/// How a job that failed has ended.
[[nodiscard]] harness::accept::Ending ending_of(const harness::Outcome& outcome);
/// Sets the speed by the mean of the samples, in place of their median.
void take_mean(harness::accept::Outcome& outcome, const harness::Row& row, double mean_us);
/// Sets the speed of each rank, from what its samples took.
void add_members(harness::accept::Outcome& outcome, const std::vector<double>& rank_us, std::int64_t bytes);

}  // namespace tutti::program

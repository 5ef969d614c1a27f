// SPDX-License-Identifier: Apache-2.0
// oneCCL's ranks on CPUs: how they are told of each other, and what they are told to use.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/backends/backend.h"
#include "harness/backends/oneccl/calls.h"

namespace tutti::backend_oneccl {

/// Sets the variables without which oneCCL looks for an mpirun and for GPUs, but for those that the user has set. Ranks
/// meet over `join.address`, or over the loopback if all are on one host. Throws.
void prepare_environment(const TuttiBackendGroup& world, const TuttiBackendJoin& join);

/// Collective. Rank 0's key-value store is told by the exchange of `join`. Throws.
[[nodiscard]] std::unique_ptr<Group> connect(const TuttiBackendGroup& world, const TuttiBackendJoin& join);

/// As split of backend.h; null if the colour is below 0. Ranks that change their order get a communicator of their own
/// instead of oneCCL's split. Collective. Throws.
[[nodiscard]] std::unique_ptr<Group> split(Group& whole, std::int32_t colour, std::int32_t key);

}  // namespace tutti::backend_oneccl

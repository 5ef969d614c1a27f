// SPDX-License-Identifier: Apache-2.0
// Communicators of ranks that are thread blocks of one device. One process owns them all. A rank's post is kept until
// all ranks of the group have posted; then one launch runs them together, since each waits for the others inside it.
// So nothing starts that could not end, and a rank that does not call is named without a device that hangs.
#pragma once

#include <memory>
#include <vector>

#include "impl/communicator/hooks.h"
#include "impl/device/device.h"

namespace tutti {

struct TeamShape {
  int lanes = 1;    ///< blocks of a rank, which share the segments of a call out: 1 to kMostLanes
  int threads = 1;  ///< of a block
};
inline constexpr int kMostLanes = 64;

/// A communicator for each rank of `domain`, which all lie on `device`. Both outlive them. A call of any rank may come
/// from any thread. Waiting is as with tasks: a thread that has several ranks tests them in turn.
/// Errors: invalid_argument for lanes or threads out of range; those of Device::fits and Device::allocate.
[[nodiscard]] Result<std::vector<std::unique_ptr<Communicator>>> create_as_blocks(Domain& domain, Device& device,
                                                                                  const TeamShape& teams,
                                                                                  const CommunicatorOptions& options,
                                                                                  const Hooks& hooks = {});

}  // namespace tutti

// SPDX-License-Identifier: Apache-2.0
// Communicators of ranks that are thread blocks of a device, or of several. Where one process owns them all, a rank's
// post is kept until all ranks of the group have posted; then each device has one launch, and all ranks run together,
// since each waits for the others inside it. So nothing starts that could not end, and a rank that does not call is
// named without a device that hangs. Where ranks are processes, each has a device for itself, which may well wait.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "impl/communicator/hooks.h"
#include "impl/device/device.h"

namespace tutti {

struct TeamShape {
  int lanes = 1;    ///< blocks of a rank, which share the segments of a call out: 1 to kMostLanes
  int threads = 1;  ///< of a block
  /// Of a message that goes by packets (impl/execute/packets.h) at most; 0: none does. A multiple of 128. A rank's
  /// threads look at each packet, so longer ones are better read as they lie: from the cost formula, not measured.
  std::int64_t packet_bytes = 1024;
};
inline constexpr int kMostLanes = 64;
inline constexpr std::int64_t kMostPacketBytes = 64 * 1024;

/// A communicator for each rank of `domain`. The ranks are dealt to `devices` in ranges (device_dealt); a rank's
/// buffers lie where its device addresses them, and those of the others. Domain and devices outlive the communicators.
/// A call of any rank may come from any thread. Waiting is as with tasks: a thread that has several ranks tests them in
/// turn. Errors: invalid_argument for lanes or threads out of range, or more devices than ranks; those of
/// Device::reach, Device::fits and Device::allocate.
[[nodiscard]] Result<std::vector<std::unique_ptr<Communicator>>> create_as_blocks(Domain& domain,
                                                                                  std::span<Device* const> devices,
                                                                                  const TeamShape& teams,
                                                                                  const CommunicatorOptions& options,
                                                                                  const Hooks& hooks = {});
/// That of `rank`, of which this process has no other, on a device of its own; the other ranks of `domain` are
/// processes of this machine. All call it; nothing else uses the domain's scratch. The rank's buffers lie on its
/// device, and are private. A call is launched when it is posted, and ends when the others have called. Errors: the
/// first of any rank's, the same on all: invalid_argument for lanes or threads out of range; unavailable where two
/// ranks have one device, or one cannot address another; those of Device::fits and Device::allocate; timeout.
[[nodiscard]] Result<std::unique_ptr<Communicator>> create_on_own_device(Domain& domain, int rank, Device& device,
                                                                         const TeamShape& teams,
                                                                         const CommunicatorOptions& options,
                                                                         const Hooks& hooks = {});
/// All on one.
[[nodiscard]] inline Result<std::vector<std::unique_ptr<Communicator>>> create_as_blocks(
    Domain& domain, Device& device, const TeamShape& teams, const CommunicatorOptions& options,
    const Hooks& hooks = {}) {
  Device* const devices[] = {&device};
  return create_as_blocks(domain, devices, teams, options, hooks);
}

}  // namespace tutti

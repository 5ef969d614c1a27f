// SPDX-License-Identifier: Apache-2.0
// Where instruments reach into a communicator: those that break collectives on purpose, those that slow them, and
// those that say whose turn it is. Users need nothing of this, and without hooks nothing here is on the way.
#pragma once

#include <functional>
#include <memory>

#include "impl/communicator/communicator.h"
#include "impl/execute/slow.h"

namespace tutti {

class Pace;
struct BoundEntry;

/// Gets every call that `rank` has bound and proved, before it is kept, and may change what then runs. Binding is not
/// on the way of a repeated call.
using AfterBind = std::function<void(int rank, const Call& call, BoundEntry& bound)>;

struct Hooks {
  /// Of a rank that yields and is only ever tested, never waited for: a simulation's. It outlives the communicator.
  Pace* pace = nullptr;
  AfterBind after_bind = {};
  Slowness slow = {};  ///< of this rank; its peer is a rank of the communicator
};

/// Communicator::create, with hooks that its groups have too.
[[nodiscard]] Result<std::unique_ptr<Communicator>> create_with_hooks(Domain& domain, int rank,
                                                                      const CommunicatorOptions& options, Hooks hooks);

}  // namespace tutti

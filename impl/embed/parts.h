// SPDX-License-Identifier: Apache-2.0
// What a world is made of. All but what is said is touched with the lock of Progress only.
#pragma once

#include <memory>
#include <optional>
#include <sys/types.h>
#include <vector>

#include "impl/communicator/communicator.h"
#include "impl/embed/arena.h"
#include "impl/embed/peers.h"
#include "impl/embed/world.h"
#include "impl/transports/domain.h"
#include "impl/types/descriptor.h"

namespace tutti::embed {

struct World::Parts {
  // These stay as they are, so that anybody may read them.
  int rank = 0;
  int ranks = 1;
  int cores = 1;                     ///< that the ranks of this host may use together
  int ranks_here = 1;                ///< on this host
  pid_t owner = 0;                   ///< the process that has joined
  std::vector<ProcessId> processes;  ///< [rank], each by its own host's numbers
  std::chrono::nanoseconds timeout{};
  bool has_arenas = false;
  std::vector<std::shared_ptr<PeerArena>> arenas;  ///< of the others: they outlive the domain
  Descriptor memory;               ///< until all have joined: its maker's is what the others open
  std::unique_ptr<Domain> domain;  ///< as long as the world, for somebody may sleep at its doorbell
  Doorbell* doorbell = nullptr;    ///< of this host's ranks
  int descriptor = -1;             ///< readable when a link has news; -1: there are none

  std::uint64_t turns = 0;  ///< given to operations that need all ranks
  std::uint64_t turn = 0;   ///< whose turn it is to post

  std::unique_ptr<Communicator> communicator;  ///< null once this rank has left
  std::optional<Peers> peers;

  /// The same; where ranks are on several hosts, with the pid of the rank that has failed.
  [[nodiscard]] Status with_process(const Status& status) const;
  [[nodiscard]] bool has_core_for_each() const { return ranks_here <= cores; }
};

}  // namespace tutti::embed

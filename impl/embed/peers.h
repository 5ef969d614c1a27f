// SPDX-License-Identifier: Apache-2.0
// Which ranks of a world are no more. The process of a rank of this host is watched by a pidfd: a dead process cannot
// be taken for another one that has got its number. A rank that has destroyed its world says so in its journal.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::embed {

/// A process as another one of its host knows it.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< in clock ticks since the host's start: no later process has both numbers
};
[[nodiscard]] ProcessId this_process();

/// One per process and watched process, however many worlds both are in.
class WatchedProcess {
 public:
  /// The one there is, or a new one.
  [[nodiscard]] static std::shared_ptr<WatchedProcess> of(const ProcessId& id);
  explicit WatchedProcess(const ProcessId& id);
  /// Asks the kernel.
  [[nodiscard]] bool is_gone();

 private:
  ProcessId id_;
  Descriptor pidfd_;
  bool is_gone_ = false;
};

class Peers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// What a rank that is dead or has left had given before may still complete what is under way.
  static constexpr std::chrono::milliseconds kGrace{150};

  /// `ids[rank]`: of this host; a pid of 0 stands for a rank of another host. `domain` outlives the peers.
  Peers(int rank, std::vector<ProcessId> ids, Domain& domain);

  /// Looks at all of them, but not more often than each few milliseconds.
  void look(Time now);
  /// Whether any rank has ended or left, as far as the last look has seen.
  [[nodiscard]] bool has_lost_any() const { return lost_ > 0; }
  /// A rank without which an operation cannot go on (OperationOptions::needs), and that has ended before the grace.
  [[nodiscard]] std::optional<int> lost_by(int needs, Time now) const;
  /// "its process (pid 30312) has ended", "it has left".
  [[nodiscard]] std::string fate_of(int rank) const;
  [[nodiscard]] pid_t pid_of(int rank) const { return peers_[static_cast<std::size_t>(rank)].id.pid; }

 private:
  struct Peer {
    ProcessId id;
    std::shared_ptr<WatchedProcess> process;  // null: of another host, or this process
    const Journal* journal = nullptr;         // null: of another host
    bool is_lost = false, has_left = false;
    Time since;
  };

  int rank_;
  std::vector<Peer> peers_;
  int lost_ = 0;
  Time looked_;
};

}  // namespace tutti::embed

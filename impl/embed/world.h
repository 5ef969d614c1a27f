// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of somebody else: a PyTorch program, an MPI program, a service. A world is one group of
// them. Every group is a world of its own, with memory of its own, and costs little until it is used.
//
// README.md: how ranks meet, who moves what is under way, how the end of a rank is told. USE.md: an example.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "impl/communicator/communicator.h"
#include "impl/embed/exchange.h"
#include "impl/embed/operation.h"
#include "impl/types/status.h"
#include "impl/types/visibility.h"

namespace tutti::embed {

/// Memory that ranks of one host share, whatever world they are in (arena.h).
class Arena;
/// How ranks of several hosts reach each other: hosts.h has the one there is. Without one, all ranks are to be on one
/// host.
class BetweenHosts;

struct WorldOptions {
  /// Of the meeting, and of operations that name none.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Of each rank, for alloc_shared.
  std::size_t heap_bytes = 0;
  const BetweenHosts* between_hosts = nullptr;
  /// The address, or the name of the interface, at which other hosts reach this one. Empty: that of the route to rank
  /// 0's host.
  std::string interface = {};
  /// Of this process: where buffers of its calls may lie. Null: there is none. If all ranks of a host have one, there are
  /// no heaps.
  const Arena* arena = nullptr;
};

/// Thread-safe. In a forked child a world can only be destroyed, which touches nothing of the parent's.
class TUTTI_API World : public std::enable_shared_from_this<World> {
 public:
  /// All ranks call it, each with its own `rank`. Returns when all have joined.
  /// Errors: invalid_argument (a rank out of range); timeout naming the ranks that have not come; unavailable (ranks
  /// are on several hosts, and nothing reaches them, or are not numbered host by host); aborted naming a rank that
  /// ended meanwhile; resource, io; those of the exchange.
  [[nodiscard]] static Result<std::shared_ptr<World>> join(const Exchange& exchange, int rank, int ranks,
                                                           const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;
  /// Null: all are on this one.
  [[nodiscard]] const Hosts* hosts() const;
  /// Process id of a rank; 0 where it is on another host.
  [[nodiscard]] pid_t pid_of(int rank) const;
  [[nodiscard]] std::chrono::nanoseconds timeout() const;
  /// Nothing, or that a rank of this host has ended or left: "its process (pid 30312) has ended".
  [[nodiscard]] std::optional<std::string> fate_of(int rank) const;
  /// Whether all ranks are on this host and have joined with an arena. Calls may then have Buffers::shared, if the
  /// buffers lie there on all ranks. After a call that has failed a peer may write into this rank's buffers once more.
  [[nodiscard]] bool has_arenas() const;

  /// Posts what `next` does, and looks once. Errors: those of its first call, on which the caller has no operation: so
  /// what can be wrong on this rank alone is to be checked before; the world's own end. Behind an operation of several
  /// steps the first call may come later: then its error is the operation's, and what it points to is to live so long.
  [[nodiscard]] Result<std::shared_ptr<Operation>> post(Next next, OperationOptions options = {});
  /// One collective, with the placement that its addresses show.
  [[nodiscard]] Result<std::shared_ptr<Operation>> post(const Call& call, OperationOptions options = {});
  /// Messages are matched by peer and tag, in the order in which they were posted.
  [[nodiscard]] Result<std::shared_ptr<Operation>> post_send(const void* buffer, Count count, Dtype dtype, int peer,
                                                             int tag = 0, OperationOptions options = {});
  [[nodiscard]] Result<std::shared_ptr<Operation>> post_recv(void* buffer, Count count, Dtype dtype, int peer,
                                                             int tag = 0, OperationOptions options = {});
  /// Of whichever rank sends first; `*from` is that rank once the operation is done, and is to live until then.
  [[nodiscard]] Result<std::shared_ptr<Operation>> post_recv_from_any(void* buffer, Count count, Dtype dtype, int tag,
                                                                      int* from, OperationOptions options = {});

  /// `bytes` that every rank of the host can address, for calls with shared buffers. Errors: resource.
  [[nodiscard]] Result<void*> alloc_shared(std::size_t bytes);
  void free_shared(void* pointer);

  /// Ends the world for all its ranks: whatever is under way, and every later call, fails with `reason`.
  void abort(std::string_view reason);
  /// This rank makes no more calls: what it has under way here is given up. A rank that waits for it learns that it has
  /// left. The destructor does the same.
  void leave();

 private:
  friend class Operation;
  friend class Progress;
  friend class Joining;
  struct Parts;
  explicit World(std::unique_ptr<Parts> parts);
  /// With the lock of Progress. Errors: invalid_argument in a forked child, or where this rank has left.
  [[nodiscard]] Status check_usable() const;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tutti::embed

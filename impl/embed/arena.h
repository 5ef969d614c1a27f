// SPDX-License-Identifier: Apache-2.0
// Memory of this process that the other ranks of its host can address, so that calls run on shared buffers. It is a file
// in memory without a name, larger than any host's memory: pages come when they are touched, as those of malloc do.
//
// Forks. A child has a copy of what was in use, private to it, as it would have of any other memory. The parent waits
// until the copy is made: the pages of a shared file cannot be copied when one of both writes. The child gets no more
// memory of that arena. One that becomes a rank itself has a new one.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "impl/embed/peers.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::embed {

/// It stays until the process ends. Thread-safe.
class Arena {
 public:
  /// That of this process, which is made when it is called first. Errors: resource.
  [[nodiscard]] static Result<Arena*> of_process();

  /// Whole pages, of any content. Null: no room, or this process is a forked child.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Requires: from allocate.
  void release(void* pointer);
  /// Whether all of [pointer, pointer + bytes) is of the arena.
  [[nodiscard]] bool holds(const void* pointer, std::size_t bytes) const;

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// That of the parent, where this process is a forked child. Null: there was none.
  [[nodiscard]] Arena* inherited() const { return inherited_; }
  /// By which another process of this user maps it: "<descriptor>:<bytes>:<token>".
  [[nodiscard]] const std::string& offer() const { return offer_; }

 private:
  explicit Arena(Arena* inherited) : inherited_(inherited) {}
  Status make();
  void give_back(std::size_t offset, std::size_t bytes);
  void add_free(std::size_t offset, std::size_t bytes);
  void remove_free(std::map<std::size_t, std::size_t>::iterator part);
  // Around a fork: see above.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void copy_for_child(std::size_t offset, std::size_t bytes);

  Arena* inherited_;
  std::mutex mutex_;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  Descriptor file_;
  std::string offer_;
  bool is_of_child_ = false;
  std::map<std::size_t, std::size_t> used_, free_;          // offset, bytes
  std::set<std::pair<std::size_t, std::size_t>> by_bytes_;  // those of free_: bytes, offset
  std::size_t kept_ = 0;                                    // bytes that were released and have kept their pages
  int waits_for_copy_ = -1, tells_of_copy_ = -1;            // a pipe, during a fork
};

/// The arena of another process, as long as a world of both is there.
class PeerArena {
 public:
  /// The one there is, or a new one. Errors: io, mismatch, resource.
  [[nodiscard]] static Result<std::shared_ptr<PeerArena>> of(const ProcessId& process, const std::string& offer);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;
  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  PeerArena(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  [[nodiscard]] static Result<std::shared_ptr<PeerArena>> map(const ProcessId& process, const std::string& offer);
  std::byte* begin_;
  std::size_t bytes_;
};

}  // namespace tutti::embed

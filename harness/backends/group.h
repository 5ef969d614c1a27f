// SPDX-License-Identifier: Apache-2.0
// A group of ranks of a system under test, as one of them sees it: asynchronous calls, many in flight at once, and
// groups made of groups. Own communicators and references stand behind the same interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "harness/verify/buffers.h"
#include "harness/verify/oracle.h"
#include "impl/schedule/bind.h"
#include "impl/types/status.h"

namespace tutti::harness::backends {

/// One collective call; the same on all ranks of the group but for the addresses.
struct GroupCall {
  const Operation& what;
  const void* input = nullptr;
  void* output = nullptr;
  bool is_in_place = false;
  Buffers buffers = Buffers::private_;
  std::uint64_t algorithm =
      0;  ///< which of the collective's, counted round; 0: the system chooses, as a reference does
};

/// `buffer[count]` to or from rank `peer`. What one rank sends to another is matched in the order of the posts.
template <class Pointer>
struct Message {
  Pointer buffer = nullptr;
  Count count = 0;
  Dtype dtype = Dtype::f32;
  int peer = 0;
};

/// What was posted. Tested and waited for in any order; each makes progress with all that this rank has posted. Not
/// touched again after an error.
class Pending {
 public:
  virtual ~Pending() = default;
  /// True when complete.
  [[nodiscard]] virtual Result<bool> test() = 0;
  /// A reference's own wait has no deadline: there the launcher's counts.
  virtual Status wait(std::chrono::nanoseconds timeout) = 0;
  /// Where it stands, for reports.
  [[nodiscard]] virtual std::string position() const = 0;
  /// As Prepared::report, of the ranks of its group.
  [[nodiscard]] virtual std::string report() const { return ""; }
};

class Formation;

class Group {
 public:
  virtual ~Group() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// Memory for the buffers of a call; it outlives neither the group nor its world.
  [[nodiscard]] virtual Allocator memory(Buffers buffers) = 0;

  /// The same on all ranks of the group. Errors: unavailable with the reason.
  [[nodiscard]] virtual Status supports(const GroupCall& call) const = 0;
  /// All ranks of the group post the same calls in the same order. Errors: those of the system.
  [[nodiscard]] virtual Result<std::unique_ptr<Pending>> post(const GroupCall& call) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Pending>> post_send(const Message<const void*>& message) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Pending>> post_recv(const Message<void*>& message) = 0;

  /// A group for each colour, of the ranks that pass it, ordered by key, then by rank; none for a colour below 0.
  /// Collective over this group, which takes nothing else until the formation is complete.
  [[nodiscard]] virtual Result<std::unique_ptr<Formation>> post_split(int colour, int key) = 0;
  /// A group of `ranks` of this one, in that order; called by all ranks of this group with the same list.
  [[nodiscard]] virtual Result<std::unique_ptr<Formation>> post_new_group(std::span<const int> ranks) = 0;
  /// Gives the group back, where it is not the world. Collective; nothing is in flight. The group is not used again.
  virtual Status free() = 0;
};

/// A group on its way.
class Formation {
 public:
  virtual ~Formation() = default;
  [[nodiscard]] virtual Result<bool> test() = 0;
  /// Once complete: the group, null where this rank is in none.
  [[nodiscard]] virtual std::unique_ptr<Group> take() = 0;
};

}  // namespace tutti::harness::backends

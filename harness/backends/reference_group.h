// SPDX-License-Identifier: Apache-2.0
// A group of a reference library, by its nonblocking functions.
#pragma once

#include <functional>
#include <memory>

#include "harness/backends/group.h"
#include "harness/backends/loader.h"

namespace tutti::harness::backends {

/// Memory for the buffers of this rank: the same kind as for the own collectives.
using GroupMemory = std::function<Allocator(Buffers buffers)>;

class ReferenceGroup final : public Group {
 public:
  /// `library` is open and outlives the group.
  ReferenceGroup(const LoadedBackend& library, const TuttiBackendGroup& group, GroupMemory memory)
      : library_(library), group_(group), memory_(std::move(memory)) {}

  [[nodiscard]] int rank() const override { return group_.rank; }
  [[nodiscard]] int ranks() const override { return group_.ranks; }
  [[nodiscard]] Allocator memory(Buffers buffers) override { return memory_(buffers); }
  [[nodiscard]] Status supports(const GroupCall& call) const override;
  [[nodiscard]] Result<std::unique_ptr<Pending>> post(const GroupCall& call) override;
  [[nodiscard]] Result<std::unique_ptr<Pending>> post_send(const Message<const void*>& message) override;
  [[nodiscard]] Result<std::unique_ptr<Pending>> post_recv(const Message<void*>& message) override;
  /// Complete when it returns: MPI has no other.
  [[nodiscard]] Result<std::unique_ptr<Formation>> post_split(int colour, int key) override;
  [[nodiscard]] Result<std::unique_ptr<Formation>> post_new_group(std::span<const int> ranks) override;
  Status free() override;

 private:
  [[nodiscard]] Result<std::unique_ptr<Pending>> start(TuttiBackendCall call);

  const LoadedBackend& library_;
  TuttiBackendGroup group_;
  GroupMemory memory_;
};

}  // namespace tutti::harness::backends

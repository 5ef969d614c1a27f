// SPDX-License-Identifier: Apache-2.0
// A communicator as a group.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "harness/backends/group.h"
#include "impl/communicator/communicator.h"

namespace tutti::harness::backends {

/// The schedules that the calls of one rank use, by algorithm, ranks, ranks per host, root and window.
using Schedules = std::map<std::tuple<const Algorithm*, int, int, int, int>, std::unique_ptr<Schedule>>;

class TuttiGroup final : public Group {
 public:
  /// Groups made of it share `schedules`. Where ranks are on several hosts only algorithms of channels are drawn.
  TuttiGroup(std::unique_ptr<Communicator> communicator, std::shared_ptr<Schedules> schedules)
      : schedules_(std::move(schedules)), communicator_(std::move(communicator)) {}

  [[nodiscard]] int rank() const override { return communicator_->rank(); }
  [[nodiscard]] int ranks() const override { return communicator_->ranks(); }
  [[nodiscard]] Allocator memory(Buffers buffers) override;
  [[nodiscard]] Status supports(const GroupCall& /*call*/) const override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<Pending>> post(const GroupCall& call) override;
  [[nodiscard]] Result<std::unique_ptr<Pending>> post_send(const Message<const void*>& message) override;
  [[nodiscard]] Result<std::unique_ptr<Pending>> post_recv(const Message<void*>& message) override;
  [[nodiscard]] Result<std::unique_ptr<Formation>> post_split(int colour, int key) override;
  [[nodiscard]] Result<std::unique_ptr<Formation>> post_new_group(std::span<const int> ranks) override;
  Status free() override;

 private:
  [[nodiscard]] const Schedule* schedule_for(const GroupCall& call);

  std::shared_ptr<Schedules> schedules_;  // outlives the communicator
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace tutti::harness::backends

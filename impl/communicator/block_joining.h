// SPDX-License-Identifier: Apache-2.0
// How ranks of several processes get a world of blocks in common, each with a device of its own: by what they tell each
// other in up to four rounds (roll_call.h). Of a group, each says its colour and key; then its first member makes the
// group's memory of the host and offers it. Then each rank makes what it has on its device, and offers that. Then each
// says whether it has opened what the others offer. So all ranks have their worlds, or no rank has.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "impl/communicator/block_world.h"
#include "impl/communicator/roll_call.h"

namespace tutti {

/// What a rank tells in a round.
struct BlockWord {
  BlockWorld::Wish wish;
  GroupMemory::Offer memory;
  BlockWorld::Part part;
  Code code = Code::ok;  ///< why this rank cannot go on
  std::array<char, 512> reason{};
};

class BlockJoining {
 public:
  /// Of the world of all ranks of `domain`. `device` is this rank's; what it refers to outlives the joining.
  BlockJoining(const std::shared_ptr<Domain>& domain, int rank, const BlockWorld::Common& common, BlockRollCall& call);
  /// Of a group of `parent`'s.
  BlockJoining(BlockWorld& parent, int rank, const BlockWorld::Wish& wish, BlockRollCall& call);

  /// Goes on as far as it can; true when complete. Errors: the first of any rank, the same on all; aborted where one
  /// has failed otherwise.
  [[nodiscard]] Result<bool> test();
  [[nodiscard]] BlockWorld::Membership take() { return std::move(membership_); }
  /// The rank that has told the least.
  [[nodiscard]] int awaited() const { return call_.awaited(); }

 private:
  enum class Round { wishes, memory, parts, opened, complete };

  Status go_on();
  Status make_memory();
  Status take_memory();
  Status make_part();
  Status open_parts();
  void find_members();
  void tell(const Status& status);
  [[nodiscard]] Status first_failure() const;

  BlockRollCall& call_;
  Domain& domain_;  // of those who tell
  int rank_;
  const BlockWorld::Common& common_;
  Round round_;
  BlockWord mine_;
  std::vector<int> members_;  // ranks of `domain_`, by rank in the world that is made
  std::shared_ptr<GroupMemory> memory_;
  std::shared_ptr<Domain> joint_;  // the domain of that world
  BlockWorld::Membership membership_;
  Status failed_;
};

}  // namespace tutti

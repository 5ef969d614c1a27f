// SPDX-License-Identifier: Apache-2.0
// The domain of a group of a world's ranks. Its lines, scratch and channels lie in memory of its own; its heaps and
// doorbell are those of the world. So what a rank has from alloc_shared of any of its communicators is shared in all of
// them. Where a group is on several hosts, this is what its ranks on one of them share (hosts_domain.h).
#pragma once

#include <memory>
#include <vector>

#include "impl/transports/domain.h"

namespace tutti {

/// The shape of a group of `ranks` in a domain of shape `of`.
[[nodiscard]] DomainShape group_shape(const DomainShape& of, int ranks);

/// A group as one of its ranks forms it.
struct GroupPlace {
  std::vector<int> world_ranks;  ///< the members, by rank in the group
  int rank = 0;
  DomainShape shape;
  std::vector<int> near;  ///< ranks of the group that share memory with this one, itself among them, in their order

  [[nodiscard]] bool is_on_one_host() const { return near.size() == world_ranks.size(); }
  /// Of what the near ranks share.
  [[nodiscard]] DomainShape memory_shape() const;
};
/// Of a group of the ranks of `parent`, whose slots and scratch it has. `members` are its ranks of `parent`.
[[nodiscard]] GroupPlace place_of_group(Domain& parent, const std::vector<int>& members, int rank);

class GroupDomain final : public Domain {
 public:
  /// `memory` has domain_bytes(shape). `world_ranks` are the members, by rank in the group. `world` must outlive this.
  GroupDomain(Domain& world, std::vector<int> world_ranks, const DomainShape& shape,
              std::shared_ptr<GroupMemory> memory);

  [[nodiscard]] Doorbell& doorbell() const override { return world_.doorbell(); }
  [[nodiscard]] bool is_in_one_process() const override { return world_.is_in_one_process(); }
  [[nodiscard]] Domain& world() override { return world_; }
  [[nodiscard]] int world_rank(int rank) const override { return world_ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::string name_of(int rank) const override;

  [[nodiscard]] Result<void*> alloc_shared(int rank, std::size_t bytes) override {
    return world_.alloc_shared(world_rank(rank), bytes);
  }
  void free_shared(int rank, void* pointer) override { world_.free_shared(world_rank(rank), pointer); }
  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override {
    return world_.is_shared(world_rank(rank), pointer, bytes);
  }
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override {
    return world_.make_group_memory(bytes);
  }
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer,
                                                                       std::size_t bytes) override {
    return world_.take_group_memory(offer, bytes);
  }

 protected:
  [[nodiscard]] std::byte* heap(int rank) const override { return world_.seat(world_rank(rank)).heap; }

 private:
  Domain& world_;
  std::vector<int> world_ranks_;
  std::shared_ptr<GroupMemory> memory_;
};

/// The domain of a group of ranks of `world`. Where it has a network, its addresses are not set yet. `memory` has
/// domain_bytes(place.memory_shape()). Errors: those of making a network.
[[nodiscard]] Result<std::unique_ptr<Domain>> make_group(Domain& world, const GroupPlace& place,
                                                         std::shared_ptr<GroupMemory> memory);

/// "rank 1 of the group (rank 3 of the world)".
[[nodiscard]] std::string name_in_group(const Domain& world, int rank, int world_rank);

}  // namespace tutti

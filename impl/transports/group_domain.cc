// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/group_domain.h"

#include "impl/transports/hosts_domain.h"

namespace tutti {

DomainShape group_shape(const DomainShape& of, int ranks) {
  DomainShape shape = of;
  shape.ranks = ranks;
  shape.heap_bytes = 0;
  shape.hosts = 1;
  shape.ranks_on.clear();
  if (shape.scratch_area != 0) {  // a program may have many groups: only its world has so much memory
    shape.scratch_area = 0;
    shape.slots = DomainShape().slots;
    shape.pair_slots = DomainShape().pair_slots;
  }
  shape.journal_ranks = 0;
  return shape;
}

DomainShape GroupPlace::memory_shape() const {
  return is_on_one_host() ? shape : host_shape(shape, static_cast<int>(near.size()));
}

GroupPlace place_of_group(Domain& parent, const std::vector<int>& members, int rank) {
  GroupPlace place{.rank = rank, .shape = group_shape(parent.shape(), static_cast<int>(members.size()))};
  for (const int member : members) place.world_ranks.push_back(parent.world_rank(member));
  const Hosts* const hosts = parent.world().hosts();
  const int here = place.world_ranks[static_cast<std::size_t>(rank)];
  for (int other = 0; other < place.shape.ranks; ++other) {
    const bool is_near =
        hosts == nullptr || hosts->share_memory(here, place.world_ranks[static_cast<std::size_t>(other)]);
    if (is_near) place.near.push_back(other);
  }
  return place;
}

GroupDomain::GroupDomain(Domain& world, std::vector<int> world_ranks, const DomainShape& shape,
                         std::shared_ptr<GroupMemory> memory)
    : Domain(shape, world.transport(), memory->base()),
      world_(world),
      world_ranks_(std::move(world_ranks)),
      memory_(std::move(memory)) {}

std::string GroupDomain::name_of(int rank) const { return name_in_group(world_, rank, world_rank(rank)); }

Result<std::unique_ptr<Domain>> make_group(Domain& world, const GroupPlace& place,
                                           std::shared_ptr<GroupMemory> memory) {
  if (!place.is_on_one_host()) return world.make_group_across(place, std::move(memory));
  return std::unique_ptr<Domain>(new GroupDomain(world, place.world_ranks, place.shape, std::move(memory)));
}

std::string name_in_group(const Domain& world, int rank, int world_rank) {
  return fmt::format("rank {} of the group ({} of the world)", rank, world.name_of(world_rank));
}

}  // namespace tutti
